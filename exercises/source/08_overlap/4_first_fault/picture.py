from tiled_matmul.plots.tasks import Panel, Part, task

entries = ["copy 0 → 0", "commit", "copy 1 → 1", "commit", "wait 1", "barrier"]
entries += ["multiply 0", "copy 2 → 0", "barrier"]
buffers = {
    "buffer 0": ["under way"] * 4 + ["own only", "seen", "read", "still read", ""],
    "buffer 1": ["", ""] + ["under way"] * 7,
}
looks = {"": "muted", "under way": "weak", "own only": "weak", "still read": "fault"}
panels = [
    Panel(
        name,
        len(entries),
        4,
        x=4.6 + 4.6 * place,
        color="a",
        tile=(1, 4),
        parts=[
            Part(row, 0, 1, 4, looks.get(text, "strong"), text)
            for row, text in enumerate(texts)
            if text
        ],
    )
    for place, (name, texts) in enumerate(buffers.items())
]
panels.insert(
    0,
    Panel(
        "schedule",
        len(entries),
        4,
        color="muted",
        tile=(1, 4),
        parts=[Part(row, 0, 1, 4, "none", text) for row, text in enumerate(entries)],
    ),
)
task(
    panels,
    "The copy of tile 2 is the first fault: buffer 0 may still be read",
    "nine entries of a schedule from top to bottom, and the state of two buffers after each. "
    "Buffer 0: under way, arrived for its own thread, seen by all after the barrier, read, and "
    "then the copy of tile 2 goes into it before the next barrier.",
)
