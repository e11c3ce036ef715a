"""Tiled Matmul: from three loops to the tensor cores. What the course's notebooks import."""

from pathlib import Path

__version__ = "0.1.0"

ROOT = Path(__file__).resolve().parents[2]
"""The checkout that this package runs from; `results/` and `chapters/` lie beside `src/`."""
