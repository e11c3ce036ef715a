"""The records of products with 8-bit floats, which `measure fp8` takes on a GPU."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from tiled_matmul import ROOT
from tiled_matmul.measure import records
from tiled_matmul.measure.records import Entry
from tiled_matmul.measure.spent import CLOCK, COMPILER, spending
from tiled_matmul.measure.suite import Job, Suite, in_workers

FP8 = ROOT / "results" / "fp8"
SUITE = "fp8"
OURS, TORCH = "triton_fp8", "torch"


@dataclass(frozen=True)
class Taken:
    """A product (M, N, K) with the milliseconds of both sides; `mode` names its scales."""

    shape: tuple[int, int, int]
    mode: str
    ms: Mapping[str, float]

    @property
    def ratio(self) -> float:
        """How many times as fast as torch's kernel the course's is."""
        return self.ms[TORCH] / self.ms[OURS]

    def tflops(self, name: str = OURS) -> float:
        """Return the rate of one side."""
        return 2e-9 * math.prod(self.shape) / self.ms[name]


@dataclass(frozen=True)
class Lost:
    """The mean relative error of sums of `k` products, on a GPU and by the model.

    `equal` is the share of sums that the model predicts to the last bit; with `fast`, sums stay in
    the tensor cores.
    """

    k: int
    inputs: str
    fast: bool
    measured: float
    predicted: float
    equal: float


def load(path: Path = FP8 / "h200.json") -> tuple[list[Taken], list[Lost]]:
    """Return (times, errors of sums) of a file. Raises ValueError that names the file."""
    return records.load_as(path, SUITE, parse)


def parse(entries: Sequence[Entry]) -> tuple[list[Taken], list[Lost]]:
    """Return (times, errors of sums) of entries. Raises ValueError for a time that is none."""
    of = {what: [e for e in entries if e.case["of"] == what] for what in ("time", "sums")}
    times = [
        Taken(tuple(e.case[size] for size in "mnk"), e.case["mode"], e.values["ms"])
        for e in of["time"]
    ]
    for each in times:
        if not {OURS, TORCH} <= set(each.ms) or not all(ms > 0 for ms in each.ms.values()):
            raise ValueError(f"{each.shape}, {each.mode} has no times: {dict(each.ms)}")
    names = ("k", "inputs", "fast")
    return times, [Lost(*(e.case[x] for x in names), **e.values) for e in of["sums"]]


def mean_ratio(taken: Sequence[Taken]) -> float:
    """Return the geometric mean of the ratios to torch. Raises ValueError if there are none."""
    if not taken:
        raise ValueError("there is no product to take the mean of")
    return math.exp(sum(math.log(each.ratio) for each in taken) / len(taken))


# --- the suite ------------------------------------------------------------------------------------

SQUARES = [(size, size, size) for size in (1024, 2048, 4096, 8192, 16384)]
UNEVEN = [
    *[(16, 7168, 4096), (64, 2112, 7168), (128, 24576, 1536), (4096, 7168, 2048)],
    *[(3000, 4000, 5008), (8192, 1024, 8192), (512, 512, 16384), (5120, 13824, 5120)],
]
# Kinds of scales, of a and of b's transpose, and whether sums stay in the tensor cores.
MODES = {
    "tensor, fast": ("tensor", "tensor", True),
    "tensor": ("tensor", "tensor", False),
    "row, fast": ("row", "row", True),
    "row": ("row", "row", False),
    "1x128 and 128x128": ("1x128", "128x128", False),
    "1x128 and 1x128": ("1x128", "1x128", False),
}
ROUNDS = 11
ROWS = 64  # of C that are checked
DEEP = (1024, 4096, 16384, 65536)  # K of the errors
SIDE = 256  # M and N of the errors
WHOLE = {"block": (64, 128, 128)}  # with K in one part: sums of parts are shorter, and lose less
OUTLIERS = (1000, 100_000)


def scaled(mode: str, x: Any, w: Any) -> tuple[Any, Any, dict]:
    """Return (a, b, options of the rung) for x (M, K) and w (N, K): a is x, b is w's transpose."""
    from tiled_matmul.kit.float8 import quantised

    kind_a, kind_b, fast = MODES[mode]
    a, scale_a = quantised(x, kind_a)
    b, scale_b = quantised(w, kind_b)
    return a, b.T, {"scale_a": scale_a, "scale_b": scale_b.T, "fast": fast}


def by_torch(mode: str, a: Any, b: Any, options: dict) -> Callable:
    """Return a function without arguments that makes the same product with torch, in bfloat16."""
    import torch
    from torch.nn import functional

    scale_a, scale_b = options["scale_a"], options["scale_b"]
    if mode != "1x128 and 128x128":
        numbers = {"out_dtype": torch.bfloat16, "use_fast_accum": options["fast"]}
        if mode.startswith("tensor"):
            scale_a, scale_b = scale_a[0, 0], scale_b[0, 0]
        if mode == "1x128 and 1x128":  # here b's scales lie by rows
            scale_b = scale_b.contiguous()
        return partial(torch._scaled_mm, a, b, scale_a, scale_b, **numbers)
    # The scales of b need rows, in its transpose, that are padded to a multiple of 4.
    padded = functional.pad(scale_b.T, (0, -scale_b.shape[0] % 4)).contiguous()
    kinds = functional.ScalingType
    a_kind, b_kind = kinds.BlockWise1x128, kinds.BlockWise128x128
    return partial(functional.scaled_mm, a, b, scale_a, a_kind, padded.T, b_kind)


def matrices(m: int, n: int, k: int) -> tuple[Any, Any]:
    """Return x (M, K) and w (N, K) of normal numbers, on the GPU."""
    import torch

    numbers = torch.Generator("cuda").manual_seed(m + n + k)
    made = {"device": "cuda", "dtype": torch.bfloat16, "generator": numbers}
    return torch.randn(m, k, **made), torch.randn(n, k, **made)


def check(c: Any, a: Any, b: Any, options: dict) -> None:
    """Raise ValueError unless some rows of C are right, within what `fast` may lose."""
    import torch

    from tiled_matmul.kit.float8 import dequantised

    rows = torch.linspace(0, c.shape[0] - 1, min(c.shape[0], ROWS), device=c.device).long()
    wanted = dequantised(a, options["scale_a"])[rows] @ dequantised(b, options["scale_b"])
    error = ((c[rows].double() - wanted).norm() / wanted.norm()).item()
    if not error < (0.02 if options["fast"] else 0.004):
        raise ValueError(f"C {tuple(c.shape)} is wrong: a relative error of {error:.2g}")


def take(shape: tuple[int, int, int], mode: str) -> Iterator[tuple[dict, dict]]:
    """Check the rung at a shape and time it against torch."""
    import torch

    from tiled_matmul.ladder import rung
    from tiled_matmul.measure.clock import time_replays

    with spending(COMPILER):
        a, b, options = scaled(mode, *matrices(*shape))
        theirs = by_torch(mode, a, b, options)
        out = torch.full(shape[:2], math.nan, dtype=torch.bfloat16, device="cuda")
        ours = partial(rung(OURS).matmul, a, b, out, **options)
        for c in (ours(), theirs()):
            check(c, a, b, options)
    timings = time_replays({TORCH: theirs, OURS: ours}, TORCH, rounds=ROUNDS)
    case = {"of": "time"} | dict(zip("mnk", shape, strict=True)) | {"mode": mode}
    yield (
        case,
        {
            "ms": {name: round(timing.median_ms, 6) for name, timing in timings.items()},
            "spreads": {name: round(timing.spread, 4) for name, timing in timings.items()},
        },
    )


def compile_first(shape: tuple[int, int, int], mode: str) -> None:
    """Run the rung once, so that its kernel is in Triton's cache."""
    from tiled_matmul.ladder import rung

    a, b, options = scaled(mode, *matrices(*shape))
    rung(OURS).matmul(a, b, **options)


def inputs(k: int, place: str, side: int = SIDE) -> Iterator[tuple[str, Any, Any]]:
    """Yield (name, x, w) of float32 matrices (side, K): plain ones, and ones with outliers."""
    import torch

    numbers = torch.Generator(place).manual_seed(k)
    x, w = (torch.randn(side, k, generator=numbers, device=place) for _ in range(2))
    yield "normal", x, w
    yield "positive", x.abs(), w.abs()
    for times in OUTLIERS:
        row, element = x.clone(), x.clone()
        row[side // 2] *= times
        element[side // 2, k // 2] = times * x.abs().max()
        yield f"a row {times:,} times as large", row, w
        yield f"an element {times:,} times as large", element, w


def errors(k: int, place: str = "cuda", side: int = SIDE, **tiles: Any) -> Iterator[dict[str, Any]]:
    """Yield the errors of every mode at a K, in float32.

    "sums" compares with the product of what the 8-bit numbers mean, "all" with that of the numbers
    before. Both are relative: norms of rows of C, "worst" and "median" of the rows.
    """
    import torch

    from tiled_matmul.kit.float8 import dequantised
    from tiled_matmul.ladder import rung

    for name, x, w in inputs(k, place, side):
        exact = x.double() @ w.double().T
        for mode in MODES:
            a, b, options = scaled(mode, x, w)
            c = rung(OURS).matmul(a, b, **options, out_dtype=torch.float32, **tiles).double()
            meant = dequantised(a, options["scale_a"]) @ dequantised(b, options["scale_b"])
            found = {}
            for what, right in (("sums", meant), ("all", exact)):
                rows = (c - right).norm(dim=1) / right.norm(dim=1)
                found[what] = {"worst": rows.max().item(), "median": rows.median().item()}
            yield {"k": k, "inputs": name, "mode": mode} | found


def against_model(k: int, place: str = "cuda", side: int = 8, **tiles: Any) -> Iterator[dict]:
    """Yield what a GPU's sums lose beside what `models.narrow_sums` says: mean relative errors.

    `equal` is the share of C's elements that the model predicts to the last bit.
    """
    import torch

    from tiled_matmul.ladder import rung
    from tiled_matmul.models.narrow_sums import narrow_sums

    one = torch.ones(1, 1, device=place)
    for name, x, w in list(inputs(k, place, side))[:2]:
        a, b = (each.to(torch.float8_e4m3fn) for each in (x, w))
        exact = (a.double() @ b.double().T).cpu().numpy()
        for fast in (True, False):
            options = {"scale_a": one, "scale_b": one, "fast": fast, "out_dtype": torch.float32}
            c = rung(OURS).matmul(a, b.T, **options, **tiles).cpu().numpy()
            values = a.float().cpu().numpy(), b.float().cpu().numpy().T
            model = narrow_sums(*values, None if fast else 128)
            size = abs(exact).mean()
            yield {
                "k": k,
                "inputs": name,
                "fast": fast,
                "measured": abs(c - exact).mean() / size,
                "predicted": abs(model - exact).mean() / size,
                "equal": float((c == model.astype("float32")).mean()),
            }


def _lost(of: str, k: int) -> Iterator[tuple[dict, dict]]:
    """Yield (case, values) of the errors at a K, or of what the model says of its sums."""
    found, keys = (
        (errors(k, **WHOLE), ("k", "inputs", "mode"))
        if of == "errors"
        else (against_model(k, **WHOLE), ("k", "inputs", "fast"))
    )
    with spending(CLOCK):
        rows = list(found)
    for each in rows:
        case = {name: each.pop(name) for name in keys}
        yield {"of": of} | case, each


def jobs() -> list[Job]:
    """Return a job for each shape and mode, and for the errors at each K."""
    found = [
        Job(f"{'×'.join(map(str, shape))} {mode}", (OURS,), partial(take, shape, mode))
        for shape in SQUARES + UNEVEN
        for mode in MODES
    ]
    for of in ("errors", "sums"):
        found += [Job(f"{of}, K {k}", (OURS,), partial(_lost, of, k)) for k in DEEP]
    return found


def _prepare(jobs: Sequence[Job]) -> None:
    in_workers(compile_first, [job.take.args for job in jobs if job.take.func is take])


SUITES = (
    Suite("fp8", "8-bit floats with scales beside torch's, and their errors", jobs,
          "fp8/{machine}.json", prepare=_prepare),
)  # fmt: skip
