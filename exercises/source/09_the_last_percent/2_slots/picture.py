from tiled_matmul.plots.tasks import Panel, Part, task

slots = [
    Part(slot, cycle, look={"f": "strong", "o": "weak", ".": "none"}[kind])
    for slot, row in enumerate(("ffoff.ffff.f", "fff.of.fffof", "f.ffff.ffo.f", ".ff.ffoff.ff"))
    for cycle, kind in enumerate(row)
]
key = [
    Panel("", 1, 1, x=0, y=5.0, color="c", parts=[Part(0, 0)], note="multiply-add"),
    Panel("", 1, 1, x=4, y=5.0, color="c", parts=[Part(0, 0, look="weak")], note="other"),
    Panel("", 1, 1, x=7, y=5.0, color="c", note="empty"),
]
task(
    [
        Panel(
            "slots of a multiprocessor, a column for each cycle", 4, 12, tile=(4, 1), parts=slots
        ),
        *key,
    ],
    "Each slot holds a multiply-add or another instruction, or stays empty",
    "twelve cycles of four slots each; most hold multiply-adds, some other instructions, some "
    "nothing.",
)
