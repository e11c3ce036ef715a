from tiled_matmul.plots.tasks import Arrow, Panel, Part, task

of_a = [Part(8, 0, 2, 8), Part(2, 0, 2, 8, "weak"), Part(0, 8, 12, 2, "muted")]
of_c = [Part(8, 2, 2, 2, "strong"), Part(2, 8, 2, 2, "weak")]
panels = [
    Panel("A", 12, 10, 0, 0, "a", (2, 4), of_a, "M × K; grey: no part of A"),
    Panel("C", 12, 12, 14, 0, "c", (2, 2), of_c, "M × M"),
]
words = (
    "A with six rows of tiles, of which rows 4 and 1 are marked, and C with six by six tiles. "
    "The tile in row 4 and column 1 of C is computed; the one in row 1 and column 4 is its mirror "
    "image. Grey columns on the right of A fill each row up to a multiple of 16 bytes."
)
arrows = [Arrow((17.4, 7.6), (21.7, 4.4))]
task(panels, "Program (1, 4): one product, two tiles of C", words, arrows)
