from tiled_matmul.plots import distributed

distributed.lanes(
    {
        "too early": [("transfer", 0, 6), ("product", 4, 8)],
        "after the wait": [("transfer", 0, 6), ("product", 6, 10)],
    },
    "Which product reads rows that are not there yet?",
)
