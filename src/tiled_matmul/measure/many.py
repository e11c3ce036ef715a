"""One product over several GPUs: what `tools/bench_many.py` measured, and a model fitted to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tiled_matmul import ROOT
from tiled_matmul.files import load_as
from tiled_matmul.models.many import Line, Machine

MANY = ROOT / "results" / "many"
ONE, ALONE = "one GPU", "product"  # all of C on one GPU, and a rank's columns of it
COUNTS = 2, 4, 8  # of GPUs, that the chapter shows
FITTED = 2**22, 2**28  # bytes of the transfers that lines are fitted to


@dataclass(frozen=True)
class Timed:
    """A product C (M, N) with K products each: microseconds and spreads, of the slowest rank."""

    m: int
    n: int
    k: int
    dtype: str
    us: Mapping[str, float]
    spread: Mapping[str, float]


@dataclass(frozen=True)
class Sent:
    """Each rank passes bytes to the next, with NCCL's `settings`: microseconds by bytes.

    `blocks` are the thread blocks of NCCL's kernel.
    """

    settings: Mapping[str, str]
    us: Mapping[int, float]
    blocks: Mapping[int, int]


@dataclass(frozen=True)
class Many:
    """A file's contents. `ranks` is the number of GPUs.

    `received` is what calls receive at the products in `checked`, `moved` what links counted at a
    square of `moved_at`: bytes by cut. `link` has microseconds by way of transfer and bytes, but
    for `sends` from rank to rank.
    `traced` has for each cut what rank 0 did when, at a square of `traced_at`: ("product",
    "transfer" or "other", begin, end) in microseconds.
    """

    provenance: Mapping[str, Any]
    ranks: int
    checked: Sequence[Mapping[str, Any]]
    moved: Mapping[str, float]
    moved_at: int
    link: Mapping[str, Mapping[int, float]]
    sends: Sequence[Sent]
    traced: Mapping[str, Sequence[tuple[str, float, float]]]
    traced_at: int
    times: Sequence[Timed]

    def find(self, m: int, n: int, k: int, dtype: str = "float16") -> Timed:
        """Return one product's times. Raises ValueError for one that was not measured."""
        for each in self.times:
            if (each.m, each.n, each.k, each.dtype) == (m, n, k, dtype):
                return each
        raise ValueError(f"{m}×{n}×{k} {dtype} was not measured")

    def sent(self, **settings: str) -> Sent:
        """Return the sends with these settings of NCCL, or none. Raises ValueError for others."""
        for each in self.sends:
            if each.settings == settings:
                return each
        raise ValueError(f"nothing was sent with {settings}")

    def machine(self, dtype: str = "float16") -> Machine:
        """Return the model, fitted to products of a dtype, and to transfers alone."""
        products = [
            (2 * t.m * t.n * t.k / parts, t.us[name])
            for t in self.times
            for name, parts in ((ONE, 1), (ALONE, self.ranks))
            if name in t.us and t.dtype == dtype
        ]
        low, high = FITTED
        transfers = {
            way: Line.fitted((size, us) for size, us in found.items() if low <= size <= high)
            for way, found in self.link.items()
        }
        by_channels: dict[int, list[tuple[int, float]]] = {}
        for each in self.sends:
            for size, us in each.us.items():
                if low <= size <= high:
                    by_channels.setdefault(each.blocks[size], []).append((size, us))
        sends = {count: Line.fitted(points) for count, points in by_channels.items()}
        return Machine(Line.fitted(products), transfers, sends)


def records(gpu: str, folder: Path = MANY) -> dict[int, Many]:
    """Return what was measured on two, four and eight of a GPU, as far as it was.

    `gpu` is as in the names of the files, such as "h200". Raises ValueError if there is none.
    """
    paths = {count: folder / f"{gpu}-x{count}.json" for count in COUNTS}
    found = {count: load(path) for count, path in paths.items() if path.exists()}
    if not found:
        raise ValueError(f"there is no file of {', '.join(map(str, COUNTS))} {gpu!r} in {folder}")
    return found


def load(path: Path) -> Many:
    """Return a file's contents. Raises ValueError that names the file."""
    return load_as(path, parse, "products over several GPUs")


def parse(stored: Any) -> Many:
    """Return a file's contents from its JSON. Raises ValueError for a time that is none."""
    times = []
    for row in stored["times"]:
        us = {name: 1e3 * each["ms"] for name, each in row["times"].items()}
        if not all(took > 0 for took in us.values()):
            raise ValueError(f"{row} has a time that is none")
        spread = {name: each["spread"] for name, each in row["times"].items()}
        times.append(Timed(row["m"], row["n"], row["k"], row["dtype"], us, spread))
    link = {way: _microseconds(found) for way, found in stored["link"].items()}
    sends = []
    for each in stored["sends"]:
        blocks = {int(size): one["blocks"] for size, one in each["sent"].items()}
        sends.append(Sent(each["settings"], _microseconds(each["sent"]), blocks))
    traced = dict(stored["traced"])
    at = traced.pop("at")
    pieces = {name: [(what, x, y) for what, x, y in each] for name, each in traced.items()}
    facts = (stored[name] for name in ("provenance", "ranks", "checked", "moved", "moved_at"))
    return Many(*facts, link, sends, pieces, at, times)


def _microseconds(found: Mapping[str, Any]) -> dict[int, float]:
    """Return the microseconds by bytes of one way of transfer."""
    return {int(size): 1e3 * each["ms"] for size, each in found.items()}
