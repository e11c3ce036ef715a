"""Run: the languages that rungs are written in, and what each of them can do here.

May import: the kit and what lies below it. Front doors: `LANGUAGES`, and a name for each of them.

A language is one object, in a file of its own. It answers for its rungs whether it is installed,
what runs them without a GPU, how they are launched, traced and compiled, whether a CUDA graph
captures them, what compute-sanitizer sees of them, and which versions belong to a record.
`language.py` has the questions. Nothing heavy is imported before an answer needs it.
"""

from __future__ import annotations

from tiled_matmul.languages.cuda_cpp import CUDA_CPP
from tiled_matmul.languages.cute import CUTE
from tiled_matmul.languages.cutile import CUTILE
from tiled_matmul.languages.gluon import GLUON
from tiled_matmul.languages.helion import HELION
from tiled_matmul.languages.language import Language
from tiled_matmul.languages.mojo import MOJO
from tiled_matmul.languages.numba_cpu import NUMBA
from tiled_matmul.languages.numba_cuda import NUMBA_CUDA
from tiled_matmul.languages.pallas import PALLAS
from tiled_matmul.languages.python_ import PYTHON
from tiled_matmul.languages.tilelang import TILELANG
from tiled_matmul.languages.triton import TRITON
from tiled_matmul.languages.warp import WARP

__all__ = [
    "CUDA_CPP",
    "CUTE",
    "CUTILE",
    "GLUON",
    "HELION",
    "LANGUAGES",
    "MOJO",
    "NUMBA",
    "NUMBA_CUDA",
    "PALLAS",
    "PYTHON",
    "TILELANG",
    "TRITON",
    "WARP",
    "Language",
]

# fmt: off
LANGUAGES: tuple[Language, ...] = (
    PYTHON, NUMBA, NUMBA_CUDA, TRITON, GLUON, CUDA_CPP, MOJO,
    CUTILE, CUTE, TILELANG, HELION, WARP, PALLAS,
)
# fmt: on
