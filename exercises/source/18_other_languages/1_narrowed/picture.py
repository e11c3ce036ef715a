from tiled_matmul.plots.tasks import Panel, Part, task

task(
    [
        Panel(
            "a float32: 32 bits",
            *(2, 32),
            color="a",
            parts=[
                Part(0, 0, 2, 1, "weak", "±"),
                Part(0, 1, 2, 8, "weak", "exponent"),
                Part(0, 9, 2, 10, "strong", "10 bits stay"),
                Part(0, 19, 2, 13, "fault", "13 bits go"),
            ],
        )
    ],
    "What becomes of the last 13 bits?",
    "A row of 32 bits. From the left: the sign bit, 8 bits of the exponent, 10 bits of the "
    "significand that stay, and 13 bits of it that go.",
)
