from tiled_matmul.plots.tasks import Panel, Part, task

BANKS, STRIDE = 32, 6


def words(size):
    """Return the words of the first elements t · STRIDE that lie in four rows of banks."""
    wide = size // 4
    return [t * STRIDE * wide for t in range(32) if t * STRIDE * wide < 4 * BANKS]


task(
    [
        Panel(
            f"elements of {size} bytes, stride {STRIDE}",
            4,
            BANKS,
            y=y,
            color="b",
            parts=[Part(word // BANKS, word % BANKS, 1, size // 4) for word in words(size)],
            note="bank 0 … bank 31, 128 bytes in a row; the first lanes of the warp",
            shared=True,
        )
        for size, y in ((4, 0), (8, 10))
    ],
    "How often does a bank have to deliver?",
    "Two arrays in shared memory with 32 banks side by side, and the elements that the first lanes "
    "of a warp load with stride 6: of 4 bytes in the upper one, of 8 bytes in the lower one.",
)
