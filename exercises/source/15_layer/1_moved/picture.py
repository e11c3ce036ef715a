from tiled_matmul.plots.tasks import Arrow, Panel, task

names = "product", "bias", "gelu", "residual"
task(
    [
        *(Panel(name, 6, 6, 16 * i, 0, "c") for i, name in enumerate(names)),
        Panel("", 4, 54, 0, 18, "muted", note="memory"),
    ],
    "Separate kernels: C goes through memory between any two steps",
    "Four kernels in a row, and memory below them. An arrow leads from each kernel down to memory, "
    "where it stores C. An arrow leads from memory up to each kernel but the first, which loads C.",
    [
        *(Arrow((16 * i + 4.5, 6.5), (16 * i + 4.5, 17.5)) for i in range(4)),
        *(Arrow((16 * i + 1.5, 17.5), (16 * i + 1.5, 6.5)) for i in range(1, 4)),
    ],
)
