from tiled_matmul.plots.tasks import Arrow, Panel, Part, task

task(
    (
        Panel(
            "A, by columns",
            16,
            16,
            color="a",
            parts=(Part(0, 4, 16, 2, text=""), Part(0, 4, 16, 2, "focus")),
            note="a warp loads two columns:\n4 sectors",
        ),
        Panel(
            "a_tile",
            16,
            16,
            x=24,
            color="a",
            parts=(Part(0, 4, 16, 2, "fault"), Part(0, 4, 16, 2, "focus")),
            note="and stores two columns,\nin rows of 16 words:\n8 wavefronts",
            shared=True,
        ),
    ),
    "Bring the store to one wavefront",
    "A warp loads two columns of 16 elements of A, which lie in 4 sectors, and stores them to two "
    "columns of the tile in shared memory, which takes 8 wavefronts.",
    (Arrow((16.8, 8), (22.6, 8)),),
)
