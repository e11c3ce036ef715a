from tiled_matmul.plots.tasks import Panel, Part, task

rows = ("copies in flight", "multiplied")
steps = ["before", *(f"iteration {step}" for step in range(4))]
waits = Part(0, 0, 1, 4, "none", "")
panels = []
for row, (copied, used) in enumerate(((0, None), (1, 0), (2, 1), (3, 2), ("none", 3))):
    color = "b" if row % 2 else "a"
    panels.append(
        Panel(
            "the loop" if row == 0 else "",
            1,
            4,
            y=1.3 * row,
            color="muted",
            tile=(1, 4),
            parts=[Part(0, 0, 1, 4, "none", steps[row])],
        )
    )
    text = "—" if copied == "none" else f"tile {copied} → buffer {copied % 2}"
    look = "none" if copied == "none" else "weak"
    panels.append(
        Panel(
            rows[0] if row == 0 else "",
            1,
            6,
            4.6,
            1.3 * row,
            "a",
            (1, 6),
            [Part(0, 0, 1, 6, look, text)],
        )
    )
    text = "—" if used is None else f"tile {used} from buffer {used % 2}"
    look = "none" if used is None else "strong"
    panels.append(
        Panel(
            rows[1] if row == 0 else "",
            1,
            6,
            11.2,
            1.3 * row,
            "c",
            (1, 6),
            [Part(0, 0, 1, 6, look, text)],
        )
    )
task(
    panels,
    "Each tile is copied to one buffer while the tile before it is multiplied from the other",
    "five lines, for what happens before the loop and in four iterations. Before the loop, the "
    "copies of tile 0 start; in iteration 0 those of tile 1 are in flight while tile 0 is "
    "multiplied, and so on; in the last iteration nothing is left to copy.",
)
