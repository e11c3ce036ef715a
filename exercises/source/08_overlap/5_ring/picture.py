from tiled_matmul.plots.tasks import Panel, Part, task

held = {0: ("tile 3", "weak"), 1: ("tile 1", "strong"), 2: ("tile 2", "weak")}
columns = {"in flight": "weak", "multiplied": "strong"}
panels = [
    Panel(
        "A, K × M",
        10,
        8,
        color="a",
        tile=(2, 2),
        parts=[Part(2, 2, 2, 2), Part(4, 2, 4, 2, "weak")],
    ),
    Panel(
        "B, K × N",
        10,
        8,
        x=11,
        color="b",
        tile=(2, 2),
        parts=[Part(2, 4, 2, 2), Part(4, 4, 4, 2, "weak")],
    ),
    Panel(
        "C, M × N",
        8,
        8,
        x=22,
        color="c",
        tile=(2, 2),
        parts=[Part(2, 4, 2, 2), Part(3, 5, look="focus")],
    ),
]
for number, (text, look) in held.items():
    for color, x in (("a", 0), ("b", 11)):
        panels.append(
            Panel(
                "" if number else f"buffers of {color.upper()}",
                2,
                2,
                x=x + 3.4 * number,
                y=13,
                color=color,
                tile=(2, 2),
                parts=[Part(0, 0, 2, 2, look)],
                shared=True,
                note=f"{number}: {text}",
            )
        )
task(
    panels,
    "While tile 1 is multiplied, the copies of tiles 2 and 3 are in flight",
    "A with its rows along K, B below it in the same way, and C. One block's columns of A and of "
    "B are marked, and the three buffers of each: tile 3 goes into buffer 0, tile 1 lies in buffer "
    "1, tile 2 goes into buffer 2.",
)
