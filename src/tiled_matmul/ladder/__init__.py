"""Run: every way of multiplying matrices that the course climbs, and the only list of them.

May import: the kit and what lies below it. Front doors: `LADDER`, `rung`.

A rung is a module with `matmul(a, b, out=None)`: it checks its operands, allocates, launches and
returns C. Rungs for the CPU take numpy arrays, rungs for the GPU take torch tensors.

Importing this package chooses the back end, because each rung's module imports Numba or Triton,
and those have to be told before.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module

from tiled_matmul.kit import backend
from tiled_matmul.kit.arguments import FLOATS

backend.select()


@dataclass(frozen=True)
class Rung:
    """One step. `device` is "cpu" or "gpu"; `options` are passed to the module's `matmul`.

    `layout` is a letter for a and one for b, as in BLAS: "n" lies in memory row by row, "t" column
    by column (see `tiled_matmul.problem.as_layout`). `dtype` is the one in which the rung is
    measured unless another is asked for; its ratio is to the baseline in that dtype.
    """

    name: str
    title: str
    module: str
    device: str
    chapter: int
    options: dict = field(default_factory=dict)
    layout: str = "nn"
    dtype: str = "float32"

    @property
    def matmul(self) -> Callable:
        """The launcher `matmul(a, b, out=None)`; its module is imported at first use."""
        launcher = import_module(f"{__name__}.{self.module}").matmul
        return partial(launcher, **self.options) if self.options else launcher

    @property
    def dtypes(self) -> tuple[str, ...]:
        """The dtypes that the launcher takes, the one that it is measured in first."""
        return getattr(import_module(f"{__name__}.{self.module}"), "DTYPES", FLOATS)

    @property
    def in_triton(self) -> bool:
        """Is its kernel a Triton program, which has tiles and no threads?"""
        return self.module.startswith("triton_")


def _triton(
    name: str, title: str, chapter: int, module: str | None = None, options: dict | None = None
) -> Rung:
    """Return a rung of Triton's, for tensor cores and so in float16."""
    names = f"triton_{name}", f"triton_{module or name}"
    return Rung(names[0], title, names[1], "gpu", chapter, options or {}, dtype="float16")


ORDERS = ("ijk", "ikj", "jik", "jki", "kij", "kji")

LADDER: tuple[Rung, ...] = (
    Rung("loops_python", "Loops 1 in Python", "loops_python", "cpu", 1),
    *(
        Rung(f"njit_{order}", f"loops {order}, compiled", "loop_orders", "cpu", 2, {"order": order})
        for order in ORDERS
    ),
    Rung("loops_tiled", "Loops 4, compiled", "loops_tiled", "cpu", 3),
    Rung("cpu_packed", "packed tiles in parallel", "cpu_packed", "cpu", 3),
    Rung("cuda_naive", "a thread an element, x is the row", "cuda_naive", "gpu", 4),
    Rung("cuda_coalesced", "a thread an element, x is the column", "cuda_coalesced", "gpu", 4),
    Rung("cuda_puzzle", "shared tiles of 3×3: the puzzle", "cuda_puzzle", "gpu", 5),
    Rung("cuda_article", "shared tiles, x is the row: a wrong turn", "cuda_article", "gpu", 5),
    Rung("cuda_supersteps", "shared tiles in supersteps", "cuda_supersteps", "gpu", 5),
    *(
        Rung(
            f"cuda_shared_{tile}",
            f"shared tiles of {tile}×{tile}",
            "cuda_shared_tiles",
            "gpu",
            5,
            {"tile": tile},
        )
        for tile in (16, 32)
    ),
    Rung("cuda_padded", "shared tiles, x is the row, padded", "cuda_padded", "gpu", 6),
    *(
        Rung(f"cuda_transposed_{layout}", title, "cuda_transposed", "gpu", 6, layout=layout)
        for layout, title in (
            ("tn", "Aᵀ·B, loaded by columns"),
            ("nt", "A·Bᵀ, loaded by columns"),
            ("tt", "Aᵀ·Bᵀ, loaded by columns"),
        )
    ),
    Rung("cuda_thread_tile_1d", "a column of 8 for each thread", "cuda_thread_tile_1d", "gpu", 7),
    Rung("cuda_thread_tile_2d", "a tile of 8×8 for each thread", "cuda_thread_tile_2d", "gpu", 7),
    Rung("cuda_vectorised", "8×8, four elements in one load", "cuda_vectorised", "gpu", 7),
    Rung("cuda_tile_hand", "asynchronous copies, indexed by hand", "cuda_tile_hand", "gpu", 8),
    Rung("cuda_tile_view", "tile views and asynchronous copies", "cuda_tile_view", "gpu", 8),
    Rung("cuda_double_buffer", "two buffers, one barrier", "cuda_double_buffer", "gpu", 8),
    Rung("cuda_unrolled", "the loop over k written out", "cuda_unrolled", "gpu", 8),
    Rung("cuda_warp_tiles", "a tile of 32×64 for each warp", "cuda_warp_tiles", "gpu", 8),
    Rung("cuda_async", "asynchronous copies in three stages", "cuda_async", "gpu", 8),
    Rung("cuda_best", "the best found", "cuda_best", "gpu", 8),
    _triton("block_pointers", "block pointers, one block size", 9),
    _triton(
        "block_pointers_3",
        "block pointers, three block sizes",
        9,
        "block_pointers",
        {"block": (128, 256, 64), "num_warps": 8},
    ),
    _triton("swizzled", "programs in groups", 10),
    _triton("tuned", "tiles and stages chosen by timing", 11),
    _triton("descriptors", "tiles copied by hardware", 12),
    _triton("persistent", "persistent programs", 12),
    _triton("specialised", "warps with different work", 12),
    _triton("split_k", "K cut for several programs", 12),
    _triton("two_widths", "tiles of 288 rows", 12),
    _triton("best", "the rung that fits the shape", 12),
)


def rung(name: str) -> Rung:
    """Return the rung of that name. Raises ValueError that lists the known names."""
    for candidate in LADDER:
        if candidate.name == name:
            return candidate
    known = ", ".join(candidate.name for candidate in LADDER)
    raise ValueError(f"unknown rung {name!r}; the ladder has {known}")
