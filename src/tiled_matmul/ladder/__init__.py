"""Run: every way of multiplying matrices that the course climbs, and the only lists of them.

May import: dispatch, languages and what lies below. Front doors: `LADDER`, `COMPILED`, `LAYER`,
`ABROAD`, `rung`, and `TWINS`, which are rungs of LADDER once more in CUDA C++.

A rung is a module with `matmul(a, b, out=None)`: it checks its operands, allocates, launches and
returns C. Rungs for the CPU take numpy arrays, rungs for the GPU take torch tensors. The files are
named after the chapters, so that they sort as the ladder is climbed, and are imported without the
chapter: `from tiled_matmul.ladder import cuda_naive` loads `ch04_1_cuda_naive.py`.

A rung's module is imported at its first use. It imports Numba or Triton, and the first import of
one of them selects the back end (`kit/backend.py`).
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import partial
from importlib import import_module
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

from tiled_matmul.files import rung_files
from tiled_matmul.kit.arguments import FLOATS
from tiled_matmul.kit.changes import changed_lines, to_compare
from tiled_matmul.ladder.twins import Twin
from tiled_matmul.languages import (
    CUTE,
    CUTILE,
    GLUON,
    HELION,
    MOJO,
    NUMBA,
    NUMBA_CUDA,
    PALLAS,
    PYTHON,
    TILELANG,
    TRITON,
    WARP,
    Language,
)


class _Finder:
    """Lets `tiled_matmul.ladder.cuda_naive` be imported from the file with the chapter's prefix."""

    files = rung_files(Path(__file__).parent)

    @classmethod
    def find_spec(cls, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        package, _, module = name.rpartition(".")
        if package != __name__ or module not in cls.files:
            return None
        if language := _language_of(module):
            language.need()
        return spec_from_file_location(name, cls.files[module])


sys.meta_path.append(_Finder)


@dataclass(frozen=True)
class Rung:
    """One step, in one of LANGUAGES; `options` are passed to the module's `matmul`.

    `layout` is a letter for a and one for b, as in BLAS: "n" lies in memory row by row, "t" column
    by column (see `tiled_matmul.problem.as_layout`). `dtype` is the one in which the rung is
    measured unless another is asked for; its ratio is to the baseline in that dtype. `after` names
    the rung that this one changes, where that is not the one before it in LADDER; "" is none.
    `kernel_name` is the kernel's name in the module, by default that of the module and `_kernel`.
    """

    name: str
    title: str
    module: str
    language: Language
    chapter: int
    options: dict = field(default_factory=dict)
    layout: str = "nn"
    dtype: str = "float32"
    after: str | None = None
    kernel_name: str = ""

    @property
    def device(self) -> str:
        """Where it runs: "cpu" or "gpu"."""
        return self.language.device

    @property
    def home(self) -> ModuleType:
        """The rung's module, imported at first use."""
        return import_module(f"{__name__}.{self.module}")

    @property
    def source(self) -> Path:
        """The rung's file."""
        return _Finder.files[self.module]

    @property
    def matmul(self) -> Callable:
        """The launcher `matmul(a, b, out=None)`."""
        launcher = self.home.matmul
        return partial(launcher, **self.options) if self.options else launcher

    @property
    def kernel(self) -> Any:
        """The kernel, as its language has kernels. None: it has no own."""
        found: Any = self.home
        for name in (self.kernel_name or f"{self.module}_kernel").split("."):
            found = getattr(found, name, None)
        return found

    @property
    def kernel_lines(self) -> list[str]:
        """The kernel's lines, to be compared with those of another rung; [] without a kernel."""
        return [] if self.kernel is None else self.language.lines(self.kernel)

    @property
    def below(self) -> Rung | None:
        """The rung that this one changes; None for a first one."""
        if self.after is not None:
            return rung(self.after) if self.after else None
        climb = ABROAD if self in ABROAD else LADDER
        before = climb.index(self) - 1
        return climb[before] if before >= 0 else None

    def changes(self, launcher: bool = False) -> str:
        """Return the lines of the kernel that differ from the rung below, as in a diff.

        With `launcher`, those of `matmul` follow. Docstrings are left out, and lines that both have
        are "...". A first rung's kernel is all new.
        """
        below = self.below
        shown = changed_lines(below.kernel_lines if below else [], self.kernel_lines)
        if launcher:
            before = to_compare(below.home.matmul) if below else []
            shown += changed_lines(before, to_compare(self.home.matmul))
        return "\n".join(shown) or "nothing differs"

    @property
    def dtypes(self) -> tuple[str, ...]:
        """The dtypes that the launcher takes, the one that it is measured in first."""
        return getattr(self.home, "DTYPES", FLOATS)

    @property
    def available(self) -> bool:
        """Can the rung's module be imported here? Triton, for example, is not everywhere."""
        return not self.language.missing()


def _language_of(module: str) -> Language | None:
    """Return the language of the rungs in a module, or None for a file that no rung names."""
    return next(
        (r.language for r in (*LADDER, *COMPILED, *LAYER, *ABROAD) if r.module == module), None
    )


def _cpu(name: str, title: str, chapter: int, kernel: str, **more: Any) -> Rung:
    """Return a rung for the CPU, in Numba unless `language` is another."""
    more = {"module": name, "language": NUMBA} | more
    return Rung(name, title, chapter=chapter, kernel_name=kernel, **more)


def _cuda(name: str, title: str, chapter: int, **more: Any) -> Rung:
    """Return a rung in Numba CUDA; `name` and `module` are without their "cuda_"."""
    module = more.pop("module", name)
    return Rung(f"cuda_{name}", title, f"cuda_{module}", NUMBA_CUDA, chapter, **more)


def _triton(name: str, title: str, chapter: int, **more: Any) -> Rung:
    """Return a rung in Triton, for tensor cores and so in float16; names as for `_cuda`."""
    module = more.pop("module", name)
    more = {"language": TRITON, "dtype": "float16"} | more
    return Rung(f"triton_{name}", title, f"triton_{module}", chapter=chapter, **more)


def _gluon(name: str, title: str, chapter: int, **more: Any) -> Rung:
    """Return a rung in Gluon, for tensor cores and so in float16; names as for `_cuda`."""
    more = {"language": GLUON, "dtype": "float16"} | more
    return Rung(f"gluon_{name}", title, f"gluon_{name}", chapter=chapter, **more)


def _mojo(name: str, title: str, **more: Any) -> Rung:
    """Return a rung in Mojo; names as for `_cuda`."""
    return Rung(f"mojo_{name}", title, f"mojo_{name}", MOJO, 18, **more)


def _tile(language: Language) -> Rung:
    """Return a rung in a language abroad whose product is machine code for Hopper."""
    name, title = f"{language.name}_tile", f"one tile a block, in {language.title}"
    more = {"dtype": "float16", "after": "triton_block_pointers"}
    return Rung(name, title, name, language, 18, **more)


ORDERS = ("ijk", "ikj", "jik", "jki", "kij", "kji")

# fmt: off
LADDER: tuple[Rung, ...] = (
    _cpu("loops_python", "Loops 1 in Python", 1, "loops_1", language=PYTHON),
    *(
        _cpu(f"njit_{order}", f"loops {order}, compiled", 2, order, module="loop_orders",
             options={"order": order}, after="loops_python" if order == "ijk" else "njit_ijk")
        for order in ORDERS
    ),
    _cpu("loops_tiled", "Loops 4, compiled", 3, "loops_4", after="njit_ikj"),
    _cpu("cpu_packed", "packed tiles in parallel", 3, "packed_kernel"),
    _cuda("naive", "one thread per element, x is the row", 4, after="loops_python"),
    _cuda("coalesced", "one thread per element, x is the column", 4),
    _cuda("puzzle", "shared tiles of 3×3: the puzzle", 5),
    _cuda("article", "shared tiles, x is the row: a wrong turn", 5, after="cuda_shared_16"),
    _cuda("supersteps", "shared tiles in supersteps", 5, after="cuda_shared_16"),
    _cuda("shared_16", "shared tiles of 16×16", 5, module="shared_tiles", options={"tile": 16},
          after="cuda_coalesced"),
    _cuda("shared_32", "shared tiles of 32×32", 5, module="shared_tiles", options={"tile": 32}),
    _cuda("padded", "shared tiles, x is the row, padded", 6, after="cuda_article"),
    *(
        _cuda(f"transposed_{layout}", title, 6, module="transposed", layout=layout,
              after="cuda_padded")
        for layout, title in (
            ("tn", "Aᵀ·B, loaded by columns"),
            ("nt", "A·Bᵀ, loaded by columns"),
            ("tt", "Aᵀ·Bᵀ, loaded by columns"),
        )
    ),
    _cuda("thread_tile_1d", "a column of 8 for each thread", 7, after="cuda_shared_32"),
    _cuda("thread_tile_2d", "a tile of 8×8 for each thread", 7),
    _cuda("vectorised", "8×8, four elements in one load", 7),
    _cuda("tile_hand", "asynchronous copies, indexed by hand", 8, after="cuda_shared_32"),
    _cuda("tile_view", "tile views and asynchronous copies", 8),
    _cuda("double_buffer", "two buffers, one barrier", 8, after="cuda_vectorised"),
    _cuda("unrolled", "the loop over k unrolled", 8),
    _cuda("warp_tiles", "a tile of 32×64 for each warp", 8),
    _cuda("async", "asynchronous copies in three stages", 8),
    _cuda("best", "the best found", 9),
    _triton("block_pointers", "block pointers, one block size", 10, after=""),
    _triton("block_pointers_3", "block pointers, three block sizes", 10, module="block_pointers",
            options={"block": (128, 256, 64), "num_warps": 8}),
    _triton("swizzled", "programs in groups", 11),
    _triton("tuned", "tiles and stages chosen by timing", 12,
            kernel_name="triton_swizzled.triton_swizzled_kernel"),
    _triton("descriptors", "tiles copied by hardware", 13),
    _triton("persistent", "persistent programs", 13),
    _triton("specialised", "warps with different work", 13),
    _gluon("tile", "one tile, nothing hidden, in Gluon", 13, after="triton_descriptors"),
    _gluon("ring", "a ring of stages", 13),
    _gluon("specialised", "one warp copies, eight multiply", 13),
    _gluon("persistent", "the ring goes on from tile to tile", 13),
    _gluon("cluster", "two blocks share a copy", 13),
    _triton("split_k", "K cut for several programs", 14, after="triton_descriptors"),
    _triton("two_widths", "tiles of 288 rows", 14, after="triton_descriptors"),
    _gluon("shapes", "tiles of two widths, in clusters", 14, after="gluon_cluster"),
    _gluon("shares", "equal shares for all programs", 14, after="gluon_persistent"),
    _triton("uneven", "rows that begin anywhere", 14, after="triton_split_k"),
    _triton("best", "the rung that fits the shape", 14),
    _cuda("split_k", "K cut for several blocks", 14, after="cuda_best"),
)
# What a layer asks for besides a product: these have arguments and baselines of their own, so they
# are not steps of the climb.
LAYER: tuple[Rung, ...] = (
    _triton("fused", "bias, activation and residual in the store", 15, after="triton_persistent"),
    _triton("fp8", "8-bit floats with scales", 15, dtype="float8_e4m3fn", after="triton_split_k"),
    _triton("fp8_gluon", "8-bit floats, promoted beside the products, in Gluon", 15,
            language=GLUON, dtype="float8_e4m3fn", after="gluon_shapes"),
    _triton("batched", "a batch of products", 15, after="triton_persistent"),
    _triton("grouped", "rows in groups, found on the GPU", 15, after="triton_batched",
            dtype="bfloat16"),
)
# What no GPU here can run is compiled and interpreted only, so it has no records.
COMPILED: tuple[Rung, ...] = (
    _gluon("blackwell", "sums in tensor memory", 13, after="gluon_specialised"),
)
# The same tile in other languages. What was compiled takes squares of a few sizes, or runs on
# Hopper alone, so these are no steps of the climb.
ABROAD: tuple[Rung, ...] = (
    _mojo("manual", "the puzzle's manual tiles, in Mojo", after="cuda_shared_16"),
    _mojo("idiomatic", "the puzzle's idiomatic tiles, in Mojo"),
    *map(_tile, (CUTILE, CUTE, TILELANG, HELION, WARP, PALLAS)),
)
# fmt: on
TWINS: tuple[Twin, ...] = tuple(Twin(each) for each in LADDER if each.language == NUMBA_CUDA)


def twin_of(rung: Rung | str) -> Twin | None:
    """Return the twin of a rung, or of the rung of that name; None if it has none."""
    name = rung if isinstance(rung, str) else rung.name
    return next((twin for twin in TWINS if twin.rung.name == name), None)


def rung_or_twin(name: str) -> Rung | Twin:
    """Return the rung or the twin of that name. Raises ValueError as `rung` does."""
    return next((twin for twin in TWINS if twin.name == name), None) or rung(name)


def rung(name: str) -> Rung:
    """Return the rung of that name. Raises ValueError that names the nearest, or lists them all."""
    rungs = {candidate.name: candidate for candidate in (*LADDER, *COMPILED, *LAYER, *ABROAD)}
    if name in rungs:
        return rungs[name]
    near = get_close_matches(str(name), rungs, cutoff=0.6)
    known = f"the nearest are {', '.join(near)}" if near else f"the ladder has {', '.join(rungs)}"
    raise ValueError(f"unknown rung {name!r}; {known}")
