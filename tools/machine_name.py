"""Print this machine's short name for a file of results: "h200", "rtx-4090", "cpu"."""

import re

from tiled_matmul.kit import backend


def short_name(gpu: str) -> str:
    """Return a GPU's name as a file's name: "NVIDIA GeForce RTX 4090" gives "rtx-4090"."""
    words = re.findall(r"[a-z0-9]+", gpu.lower())
    return "-".join(word for word in words if word not in ("nvidia", "geforce", "tesla"))


if __name__ == "__main__":
    gpu = backend.select().gpu
    print(short_name(gpu.name) if gpu else "cpu")
