"""Tiled Matmul: from three loops to the tensor cores. What the course's notebooks import."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

__version__ = "0.1.0"

ROOT = Path(__file__).resolve().parents[2]
"""The checkout that this package runs from; `results/` and `chapters/` lie beside `src/`."""

_CHOOSING = ("numba.cuda", "triton")


class _Finder:
    """Lets the first import of Numba's CUDA or of Triton select the back end before."""

    @classmethod
    def find_spec(cls, name: str, path: Any = None, target: Any = None) -> Any:
        if name not in _CHOOSING:
            return None
        from tiled_matmul.kit import backend

        return backend.find_spec(name, path, target, cls)


sys.meta_path.insert(0, _Finder)
if not sys.modules.keys().isdisjoint(_CHOOSING):  # it was imported before this package
    from tiled_matmul.kit import backend as _backend

    _backend.select()


def __getattr__(name: str) -> Any:
    # Imported on first use, so that importing the package is quick.
    if name == "rung":
        from tiled_matmul.ladder import rung

        return rung
    if name == "trace_tiles":
        from tiled_matmul.microscope.triton import trace_tiles

        return trace_tiles
    if name == "trace_gluon":
        from tiled_matmul.microscope.gluon import trace_gluon

        return trace_gluon
    raise AttributeError(f"module 'tiled_matmul' has no attribute {name!r}")
