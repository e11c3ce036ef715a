"""Tiled Matmul: from three loops to the tensor cores. What the course's notebooks import."""

from __future__ import annotations

from pathlib import Path
from typing import Any

__version__ = "0.1.0"

ROOT = Path(__file__).resolve().parents[2]
"""The checkout that this package runs from; `results/` and `chapters/` lie beside `src/`."""


def __getattr__(name: str) -> Any:
    # Imported on first use, so that importing the package is quick.
    if name == "rung":
        from tiled_matmul.ladder import rung

        return rung
    if name == "trace_tiles":
        from tiled_matmul.microscope.triton import trace_tiles

        return trace_tiles
    raise AttributeError(f"module 'tiled_matmul' has no attribute {name!r}")
