from tiled_matmul.plots.tasks import Panel, Part, task

task(
    (
        Panel("A", 12, 1, y=5, color="a", parts=(Part(0, 0, 12, 1, "weak"), Part(3, 0, 3, 1))),
        Panel("B", 1, 16, x=5, color="b", parts=(Part(0, 0, 1, 16, "weak"), Part(0, 4, 1, 4))),
        Panel(
            "C: a block's tile, and a thread's",
            12,
            16,
            x=5,
            y=5,
            color="c",
            parts=(
                Part(0, 0, 12, 16, "weak"),
                Part(3, 4, 3, 4),
                Part(3, 4, 3, 4, "focus"),
            ),
            note="tile_m × tile_n = 12 × 16, own_m × own_n = 3 × 4",
        ),
    ),
    "One k: light for the block, dark for a thread",
    "For one k, a block loads 12 elements of A and 16 of B from global memory for its 12 by 16 "
    "products; a thread loads 3 and 4 from shared memory for its 3 by 4.",
)
