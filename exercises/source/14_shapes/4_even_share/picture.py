from tiled_matmul.plots.tasks import Panel, Part, task

runs = ((0, 6), (6, 13), (13, 20))  # the steps of each of three programs, four steps a tile
looks = ("strong", "weak", "muted")
panels = []
for tile in range(5):
    parts = []
    for program, (begin, end) in enumerate(runs):
        low, high = max(begin, 4 * tile), min(end, 4 * tile + 4)
        if low < high:
            wide, left = 2 * (high - low), 2 * (low - 4 * tile)
            parts.append(Part(0, left, 2, wide, looks[program], str(program)))
    panels.append(
        Panel(f"tile {tile}", 2, 8, 10.5 * (tile % 3), 5.5 * (tile // 3), "c", (2, 2), parts)
    )
words = (
    "Five tiles of C with four steps along K each. Program 0 does all steps of tile 0 and two of "
    "tile 1, program 1 the last two of tile 1, all of tile 2 and one of tile 3, and program 2 the "
    "last three of tile 3 and all of tile 4."
)
task(panels, "Programs 0, 1 and 2 share 20 steps: 6, 7 and 7", words)
