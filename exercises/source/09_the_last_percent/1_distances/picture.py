from tiled_matmul.plots.tasks import Panel, Part, task

warps = [
    Part(8 * (warp // 2), 16 * (warp % 2), 8, 16, "strong" if warp == 1 else "none", f"warp {warp}")
    for warp in range(4)
]
lanes = [
    Part(2 * row, 4 * column, 2, 4, "weak", f"{8 * row + column}")
    for row in range(4)
    for column in range(8)
]
task(
    [
        Panel(
            "a block's tile of C, 16 × 32 elements", 16, 32, color="c", tile=(8, 16), parts=warps
        ),
        Panel(
            "the order of a warp's lanes; what each owns is up to you",
            8,
            32,
            y=20,
            color="c",
            tile=(2, 4),
            parts=lanes,
        ),
    ],
    "With these constants, 2 × 2 warps share a block's tile, and 4 × 8 lanes a warp's tile",
    "a tile of 16 × 32 elements of C in four tiles of 8 × 16, one for each warp, row by row; below "
    "it the 32 lanes of a warp in four rows of eight, row by row.",
)
