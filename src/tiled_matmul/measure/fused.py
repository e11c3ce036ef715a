"""Layers with a fused epilogue against torch's: which are measured, and what a file of them holds.

`measure fused` takes them on a GPU into `results/fused/`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import partial
from pathlib import Path
from typing import Any

from tiled_matmul import ROOT
from tiled_matmul.measure import records
from tiled_matmul.measure.records import Entry, rounded
from tiled_matmul.measure.spent import COMPILER, spending
from tiled_matmul.measure.suite import Job, Suite, in_workers
from tiled_matmul.models.epilogue import Layer

FUSED = ROOT / "results" / "fused"
SUITE = "fused"
OURS, TORCH = "triton_fused", "torch"
STEPS = ("bias", "activation", "residual")  # of a layer, in their order
SHAPES = {
    "square": tuple((n, n, n) for n in (1024, 2048, 4096, 8192)),
    "layer": (
        (8192, 8192, 2048),
        (8192, 2048, 8192),
        (4096, 14336, 4096),
        (64, 4096, 11008),
        (64, 11008, 4096),
        (1, 4096, 4096),
        (300, 5000, 3000),
    ),
    "short K": tuple((16384, 4096, k) for k in (64, 128, 256)),
}
# Steps that are measured everywhere, by what they are called: an activation's name or None, and
# whether there is a residual. The bias is always there.
MEASURED = {"bias": (None, False), "GELU": ("gelu", False), "GELU + residual": ("gelu", True)}
MORE = {"residual": (None, True), "SiLU": ("silu", False), "tanh GELU": ("gelu_tanh", False)}
AT_MORE = ((8192, 8192, 2048), (64, 4096, 11008), (16384, 4096, 64))


@dataclass(frozen=True)
class Case:
    """A layer that is measured: sizes, dtype, "n" or "t" for a weight (K, N) or (N, K), steps."""

    m: int
    n: int
    k: int
    steps: str
    dtype: str = "float16"
    weight: str = "t"

    @property
    def activation(self) -> str | None:
        """The activation's name."""
        return (MEASURED | MORE)[self.steps][0]

    @property
    def residual(self) -> bool:
        """Is a residual added?"""
        return (MEASURED | MORE)[self.steps][1]

    @property
    def layer(self) -> Layer:
        """What the model knows of it."""
        return Layer(self.m, self.n, self.k, self.activation is not None, self.residual)

    def __str__(self) -> str:
        return f"{self.m}×{self.n}×{self.k} {self.dtype} {self.weight} {self.steps}"


def cases() -> Iterator[Case]:
    """Yield the layers that are measured."""
    for shapes in SHAPES.values():
        for shape in shapes:
            yield from (Case(*shape, steps) for steps in MEASURED)
    for shape in AT_MORE:
        yield from (Case(*shape, steps) for steps in MORE)
    for shape in ((4096, 4096, 4096), (300, 5000, 3000), (16384, 4096, 64)):
        yield from (Case(*shape, steps, "bfloat16", "n") for steps in MEASURED)


@dataclass(frozen=True)
class Taken:
    """One layer with the median milliseconds of each way to compute it, and their spreads."""

    case: Case
    ms: Mapping[str, float]
    spreads: Mapping[str, float]

    def ratio(self, baseline: str = TORCH) -> float:
        """Return how many times as fast as a baseline the fused kernel is."""
        return self.ms[baseline] / self.ms[OURS]


def load(path: Path = FUSED / "h200.json") -> tuple[dict[str, Any], list[Taken]]:
    """Return (everything else, the layers) of a file. Raises ValueError that names the file.

    Everything else is "provenance" of the last run, and "blocks", "bytes" and "compiled", each a
    dict by the name of what was measured.
    """
    return records.load_as(path, SUITE, parse)


def parse(entries: Sequence[Entry]) -> tuple[dict[str, Any], list[Taken]]:
    """Return (everything else, the layers) of entries. Raises ValueError for a wrong value."""
    names = [field.name for field in fields(Case)]
    more: dict[str, Any] = {"blocks": {}, "bytes": {}, "compiled": {}}
    taken = []
    for entry in entries:
        case, values = entry.case, entry.values
        if case["of"] == "layer":
            layer = Case(**{name: case[name] for name in names})
            taken.append(Taken(layer, values["ms"], values["spreads"]))
        else:
            found = values["kernels"] if case["of"] == "bytes" else dict(values)
            more[case["of"]][case["name"]] = found
    if entries:
        more["provenance"] = dict(entries[-1].run)
    for each in taken:
        if each.case.steps not in MEASURED | MORE:
            raise ValueError(f"unknown steps {each.case.steps!r}")
        if not {OURS, TORCH} <= set(each.ms) or not all(ms > 0 for ms in each.ms.values()):
            raise ValueError(f"{each.case} has no times: {dict(each.ms)}")
    return more, taken


# --- the suite ------------------------------------------------------------------------------------

ROUNDS = 11
ROWS = 256  # of C that are checked, from the first to the last
MOST_LAUNCHES = 20  # of a graph
MAX_TUNED = 2  # layers that torch tunes
COMPILED, TUNED = "torch.compile", "max-autotune"
AT_COMPILED = ((8192, 8192, 2048), (16384, 4096, 64), (64, 4096, 11008), (1024, 1024, 1024))
AT_STEPS = ("GELU + residual", "GELU")
COUNTED = ((8192, 8192, 2048), (16384, 4096, 64))
METRICS = ("dram__bytes_read.sum", "dram__bytes_write.sum")
BLOCKS = {"8192 tokens, width 2048": (8, 1024, 2048), "256 tokens, width 512": (1, 256, 512)}


def operands(case: Case) -> tuple:
    """Return x (M, K), w (N, K), bias, residual or None, and memory for the result."""
    import torch

    numbers = torch.Generator("cuda").manual_seed(case.m + 3 * case.n + 7 * case.k)
    dtype = getattr(torch, case.dtype)

    def drawn(*shape: int, size: float = 1.0) -> Any:
        return (torch.randn(shape, device="cuda", generator=numbers) * size).to(dtype)

    x, w = drawn(case.m, case.k), drawn(case.n, case.k, size=case.k**-0.5)
    if case.weight == "n":
        w = w.T.contiguous().T
    out = torch.empty(case.m, case.n, dtype=dtype, device="cuda")
    return x, w, drawn(case.n), drawn(case.m, case.n) if case.residual else None, out


def layer_of(activation: str | None) -> Callable:
    """Return the layer of torch's functions, of x, w, bias and residual."""
    from torch.nn import functional

    from tiled_matmul.torch.fused import ACTIVATIONS

    def layer(x: Any, w: Any, bias: Any, residual: Any) -> Any:
        y = functional.linear(x, w, bias)
        if activation is not None:
            y = ACTIVATIONS[activation][0](y)
        return y if residual is None else y + residual

    return layer


def calls(case: Case, modes: Sequence[str]) -> tuple[dict[str, Callable], Callable]:
    """Return each way to compute a layer, by name, and a check of the fused one's result."""
    import torch

    from tiled_matmul.check import MatmulError, poison
    from tiled_matmul.ladder import triton_fused

    x, w, bias, residual, out = operands(case)
    steps = {"bias": bias, "activation": case.activation, "residual": residual}
    layer = layer_of(case.activation)

    def fused() -> None:
        triton_fused.matmul(x, w.T, out=out, **steps)

    def check() -> None:
        poison(out)
        fused()
        rows = torch.linspace(0, case.m - 1, min(case.m, ROWS), device="cuda").long()
        some = None if residual is None else residual[rows].double()
        exact = layer(x[rows].double(), w.double(), bias.double(), some)
        unit = torch.finfo(out.dtype).eps
        wrong = ~((out[rows].double() - exact).abs() <= unit * (exact.abs() + 0.05))
        if bool(wrong.any()):
            raise MatmulError(f"{case}: {int(wrong.sum())} elements of {len(rows)} rows are wrong")

    found = {TORCH: lambda: layer(x, w, bias, residual), OURS: fused}
    for name, mode in ((COMPILED, "default"), (TUNED, "max-autotune-no-cudagraphs")):
        if name in modes:
            compiled = torch.compile(layer, mode=mode, dynamic=False)
            found[name] = lambda f=compiled: f(x, w, bias, residual)
    return found, check


def take(case: Case, modes: Sequence[str] = ()) -> Taken:
    """Check the fused layer, and return its Taken."""
    import torch

    from tiled_matmul.measure.clock import time_replays

    with torch.no_grad():
        with spending(COMPILER):
            ways, check = calls(case, modes)
            check()
        timings = time_replays(ways, TORCH, rounds=ROUNDS, most=MOST_LAUNCHES)
    return Taken(
        case,
        {name: timing.median_ms for name, timing in timings.items()},
        {name: timing.spread for name, timing in timings.items()},
    )


def _layer(case: Case) -> Iterator[tuple[dict, dict]]:
    taken = take(case)
    values = {"ms": rounded(taken.ms), "spreads": rounded(taken.spreads)}
    yield {"of": "layer", **asdict(case)}, values


def _compiled(case: Case, modes: Sequence[str]) -> Iterator[tuple[dict, dict]]:
    yield {"of": "compiled", "name": str(case)}, dict(take(case, modes).ms)


def blocks(name: str) -> Iterator[tuple[dict, dict]]:
    """Time a transformer block, forward, and forward with backward."""
    import copy

    import torch
    from torch import nn

    from tiled_matmul.measure.clock import time_interleaved
    from tiled_matmul.torch import Linear, TransformerBlock

    def step(model: Any, x: Any, grad: Any) -> None:
        x = x.detach().requires_grad_()
        model.zero_grad(set_to_none=True)
        model(x).backward(grad)

    def forward(model: Any, x: Any, grad: Any) -> None:
        with torch.no_grad():
            model(x)

    batch, tokens, width = BLOCKS[name]
    ours = TransformerBlock(width, width // 64, device="cuda", dtype=torch.bfloat16)
    theirs = copy.deepcopy(ours)
    for module in theirs.modules():
        if type(module) is Linear:
            module.__class__ = nn.Linear
    x, grad = (torch.randn(batch, tokens, width, device="cuda").bfloat16() for _ in range(2))
    for what, function in (("forward", forward), ("forward and backward", step)):
        ways = {
            key: lambda f=function, m=model, x=x, g=grad: f(m, x, g)
            for key, model in (("torch", theirs), ("ours", ours))
        }
        took = time_interleaved(ways, device="gpu", rounds=21)
        values = {key: t.median_ms for key, t in took.items()}
        values |= {f"{key} spread": t.spread for key, t in took.items()}
        yield {"of": "blocks", "name": f"{name}, {what}"}, values


def launch(*arguments: str) -> None:
    """Run a layer of torch, then the fused one, where `ncu` looks: of steps, M, N and K."""
    import torch

    from tiled_matmul.measure.ncu import looked_at

    steps, *shape = arguments
    with torch.no_grad():
        ways, _ = calls(Case(*map(int, shape), steps), ())
        flush = torch.empty(2**29, dtype=torch.uint8, device="cuda")
        for way in ways.values():
            way()
        for way in ways.values():
            flush.zero_()
            with looked_at():
                way()


def _bytes(shape: tuple[int, int, int]) -> Iterator[tuple[dict, dict]]:
    """Count the bytes of each kernel of a layer of torch, and of the fused one."""
    from tiled_matmul.measure import ncu

    steps = "GELU + residual"
    wanted = ncu.Wanted(METRICS, ())
    options = (*ncu.STARTED_BY_US, "--cache-control", "none")
    counted = ncu.count(__name__, [steps, *map(str, shape)], wanted, options)
    kernels = []
    for row in counted.rows:
        kernel = ncu.stored(f"{shape}", row, counted.metrics, wanted)
        read, written = (kernel["counters"][name] for name in METRICS)
        kernels.append({"kernel": kernel["name"][:60], "read": read, "written": written})
    yield {"of": "bytes", "name": "×".join(map(str, shape))}, {"kernels": kernels}


def compile_first(case: Case) -> None:
    """Run a layer once, so that its kernel is in Triton's cache."""
    calls(case, ())[1]()


def jobs() -> list[Job]:
    """Return jobs for transformer blocks, bytes, layers, and layers that torch compiled."""
    found = [Job(f"block: {name}", (OURS, "triton_best"), partial(blocks, name)) for name in BLOCKS]
    found += [
        Job(f"bytes: {'×'.join(map(str, shape))}", (OURS,), partial(_bytes, shape))
        for shape in COUNTED
    ]
    found += [Job(str(case), (OURS,), partial(_layer, case)) for case in cases()]
    layers = [Case(*shape, steps) for steps in AT_STEPS for shape in AT_COMPILED]
    for number, case in enumerate(layers):
        modes = (COMPILED, TUNED) if number < MAX_TUNED else (COMPILED,)
        found.append(Job(f"compiled: {case}", (OURS,), partial(_compiled, case, modes)))
    return found


def _prepare(jobs: Sequence[Job]) -> None:
    in_workers(compile_first, [job.take.args[0] for job in jobs if job.take.func is _layer])


SUITES = (
    Suite("fused", "layers with a fused epilogue beside torch's, and their bytes", jobs,
          "fused/{machine}.json", prepare=_prepare),
)  # fmt: skip

if __name__ == "__main__":
    launch(*sys.argv[1:])
