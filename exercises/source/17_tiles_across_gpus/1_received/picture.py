from tiled_matmul.plots import distributed

distributed.parts(
    {"K is cut": (1, 0, None), "a grid of ranks": ("grid", "grid", "grid")},
    4,
    "Whose parts does rank 0 lack?",
)
