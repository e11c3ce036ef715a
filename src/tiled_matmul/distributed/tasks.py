"""A rank's task: its parts of A and B, a cut of the product, and whether the part of C is right."""

from __future__ import annotations

import linecache
from dataclasses import replace
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from tiled_matmul.distributed import cuts
from tiled_matmul.distributed.cuts import CUTS, Cut
from tiled_matmul.distributed.pending import SOURCE, Pending
from tiled_matmul.distributed.traffic import Traffic
from tiled_matmul.models.distributed import received

ROWS = 64  # of a part of C that are checked


def matrices(task: dict[str, Any], device: torch.device) -> tuple[Tensor, Tensor]:
    """Return all of A and B: the same on every rank.

    With `whole`, their elements are -1, 0 and 1, so that sums of few of them are exact.
    """
    numbers = torch.Generator(device).manual_seed(task.get("seed", 0))
    dtype = getattr(torch, task["dtype"])
    shapes = (task["m"], task["k"]), (task["k"], task["n"])
    if task.get("whole"):
        made = (torch.randint(-1, 2, s, generator=numbers, device=device) for s in shapes)
    else:
        made = (torch.randn(s, generator=numbers, device=device) for s in shapes)
    a, b = (x.to(dtype) for x in made)
    return a, b


def own(cut: Cut, a: Tensor, b: Tensor) -> list[Tensor]:
    """Return this rank's parts of A and B, as memory of their own."""
    parts = cut.parts(a, b, rank=dist.get_rank(), count=dist.get_world_size())
    return [x.contiguous().clone() for x in parts]


def check(cut: Cut, c: Tensor, a: Tensor, b: Tensor, exact: bool) -> float:
    """Return how far this rank's part of C is from float64, over its largest element.

    Raises ValueError if a row is wrong: by more than roundings of the sums of all ranks.
    """
    rank, p = dist.get_rank(), dist.get_world_size()
    rows, columns = (torch.arange(size, device=a.device) for size in (a.shape[0], b.shape[1]))
    at = cut.parts(a, b, rows[:, None].expand(-1, b.shape[1]), rank=rank, count=p)[2]
    left = cut.parts(a, b, columns.expand(a.shape[0], -1), rank=rank, count=p)[2][0]
    if not isinstance(c, Tensor):
        raise ValueError(f"rank {rank} returned {c!r}, wanted its part of C")
    if c.dtype != a.dtype:
        raise ValueError(f"rank {rank}'s part of C is {c.dtype}, wanted {a.dtype}")
    if c.shape != at.shape:
        raise ValueError(f"rank {rank} has {tuple(c.shape)} of C, wanted {tuple(at.shape)}")
    some = torch.linspace(0, len(c) - 1, min(len(c), ROWS), device=a.device).long()
    wanted = a[at[some, 0]].double() @ b.double()[:, left]
    largest = wanted.abs().max().item()
    by_row = (c[some].double() - wanted).abs().amax(1)
    far = by_row.max().item()
    most = 0 if exact else 2 * (p + 1) * torch.finfo(c.dtype).eps * largest
    if not far <= most:
        bad = some[~(by_row <= most)].tolist()
        raise ValueError(
            f"rank {rank}'s part of C is wrong in rows {bad[0]} to {bad[-1]}: by {far:.3g}, where "
            f"the largest element is {largest:.3g}"
        )
    return far / largest if largest else 0.0


def cut_of(task: dict[str, Any]) -> Cut:
    """Return a task's cut: one of CUTS, or the function in its `source`, whose parts are as there.

    The source may use `torch`, `dist`, `cuts` and what is in it.
    """
    cut, source = CUTS[task["cut"]], task.get("source")
    if source is None:
        return cut
    names = vars(cuts) | {"torch": torch, "dist": dist, "cuts": cuts}
    # So that findings can quote its lines.
    linecache.cache[SOURCE] = len(source), None, source.splitlines(keepends=True), SOURCE
    exec(compile(source, SOURCE, "exec"), names)
    return replace(cut, run=names[task["function"]])


def do_check(task: dict[str, Any], device: torch.device) -> dict[str, Any]:
    """Run one cut, check the rank's part of C, and count what it received.

    Where a wait is missing, nothing is checked, and `findings` say where. Raises ValueError if the
    part of C is wrong, or a part of A or B has changed.
    """
    cut = cut_of(task)
    a, b = matrices(task, device)
    parts = own(cut, a, b)
    with Traffic() as traffic, Pending() as pending:
        c = cut.run(*parts)
    if device.type == "cuda":
        torch.cuda.synchronize()
    held = sum(x.numel() * x.element_size() for x in parts)
    sizes = (task[name] for name in "mnk")
    model = received(task["cut"], *sizes, dist.get_world_size(), a.element_size())
    report = {"received": traffic.received, "model": model, "calls": traffic.calls, "held": held}
    if pending.findings:
        return report | {"findings": list(dict.fromkeys(pending.findings)), "far": None}
    for name, part, before in zip("AB", parts, own(cut, a, b), strict=True):
        if not torch.equal(part, before):
            raise ValueError(f"rank {dist.get_rank()}'s part of {name} was changed")
    # Sums of so few whole numbers have no rounding.
    exact = bool(task.get("whole")) and task["k"] <= 2 / torch.finfo(a.dtype).eps
    far = check(cut, c, a, b, exact=exact)
    return report | {"findings": [], "far": far}
