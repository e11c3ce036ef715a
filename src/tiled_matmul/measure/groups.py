"""The records of batches and of rows in groups, which `measure groups` takes on a GPU."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from tiled_matmul import ROOT
from tiled_matmul.measure import records
from tiled_matmul.measure.records import Entry
from tiled_matmul.measure.spent import COMPILER, spending
from tiled_matmul.measure.suite import Job, Suite

GROUPS = ROOT / "results" / "groups"
SUITE = "groups"
OURS, TORCH = "rung", "torch"


@dataclass(frozen=True)
class Taken:
    """A case with the milliseconds of both sides.

    `rows` is None for a batch of equal products; otherwise that many rows lie in `count` groups of
    a `kind`, along the sum if `along`.
    """

    what: str
    count: int
    rows: int | None
    kind: str
    n: int
    k: int
    along: bool
    by_columns: bool
    flops: int
    ms: Mapping[str, float]

    @property
    def ratio(self) -> float:
        """How many times as fast as torch's kernel the course's is."""
        return self.ms[TORCH] / self.ms[OURS]

    def tflops(self, name: str = OURS) -> float:
        """Return the rate of one side."""
        return 1e-9 * self.flops / self.ms[name]


def load(path: Path = GROUPS / "h200.json") -> tuple[list[Taken], dict[str, float]]:
    """Return (cases, the host's µs for a call by name). Raises ValueError that names the file."""
    return records.load_as(path, SUITE, parse)


def parse(entries: Sequence[Entry]) -> tuple[list[Taken], dict[str, float]]:
    """Return (cases, the host's µs) of entries. Raises ValueError for a time that is none."""
    taken, host = [], {}
    for entry in entries:
        case, ms = entry.case, entry.values.get("ms", {})
        if case["of"] == "host":
            host[case["name"]] = entry.values["us"]
            continue
        grouped = {"rows": case.get("rows"), "kind": case.get("kind", "")}
        grouped |= {"along": case.get("along", False), "by_columns": case["by_columns"]}
        both = {name: case[name] for name in ("what", "count", "n", "k")}
        taken.append(Taken(**both, **grouped, flops=entry.values["flops"], ms=ms))
        if not {OURS, TORCH} <= set(ms) or not all(took > 0 for took in ms.values()):
            raise ValueError(f"{entry.job} has no times: {dict(ms)}")
    return taken, host


# --- the suite ------------------------------------------------------------------------------------

ROUNDS = 11
SEED = 5


@dataclass(frozen=True)
class Batch:
    """`count` products of M×N×K; `by_columns` says how each b lies in memory, as keys do."""

    what: str
    count: int
    m: int
    n: int
    k: int
    by_columns: bool = False

    @property
    def flops(self) -> int:
        """Multiplications and additions."""
        return 2 * self.count * self.m * self.n * self.k

    def __str__(self) -> str:
        return f"{self.count} × {self.m}×{self.n}×{self.k}" + " b by columns" * self.by_columns


@dataclass(frozen=True)
class Groups:
    """`rows` rows in `count` groups of a kind, K and N; with `along` they are the sum of K×N."""

    what: str
    count: int
    rows: int
    n: int
    k: int
    kind: str
    by_columns: bool = False
    along: bool = False

    @property
    def flops(self) -> int:
        """Multiplications and additions."""
        return 2 * self.rows * self.n * self.k

    def __str__(self) -> str:
        sizes = f"{self.rows} rows, {self.count} groups {self.kind}, K {self.k} N {self.n}"
        return sizes + " b by columns" * self.by_columns + " along the sum" * self.along


BATCHES = (
    Batch("attention, q·kᵀ", 128, 1024, 1024, 64, True),
    Batch("attention, p·v", 128, 1024, 64, 1024),
    Batch("attention, q·kᵀ", 128, 2048, 2048, 128, True),
    Batch("attention, p·v", 128, 2048, 128, 2048),
    Batch("attention, q·kᵀ of some rows", 96, 128, 8192, 128, True),
    Batch("decoding, q·kᵀ", 128, 8, 2048, 128, True),
    Batch("decoding, p·v", 128, 8, 128, 2048),
    Batch("many small", 4096, 32, 32, 32),
    Batch("many small", 1024, 64, 64, 64),
    Batch("many small", 1024, 128, 128, 128),
    Batch("many small", 64, 256, 256, 256),
    Batch("many small", 256, 48, 96, 80),
    Batch("uneven", 256, 200, 300, 100),
    Batch("uneven", 512, 77, 64, 77),
    Batch("uneven", 32, 300, 500, 700),
    Batch("uneven", 64, 1001, 1001, 1001),
    Batch("few large", 4, 4096, 4096, 4096),
    Batch("few large", 8, 2048, 2048, 2048),
    Batch("few large", 8, 1500, 1500, 1500),
    Batch("few large", 16, 1000, 1000, 1000),
    Batch("few large", 16, 1024, 1024, 1024),
    Batch("few large", 32, 512, 512, 512),
    Batch("few large", 16, 512, 4096, 4096),
    Batch("one row", 64, 1, 4096, 4096),
    Batch("one row", 64, 1, 4096, 4096, True),
    Batch("one column", 64, 4096, 1, 4096),
)
GROUPS_TIMED = (
    Groups("Mixtral, up", 8, 4096, 14336, 4096, "equal"),
    Groups("Mixtral, up", 8, 4096, 14336, 4096, "zipf"),
    Groups("Mixtral, up", 8, 4096, 14336, 4096, "zipf", True),
    Groups("Mixtral, up", 8, 16384, 14336, 4096, "equal"),
    Groups("Mixtral, up", 8, 16384, 14336, 4096, "zipf"),
    Groups("Mixtral, down", 8, 4096, 4096, 14336, "zipf"),
    Groups("Mixtral, up", 8, 512, 14336, 4096, "zipf"),
    Groups("Mixtral, up", 8, 128, 14336, 4096, "zipf"),
    Groups("Mixtral, up", 8, 16, 14336, 4096, "few"),
    Groups("64 experts", 64, 8192, 2048, 7168, "zipf"),
    Groups("64 experts", 64, 8192, 1408, 2048, "equal"),
    Groups("64 experts", 64, 8192, 1408, 2048, "zipf"),
    Groups("64 experts", 64, 2048, 1408, 2048, "zipf"),
    Groups("64 experts", 64, 512, 2048, 2048, "zipf"),
    Groups("256 experts", 256, 8192, 2048, 7168, "zipf"),
    Groups("256 experts", 256, 8192, 2048, 7168, "zipf", True),
    Groups("128 experts", 128, 16384, 768, 2048, "zipf"),
    Groups("few tokens", 64, 64, 2048, 7168, "few"),
    Groups("few tokens", 64, 64, 2048, 7168, "few", True),
    Groups("few tokens", 64, 64, 1408, 2048, "few"),
    Groups("1000 small groups", 1000, 5000, 256, 256, "zipf"),
    Groups("gradient, Mixtral", 8, 4096, 14336, 4096, "zipf", along=True),
    Groups("gradient, Mixtral", 8, 16384, 14336, 4096, "equal", along=True),
    Groups("gradient, 64 experts", 64, 8192, 1408, 2048, "zipf", along=True),
    Groups("gradient, 256 experts", 256, 8192, 1408, 2048, "zipf", along=True),
)


def offsets(case: Groups) -> Any:
    """Return where each group ends, int32 on the CPU."""
    import torch

    numbers = torch.Generator().manual_seed(SEED + case.count + case.rows)
    if case.kind == "equal":
        shares = torch.full((case.count,), case.rows // case.count)
    else:
        zipf = 1 / torch.arange(1, case.count + 1).double()
        weights = zipf if case.kind == "zipf" else torch.ones(case.count)
        drawn = torch.multinomial(weights, case.rows, True, generator=numbers)
        shares = torch.bincount(drawn, minlength=case.count)
        shares = shares[torch.randperm(case.count, generator=numbers)]
    return shares.cumsum(0).int()


def matrices(count: int, rows: int, columns: int, dtype: Any, by_columns: bool = False) -> Any:
    import torch

    if by_columns:
        return torch.randn((count, columns, rows), device="cuda", dtype=dtype).mT
    return torch.randn((count, rows, columns), device="cuda", dtype=dtype)


def some(size: int, most: int) -> Any:
    """Return at most so many numbers below a size, the first and the last among them."""
    import torch

    return torch.linspace(0, size - 1, min(size, most), device="cuda").long()


def of_batches(case: Batch) -> tuple[dict[str, Callable], Callable]:
    """Return the calls to time, and a function that checks a result."""
    import torch

    from tiled_matmul.check import assert_matmul
    from tiled_matmul.ladder import triton_batched

    a = matrices(case.count, case.m, case.k, torch.float16)
    b = matrices(case.count, case.k, case.n, torch.float16, case.by_columns)
    out = torch.full((case.count, case.m, case.n), math.nan, dtype=a.dtype, device="cuda")

    def check() -> None:
        rows = some(case.m, 40)
        for i in some(case.count, 3):
            assert_matmul(out[i, rows], a[i, rows], b[i])
        if not bool(out.isfinite().all()):
            raise AssertionError(f"{case}: not all of the result was written")

    calls = {
        TORCH: lambda: torch.bmm(a, b, out=out),
        OURS: lambda: triton_batched.matmul(a, b, out),
    }
    return calls, check


def of_groups(case: Groups) -> tuple[dict[str, Callable], Callable]:
    """Return the calls to time, and a function that checks a result."""
    import torch

    from tiled_matmul.check import assert_matmul
    from tiled_matmul.ladder import triton_grouped

    a = torch.randn((case.rows, case.k), device="cuda", dtype=torch.bfloat16)
    if case.along:
        b = torch.randn((case.rows, case.n), device="cuda", dtype=torch.bfloat16)
    else:
        b = matrices(case.count, case.k, case.n, torch.bfloat16, case.by_columns)
    ends = offsets(case)
    on_gpu = ends.cuda()
    left = a.T if case.along else a
    shape = (case.count, case.k, case.n) if case.along else (case.rows, case.n)
    out = torch.full(shape, math.nan, dtype=a.dtype, device="cuda")

    def check() -> None:
        bounds = [0, *ends.tolist()]
        for g in some(case.count, 4).tolist():
            begin, end = bounds[g], bounds[g + 1]
            if case.along:
                rows = some(case.k, 40)
                if begin == end:
                    assert not out[g].any()
                else:
                    assert_matmul(out[g, rows], a[begin:end, rows].T, b[begin:end])
            elif begin < end:
                rows = begin + some(end - begin, 20)
                assert_matmul(out[rows], a[rows], b[g])
        if not bool(out.isfinite().all()):
            raise AssertionError(f"{case}: not all of the result was written")

    calls = {
        TORCH: lambda: torch._grouped_mm(left, b, offs=on_gpu),
        OURS: lambda: triton_grouped.matmul(left, b, out, offsets=on_gpu),
    }
    return calls, check


def take(case: Batch | Groups) -> Iterator[tuple[dict, dict]]:
    """Check the rung at one case and time it against torch."""
    import torch

    from tiled_matmul.measure.clock import time_replays

    torch.cuda.empty_cache()
    torch.manual_seed(SEED)
    with spending(COMPILER):
        calls, check = (of_batches if isinstance(case, Batch) else of_groups)(case)
        calls[OURS]()
        check()
    timings = time_replays(calls, TORCH, rounds=ROUNDS)
    of = "batch" if isinstance(case, Batch) else "groups"
    yield (
        {"of": of, **asdict(case)},
        {
            "flops": case.flops,
            "ms": {name: timing.median_ms for name, timing in timings.items()},
            "spreads": {name: timing.spread for name, timing in timings.items()},
        },
    )


def host_times(kind: str) -> Iterator[tuple[dict, dict]]:
    """Yield the host's microseconds for calls so small that the GPU keeps up with them."""
    from tiled_matmul.measure.host import host_us

    of, case = SMALL[kind]
    for name, call in of(case)[0].items():
        yield {"of": "host", "name": f"{kind}, {name}"}, {"us": host_us(call)}


SMALL = {
    "bmm": (of_batches, Batch("", 2, 64, 64, 64)),
    "grouped_mm": (of_groups, Groups("", 4, 64, 64, 64, "few")),
    "grouped_mm along the sum": (of_groups, Groups("", 4, 64, 64, 64, "few", along=True)),
}


def jobs() -> list[Job]:
    """Return a job for each case, and for the host's time of each kind of call."""
    batched, grouped = "triton_batched", "triton_grouped"
    found = [Job(f"{x.what}: {x}", (batched,), partial(take, x)) for x in BATCHES]
    found += [Job(f"{x.what}: {x}", (grouped,), partial(take, x)) for x in GROUPS_TIMED]
    for kind in SMALL:
        rung = batched if kind == "bmm" else grouped
        found.append(Job(f"host: {kind}", (f"{rung}, host",), partial(host_times, kind)))
    return found


SUITES = (
    Suite("groups", "batches and rows in groups beside torch's", jobs, "groups/{machine}.json"),
)
