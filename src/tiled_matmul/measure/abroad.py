"""The records of rungs in other languages, which `measure abroad` takes on a GPU.

Every product of a language is timed at each size that it can multiply, in turn with torch and with
rungs of the course, and its result is compared with the exact product.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from tiled_matmul import ROOT, ladder
from tiled_matmul.files import read_json
from tiled_matmul.measure import records
from tiled_matmul.measure.records import Entry
from tiled_matmul.measure.spent import COMPILER, spending
from tiled_matmul.measure.suite import Job, Suite

ABROAD = ROOT / "results" / "abroad"
PRODUCTS = Path(ladder.__file__).parent / "abroad" / "products"
SUITE = "abroad"
TORCH = "torch"
SIZES = {"float16": (4096, 8192), "float32": (1024, 4096)}  # M = N = K
OURS = {
    "float16": ("triton_swizzled", "triton_persistent", "triton_best"),
    "float32": ("cuda_shared_16", "cuda_shared_16 in CUDA C++", "cuda_best"),
}
TILE = ("bm", "bn", "bk", "tm", "tn", "tk")
ROUNDS = 11
ROWS = 64  # of C that are compared


@dataclass(frozen=True)
class Taken:
    """A product of N × N matrices: by which rung, of which file, in which milliseconds.

    `error` is |C - AB| / |AB|, norms of rows of C; `spread` the interquartile range of the times
    over their median, `ratio` torch's time over this one. `file` is "" where there is none.
    """

    n: int
    dtype: str
    rung: str
    file: str
    ms: float
    spread: float
    ratio: float
    error: float

    @property
    def tflops(self) -> float:
        """The rate in TFLOP/s."""
        return 2e-9 * self.n**3 / self.ms


def load(path: Path = ABROAD / "h200.json") -> list[Taken]:
    """Return what is in a file. Raises ValueError that names the file."""
    return records.load_as(path, SUITE, parse)


def parse(entries: Sequence[Entry]) -> list[Taken]:
    """Return what entries say."""
    keys = ("n", "dtype", "rung", "file")
    return [Taken(*(({"rung": TORCH} | e.case)[key] for key in keys), **e.values) for e in entries]


@dataclass(frozen=True)
class Made:
    """What a compiler made of a kernel, as the JSON beside a product says it."""

    constants: str
    registers: int
    stack: int
    instructions: Mapping[str, int]

    def count(self, name: str) -> int:
        """Return how many instructions of the machine code begin with a name."""
        return sum(n for each, n in self.instructions.items() if each.startswith(name))

    @property
    def copies(self) -> str:
        """How tiles come to shared memory: "TMA", "cp.async", or "loads and stores"."""
        for name, words in (("UTMALDG", "TMA"), ("LDGSTS", "cp.async")):
            if self.count(name):
                return words
        return "loads and stores"

    @property
    def multiplies(self) -> str:
        """The instruction that multiplies, without its last parts, such as "HGMMA.64x256x16"."""
        for name in ("HGMMA", "HMMA", "FFMA", "FMUL"):
            found = [each for each in self.instructions if each.startswith(name)]
            if found:
                return max(found, key=self.instructions.get)
        raise ValueError(f"nothing here multiplies: {dict(self.instructions)}")


def made(file: str) -> Made:
    """Return what is known of a product, such as "cute_tile-256-4". Raises ValueError for none."""
    path = PRODUCTS / f"{file}.json"
    if not path.is_file():
        raise ValueError(f"there is no product {file!r} with a JSON beside it")
    told = read_json(path)
    keys = ("constants", "registers", "stack", "instructions")
    return Made(**{key: told[key] for key in keys})


def constants(file: str) -> Mapping[str, Any]:
    """Return what a product was compiled with, such as {"BM": 128}. Raises ValueError for none."""
    for each in ladder.ABROAD:
        for path, values in each.home.PRODUCTS.items():
            if Path(path).stem == file:
                return values
    raise ValueError(f"no rung has a product {file!r}")


def best(taken: Sequence[Taken], n: int, dtype: str) -> dict[str, Taken]:
    """Return the fastest product of each rung at a size, by the rung's name, fastest first."""
    found: dict[str, Taken] = {}
    for each in sorted(taken, key=lambda each: each.ms):
        if (each.n, each.dtype) == (n, dtype):
            found.setdefault(each.rung, each)
    return found


# --- the suite ------------------------------------------------------------------------------------


def products(n: int, dtype: str) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield (rung, file, options) of each product that multiplies N × N matrices of a dtype."""
    from tiled_matmul.ladder import ABROAD as RUNGS

    for each in RUNGS:
        for file, constants in each.home.PRODUCTS.items():
            of = constants.get("DTYPE", each.dtype)
            if of == dtype and constants.get("SIZE", n) == n:
                yield each.name, file, options(each.home.matmul, constants)


def options(matmul: Callable, constants: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments by which a launcher takes the product with these constants."""
    taken = inspect.signature(matmul).parameters
    named = {name.lower(): value for name, value in constants.items()}
    found = {name: value for name, value in named.items() if name in taken}
    edges = {name[1:]: value for name, value in named.items() if name in TILE}
    if edges:
        usual = taken["tile"].default or (None,) * 3  # of an edge that is no constant
        found["tile"] = tuple(edges.get(x, edge) for x, edge in zip("mnk", usual, strict=True))
    return found


def take(n: int, dtype: str) -> Iterator[tuple[dict, dict]]:
    """Check and time the products at a size, beside torch and the course's own rungs."""
    import torch

    from tiled_matmul.ladder import rung_or_twin
    from tiled_matmul.measure.clock import time_replays

    numbers = torch.Generator("cuda").manual_seed(n)
    made = {"device": "cuda", "dtype": getattr(torch, dtype), "generator": numbers}
    a, b = (torch.randn((n, n), **made) for _ in "ab")
    out = torch.empty_like(a)
    rows = torch.linspace(0, n - 1, ROWS, device="cuda").long()
    exact = a[rows].double() @ b.double()
    calls: dict[tuple[str, str], Callable[[], Any]] = {
        (TORCH, ""): partial(torch.matmul, a, b, out=out)
    }
    for name in OURS[dtype]:
        calls[name, ""] = partial(rung_or_twin(name).matmul, a, b, out)
    for name, file, options in products(n, dtype):
        calls[name, file] = partial(rung_or_twin(name).matmul, a, b, out, **options)
    errors = {}
    with spending(COMPILER):
        for key, call in calls.items():
            out.fill_(math.nan)
            call()
            errors[key] = ((out[rows].double() - exact).norm() / exact.norm()).item()
            if not errors[key] < 1e-2:
                raise ValueError(f"{key}: C is wrong, with a relative error of {errors[key]:.2g}")
    timings = time_replays(calls, (TORCH, ""), rounds=ROUNDS)
    base = timings[TORCH, ""].median_ms
    for (name, file), timing in timings.items():
        values = {"ms": timing.median_ms, "spread": timing.spread, "error": errors[name, file]}
        values = records.rounded(values | {"ratio": base / timing.median_ms})
        case = {"n": n, "dtype": dtype, "file": Path(file).stem}
        yield case if name == TORCH else case | {"rung": name}, values


def jobs() -> list[Job]:
    """Return a job for each size and dtype."""
    found = []
    for dtype, sizes in SIZES.items():
        for n in sizes:
            names = dict.fromkeys(name for name, _, _ in products(n, dtype))
            ran = (*OURS[dtype], *names)
            found.append(Job(f"{n} {dtype}", ran, partial(take, n, dtype)))
    return found


SUITES = (Suite("abroad", "rungs in other languages", jobs, "abroad/{machine}.json"),)
