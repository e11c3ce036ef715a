from tiled_matmul.plots.tasks import Arrow, Panel, Part, task

SQUARE = {"rows": 3, "columns": 3, "shared": True}

task(
    [
        Panel("A", 3, 3, color="a", parts=[Part(1, 1)], note="int32"),
        Panel("tile of A", x=7, color="a", parts=[Part(1, 1)], note="float32?", **SQUARE),
        Panel("sum", 1, 3, x=14, y=1, parts=[Part(0, 0, 1, 3, "weak")], note="float32?"),
        Panel("C", 3, 3, x=21, parts=[Part(1, 1)], note="int32"),
    ],
    "Which types does a number pass through?",
    "An int32 element of A is copied to a tile in shared memory, multiplied and added to a sum, "
    "and the sum is stored to C, which is int32 again. Whether the tile and the sum on the way are "
    "float32 is the question.",
    [
        Arrow((3.3, 1.5), (6.4, 1.5)),
        Arrow((10.6, 1.5), (13.7, 1.5)),
        Arrow((17.3, 1.5), (20.7, 1.5)),
    ],
)
