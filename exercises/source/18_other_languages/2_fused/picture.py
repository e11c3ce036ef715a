from tiled_matmul.plots.tasks import Panel, Part, task

task(
    [
        Panel("a factor in float32: 24 bits", 2, 24, 0, 0, "a", None, [Part(0, 0, 2, 24)]),
        Panel(
            *("a product of two of them: 48 bits", 2, 48, 0, 6, "c", None),
            [Part(0, 0, 2, 24, "strong", "float32 has 24"), Part(0, 24, 2, 24, "weak")],
        ),
        Panel("a factor in TF32: 11 bits", 2, 11, 0, 13, "a", None, [Part(0, 0, 2, 11)]),
        Panel("a product of two of them: 22 bits", 2, 24, 0, 19, "c", None, [Part(0, 0, 2, 22)]),
    ],
    "Which product fits into 24 bits?",
    "Bars of bits. A float32 factor has 24 significant bits, and a product of two has 48, of which "
    "float32 holds the first 24. A TF32 factor has 11, and a product of two has 22, which fit.",
)
