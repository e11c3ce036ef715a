from tiled_matmul.plots.tasks import Panel, Part, task

task(
    (
        Panel(
            "a",
            9,
            12,
            y=5,
            color="a",
            tile=(9, 4),
            parts=(Part(4, 0, 1, 12), Part(4, 0, 1, 12, "focus")),
            note="row i, along K",
        ),
        Panel(
            "b",
            15,
            12,
            x=17,
            y=2,
            color="b",
            tile=(15, 4),
            parts=(Part(6, 0, 1, 12), Part(6, 0, 1, 12, "focus")),
            note="row j, along K",
        ),
        Panel(
            "c",
            9,
            15,
            x=34,
            y=5,
            color="c",
            parts=(Part(4, 6), Part(4, 6, 1, 1, "focus")),
            note="c[i, j], from row i and row j",
        ),
    ),
    "Two rows give a product and two lengths",
    "A row of a and a row of b, both along K, which is divided into tiles of 4. Their product over "
    "their lengths is the element of c in the row of the one and the column of the other.",
)
