from tiled_matmul.plots.tasks import Arrow, Panel, Part, task

task(
    [
        Panel(
            "a row of A",
            1,
            20,
            color="a",
            tile=(1, 8),
            parts=[Part(0, col) for col in (2, 10, 18)],
            note="three squares for the thread with number 2",
        ),
        Panel("one sum for each thread", 1, 8, y=6, shared=True, parts=[Part(0, 2)]),
        Panel("", 1, 8, y=9, shared=True, parts=[Part(0, 0, 1, 4)]),
        Panel("", 1, 8, y=12, shared=True, parts=[Part(0, 0, 1, 2)]),
        Panel("", 1, 8, y=15, shared=True, parts=[Part(0, 0)], note="the sum of the row, for all"),
        Panel("its row of C", 1, 20, y=19.5, tile=(1, 8), parts=[Part(0, 0, 1, 20, "weak")]),
    ],
    "Eight sums become one in three levels",
    "A row of A with 20 elements, and eight threads: the one with number 2 adds up the squares of "
    "columns 2, 10 and 18. The eight sums are in shared memory, with a dashed frame. Four threads "
    "add one sum each, then two, then one, and the whole sum is used for the row of C.",
    [
        *(Arrow((x + 4.5, 7.3), (x + 0.5, 8.7)) for x in range(4)),
        *(Arrow((x + 2.5, 10.3), (x + 0.5, 11.7)) for x in range(2)),
        Arrow((1.5, 13.3), (0.5, 14.7)),
    ],
)
