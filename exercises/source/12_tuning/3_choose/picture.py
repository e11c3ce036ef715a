from tiled_matmul.plots import waves

waves.cuts(640, 1000, {"128 × 256": (128, 256), "64 × 64": (64, 64)}, 132)
