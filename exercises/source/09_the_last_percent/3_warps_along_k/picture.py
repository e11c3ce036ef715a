from tiled_matmul.plots.tasks import Panel, Part, task

along = [
    Part(4, 4 * tile, 4, 4, "strong" if tile % 3 == 1 else "weak", f"warp {tile % 3}")
    for tile in range(7)
]
down = [
    Part(4 * tile, 4, 4, 6, "strong" if tile % 3 == 1 else "weak", f"warp {tile % 3}")
    for tile in range(7)
]
task(
    [
        Panel("B", 28, 10, x=31, color="b", tile=(4, 10), parts=down),
        Panel("A", 8, 28, y=31, color="a", tile=(8, 4), parts=along),
        Panel(
            "C", 8, 10, x=31, y=31, color="c", parts=[Part(4, 4, 4, 6), Part(5, 7, look="focus")]
        ),
    ],
    "Three warps take the tiles of K in turn, each for all of the block's elements of C",
    "a block's part of C with one element, its rows of A and its columns of B in seven tiles along "
    "K, which belong to warps 0, 1, 2, 0, 1, 2 and 0; those of warp 1 are marked.",
)
