from itertools import pairwise

from tiled_matmul.plots.tasks import Arrow, Panel, Part, task

path = [(0, 0), (1, 0), (1, 1), (0, 1), (0, 2), (1, 2), (1, 3), (0, 3)]
path += [(2, 3), (3, 3), (3, 2), (2, 2), (2, 1), (3, 1), (3, 0), (2, 0)]
path += [(4, 0), (4, 1), (4, 2), (4, 3)]
middles = [(6 * j + 3, 3 * i + 1.5) for i, j in path]
arrows = []
for (x, y), (to_x, to_y) in pairwise(middles):
    if abs(to_y - y) <= 3:
        along, down = 0.24 * (to_x - x), 0.32 * (to_y - y)
        arrows.append(Arrow((x + along, y + down), (to_x - along, to_y - down)))
task(
    [
        Panel(
            "C, in groups of 2 rows of tiles", 15, 24, 0, 0, "c", (3, 6),
            [
                Part(3 * i, 6 * j, 3, 6, "weak" if i // 2 % 2 else "strong", str(number))
                for number, (i, j) in enumerate(path)
            ],
        )
    ],
    "The first group goes right, the second one left, the last one has one row",
    "C of 5 × 4 tiles with the numbers of their programs. Programs 0 and 1 go down the first "
    "column, 2 and 3 up the second, 4 and 5 down the third, 6 and 7 up the fourth. The second "
    "group begins at the right with 8 and 9 going down, and ends at the left. The last group has "
    "one row, from left to right.",
    arrows,
)  # fmt: skip
