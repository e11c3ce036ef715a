from tiled_matmul.plots.tasks import Panel, Part, task

steps = range(0, 12, 4)
along = [Part(4, k, 4, 4, "strong" if k == 4 else "weak", f"tile {k // 4}") for k in steps]
down = [Part(k, 4, 4, 4, "strong" if k == 4 else "weak", f"tile {k // 4}") for k in steps]
own = [Part(4, 4, 4, 4), Part(5, 6, look="focus")]
panels = [
    Panel("B", 12, 8, x=14, color="b", tile=(4, 4), parts=down),
    Panel("A", 8, 12, y=14.5, color="a", tile=(4, 4), parts=along),
    Panel("C", 8, 8, x=14, y=14.5, color="c", tile=(4, 4), parts=own),
]
for x, y, color, place, text in (
    (0.5, 1.5, "a", 0, "tiles 0, 2, …"),
    (0.5, 8, "a", 1, "tiles 1, 3, …"),
    (6.8, 1.5, "b", 0, ""),
    (6.8, 8, "b", 1, ""),
):
    look = "strong" if place else "weak"
    name = f"{color.upper()}, buffer {place}"
    part = Part(0, 0, 4, 4, look)
    panels.append(Panel(name, 4, 4, x, y, color, (4, 4), [part], note=text, shared=True))
task(
    panels,
    "Tiles with even numbers go to buffer 0, those with odd numbers to buffer 1",
    "a block's tile of C with one thread's element, its tiles of A along K and of B down K, and "
    "two buffers of each in shared memory. Tile 1 of A and of B lies in buffer 1.",
)
