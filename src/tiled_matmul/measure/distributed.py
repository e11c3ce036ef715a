"""One product over several GPUs: what `measure distributed` took, and a model fitted to it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from tiled_matmul import ROOT
from tiled_matmul.measure.records import Entry, load_as
from tiled_matmul.measure.spent import CLOCK, spending
from tiled_matmul.measure.suite import Job, Suite, Taken
from tiled_matmul.models.distributed import Line, Machine

STORE = ROOT / "results" / "distributed"
SUITE = "distributed"
KINDS = ("checked", "moved", "link", "traced", "time", "sends")
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
class Measured:
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


def records(gpu: str, folder: Path = STORE) -> dict[int, Measured]:
    """Return what was measured on two, four and eight of a GPU, as far as it was.

    `gpu` is as in the names of the files, such as "h200". Raises ValueError if there is none.
    """
    paths = {count: folder / f"{gpu}-x{count}.json" for count in COUNTS}
    found = {count: load(path) for count, path in paths.items() if path.exists()}
    if not found:
        raise ValueError(f"there is no file of {', '.join(map(str, COUNTS))} {gpu!r} in {folder}")
    return found


def load(path: Path) -> Measured:
    """Return a file's contents. Raises ValueError that names the file."""
    return load_as(path, SUITE, parse)


def parse(entries: Sequence[Entry]) -> Measured:
    """Return what entries say. Raises ValueError for a time that is none, or for no entry."""
    of: dict[str, list[Entry]] = {name: [] for name in KINDS}
    for entry in entries:
        of[entry.case["of"]].append(entry)
    missing = [name for name in KINDS if not of[name]]
    if missing:
        raise ValueError(f"nothing was measured of {', '.join(missing)}")
    times = []
    for each in of["time"]:
        us = {name: 1e3 * one["ms"] for name, one in each.values.items()}
        if not all(took > 0 for took in us.values()):
            raise ValueError(f"{dict(each.case)} has a time that is none")
        spread = {name: one["spread"] for name, one in each.values.items()}
        sizes = (each.case[name] for name in ("m", "n", "k", "dtype"))
        times.append(Timed(*sizes, us, spread))
    link = {each.case["way"]: _microseconds(each.values) for each in of["link"]}
    sends = []
    for each in of["sends"]:
        blocks = {int(size): one["blocks"] for size, one in each.values.items()}
        sends.append(Sent(each.case["settings"], _microseconds(each.values), blocks))
    pieces = {
        each.case["cut"]: [(what, x, y) for what, x, y in each.values["pieces"]]
        for each in of["traced"]
    }
    checked = [
        {name: each.case[name] for name in ("cut", *"mnk")} | dict(each.values)
        for each in of["checked"]
    ]
    moved = {each.case["cut"]: each.values["bytes"] for each in of["moved"]}
    moved_at, traced_at = (of[name][0].case["at"] for name in ("moved", "traced"))
    run = entries[-1].run
    return Measured(
        run, run["ranks"], checked, moved, moved_at, link, sends, pieces, traced_at, times
    )


def _microseconds(found: Mapping[str, Any]) -> dict[int, float]:
    """Return the microseconds by bytes of one way of transfer."""
    return {int(size): 1e3 * each["ms"] for size, each in found.items()}


# --- the suite ------------------------------------------------------------------------------------

DTYPES = ("float16", "bfloat16")
SIZES = 2048, 4096, 8192, 16384
CHECKED, COUNTED, CALLS = (384, 512, 640), 4096, 20
TRACED = {"names": ("ring", "pulled"), "m": 8192, "n": 8192, "k": 8192, "dtype": "float16"}
# How many channels NCCL has for sends and receives; ranks share them.
SETTINGS = (
    {}, {"NCCL_MIN_P2P_NCHANNELS": "64"},
    {"NCCL_MAX_P2P_NCHANNELS": "16"}, {"NCCL_MAX_P2P_NCHANNELS": "8"},
)  # fmt: skip
TRANSFERS = [2**power for power in range(12, 31, 2)]
ON_ONE = ("one GPU", "one GPU, torch", "product", "product, torch", "product, in parts")
BARE = ("transfer, gathered", "transfer, pulled")
BY_TORCH = ("torch, gathered", "torch, fused", "torch, DTensor")


def slowest(reports: Sequence[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Return for each name the time of the slowest rank, and the largest spread."""
    return {
        name: {key: max(each[name][key] for each in reports) for key in ("ms", "spread")}
        for name in reports[0]
    }


def run(
    tasks: Sequence[Mapping[str, Any]], settings: Mapping[str, str] | None = None
) -> list[tuple[dict, ...]]:
    """Return for each task what the ranks, one for each GPU here, report of it."""
    import torch

    from tiled_matmul.distributed import run as on_ranks

    ranks, options = torch.cuda.device_count(), {"settings": settings} if settings else {}
    with spending(CLOCK):
        reports = on_ranks(tasks, ranks, device="cuda", timeout_s=50, **options)
    return list(zip(*reports, strict=True))


def checked() -> Iterator[Taken]:
    """Check every cut, and count the bytes that its calls receive."""
    import torch

    from tiled_matmul.distributed.cuts import CUTS, GPUS_ONLY

    sizes = [size * torch.cuda.device_count() for size in CHECKED]
    product = dict(zip("mnk", sizes, strict=True))
    same = {"do": "check", **product, "dtype": "float16", "whole": True}
    for cut, each in zip(CUTS, run([same | {"cut": cut} for cut in CUTS]), strict=True):
        # Of what copy engines pull, calls say nothing.
        counted = None if cut in GPUS_ONLY else max(report["received"] for report in each)
        case = {"of": "checked", "cut": cut, **product}
        yield case, {"received": counted, "held": each[0]["held"]}


def moved() -> Iterator[Taken]:
    """Count the bytes of each cut by the links."""
    from tiled_matmul.distributed.cuts import CUTS

    square = dict.fromkeys("mnk", COUNTED) | {"dtype": "float16"}
    (each,) = run([{"do": "moved", "names": list(CUTS), "calls": CALLS} | square])
    for cut in CUTS:
        found = [report[cut] for report in each]
        bytes_moved = None if None in found else max(found)
        yield {"of": "moved", "cut": cut, "at": COUNTED}, {"bytes": bytes_moved}


def link() -> Iterator[Taken]:
    """Time transfers alone."""
    (each,) = run([{"do": "link", "bytes": TRANSFERS}])
    for way in each[0]:
        yield {"of": "link", "way": way}, slowest([report[way] for report in each])


def traced() -> Iterator[Taken]:
    """Record what rank 0 does when."""
    (each,) = run([{"do": "trace"} | TRACED])
    for cut, pieces in each[0].items():
        yield {"of": "traced", "cut": cut, "at": TRACED["m"]}, {"pieces": pieces}


def timed(size: int, dtype: str) -> Iterator[Taken]:
    """Time a square, and a product with as much work for each GPU as one has there."""
    import torch

    from tiled_matmul.distributed.cuts import CUTS

    names = [*ON_ONE, *BARE, *BY_TORCH, *CUTS, "pulled, from shared"]
    wide = ["product", "columns", "gathered", "pulled", "pulled, from shared"]
    same = {"do": "time", "dtype": dtype, "seed": size, "m": size, "k": size}
    tasks = [
        same | {"n": size, "names": names},
        same | {"n": size * torch.cuda.device_count(), "names": wide},
    ]
    for task, each in zip(tasks, run(tasks), strict=True):
        case = {"of": "time"} | {key: task[key] for key in ("m", "n", "k", "dtype")}
        yield case, slowest([report["times"] for report in each])


def sends(settings: Mapping[str, str]) -> Iterator[Taken]:
    """Time what each rank passes to the next, under settings of NCCL."""
    (each,) = run([{"do": "sends", "bytes": TRANSFERS}], settings)
    sent = slowest([dict(report) for report in each])
    for size, one in sent.items():
        one["blocks"] = each[0][size]["blocks"]
    yield {"of": "sends", "settings": dict(settings)}, sent


def jobs() -> list[Job]:
    """Return the jobs, in the order in which a chapter needs them."""
    ran = ("triton_best", "distributed.cuts::CUTS")
    found = [Job(take.__name__, ran, take) for take in (checked, moved)]
    found += [Job("link", (), link), Job("traced", ran, traced)]
    found += [
        Job(f"{size}³ {dtype}", ran, partial(timed, size, dtype))
        for dtype in DTYPES
        for size in SIZES
    ]
    for settings in SETTINGS:
        text = ", ".join(f"{x}={y}" for x, y in settings.items()) or "as NCCL chooses"
        found.append(Job(f"sends, {text}", (), partial(sends, settings)))
    return found


def more() -> dict[str, Any]:
    """Return what several GPUs add to a run's provenance. Raises ValueError for fewer than two."""
    import torch

    if (ranks := torch.cuda.device_count()) < 2:
        raise ValueError(f"this takes two GPUs or more, and there is {ranks}")
    return {"ranks": ranks}


SUITES = (
    Suite("distributed", "one product over all GPUs of this machine", jobs,
          "distributed/{machine}-x{ranks}.json", machine="gpus", more=more),
)  # fmt: skip
