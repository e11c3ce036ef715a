"""Time cuts, torch's own ways and bare transfers on GPUs: every rank's milliseconds.

Some calls are captured in a CUDA graph, so that the host's time is in none. All that is compared
is replayed in turns, in another order each round, as a GPU is slower after hard work than after
waiting; before each replay, ranks wait for each other. Inputs are normal numbers.
"""

from __future__ import annotations

import json
import math
import random
import re
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory  # it registers torch.ops.symm_mem
from torch import Tensor

from tiled_matmul.distributed import cuts
from tiled_matmul.distributed.cuts import CUTS
from tiled_matmul.distributed.tasks import check, matrices, own

BY_NCCL = "ncclDevKernel"  # how the names of its kernels begin
BY_US = re.compile(r"(?:add|gluon|sum|triton)_\w+_kernel")  # what ours are called
ROUNDS, WARM, SAMPLE_MS, MOST_CALLS = 11, 3, 4.0, 50
SETTLING, SETTLING_S = 20, 0.2
TRACED = 3  # calls, of which the last counts


def do_time(task: dict[str, Any], device: torch.device) -> dict[str, Any]:
    """Return {name: {"ms", "spread"}} of the task's `names` at one product, and errors of cuts."""
    a, b = matrices(task, device)
    calls, far = {}, {}
    for name in task["names"]:
        if name in CUTS:
            parts = own(CUTS[name], a, b)
            far[name] = check(CUTS[name], CUTS[name].run(*parts), a, b, exact=False)
            calls[name] = _of(CUTS[name].run, *parts)
        else:
            calls[name] = OTHERS[name](a, b)
    return {"times": sampled(calls), "far": far}


def do_link(task: dict[str, Any], device: torch.device) -> dict[str, Any]:
    """Return {way: {bytes: {"ms", "spread"}}} of transfers in which each rank receives so many.

    "copied" and "added", a part to sums in float32, stay in one GPU's memory. Their bytes are those
    read and written.
    """
    found: dict[str, dict[str, Any]] = {}
    for size in task["bytes"]:
        x, there = _numbers(size, device), _numbers(size, device)
        half, tenth = len(x) // 2, len(x) // 5  # of the bytes, in elements
        sums = torch.zeros(tenth, device=device)
        calls = {"pulled": _of(pulled, x, there), "copied": _of(there[:half].copy_, x[:half])}
        calls["added"] = _of(sums.add_, x[:tenth])
        if (p := dist.get_world_size()) == 2:  # then a part received is a part held
            calls["gathered"] = _of(cuts.all_gather, x.new_empty(p * len(x)), x)
            calls["reduced"] = _of(dist.all_reduce, x)
            calls["broadcast"] = _of(dist.broadcast, x, 0)
        for way, one in sampled(calls).items():
            found.setdefault(way, {})[size] = one
    return found


def do_sends(task: dict[str, Any], device: torch.device) -> dict[str, Any]:
    """Return {bytes: {"ms", "spread", "blocks"}} where each rank passes so many to the next.

    `blocks` are the thread blocks of NCCL's kernel.
    """
    found = {}
    for size in task["bytes"]:
        x, there = _numbers(size, device), _numbers(size, device)

        def call(x: Tensor = x, there: Tensor = there) -> None:
            for wait in cuts.passed_on(x, there):
                wait.wait()

        found[size] = sampled({"sent": call})["sent"] | {"blocks": blocks(call)}
    return found


def _numbers(size: int, device: torch.device) -> Tensor:
    """Return so many bytes of float16."""
    return torch.randn(size // 2, device=device).half()


def do_moved(task: dict[str, Any], device: torch.device) -> dict[str, Any]:
    """Return the bytes that this GPU's links received for each call of a cut, as they count."""
    a, b = matrices(task, device)
    found = {}
    for name in task["names"]:
        parts = own(CUTS[name], a, b)
        CUTS[name].run(*parts)
        before = settled(device)
        for _ in range(task["calls"]):
            CUTS[name].run(*parts)
        after = settled(device)
        counted = None if None in (before, after) else (after - before) / task["calls"]
        found[name] = counted
    return found


def blocks(call: Callable[[], Any]) -> int:
    """Return the thread blocks of the one kernel of NCCL in a call. Raises ValueError otherwise."""
    grids = [x["args"]["grid"] for x in traced(call) if x["name"].startswith(BY_NCCL)]
    if len(grids) != 1:
        raise ValueError(f"the profiler saw {len(grids)} kernels of NCCL, wanted one")
    return math.prod(grids[0])


def do_trace(task: dict[str, Any], device: torch.device) -> dict[str, Any]:
    """Return {name: [[what, begin, end], ...]}: when this GPU did what in one call of each cut.

    In microseconds from the first; `what` is "product", "transfer" or "other", such as a barrier.
    """
    a, b = matrices(task, device)
    found = {}
    for name in task["names"]:
        parts = own(CUTS[name], a, b)
        # The profiler does not start on all ranks at once, and in the first call some wait.
        graph = _captured(_of(CUTS[name].run, *parts), TRACED)
        events = sorted(traced(graph.replay), key=lambda x: x["ts"])
        events = events[len(events) // TRACED * (TRACED - 1) :]
        first = events[0]["ts"]
        found[name] = [[_kind(x), x["ts"] - first, x["ts"] - first + x["dur"]] for x in events]
    return found


def traced(call: Callable[[], Any]) -> list[dict[str, Any]]:
    """Return what the profiler saw this GPU do in a call: kernels and copies.

    Raises ValueError if it saw nothing.
    """
    _together()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        call()
        torch.cuda.synchronize()
    with tempfile.TemporaryDirectory() as folder:
        profile.export_chrome_trace(str(path := Path(folder, "trace.json")))
        events = json.loads(path.read_text(encoding="utf-8"))["traceEvents"]
    found = [x for x in events if x.get("cat") in ("kernel", "gpu_memcpy")]
    if not found:
        raise ValueError("torch's profiler sees nothing of this GPU")
    return found


def _kind(event: dict[str, Any]) -> str:
    """Return what a profiler's event is: the course's product, a transfer, or something else."""
    if event["cat"] == "gpu_memcpy" or event["name"].startswith(BY_NCCL):
        return "transfer"
    return "product" if BY_US.fullmatch(event["name"]) else "other"


def settled(device: torch.device) -> float | None:
    """Return `received_by_links` once all ranks are done: the driver counts with a delay.

    Raises TimeoutError if it goes on counting.
    """
    _together()
    before = received_by_links(device)
    for _ in range(SETTLING):
        time.sleep(SETTLING_S)
        if (now := received_by_links(device)) == before:
            dist.barrier()  # before any rank sends again
            return now
        before = now
    raise TimeoutError(f"the links of {device} went on counting, up to {before:,.0f} bytes")


def received_by_links(device: torch.device) -> float | None:
    """Return the bytes that a GPU's links have received, or None if the driver does not count."""
    name = str(torch.cuda.get_device_properties(device).uuid)
    gpu = name if name.startswith("GPU-") else f"GPU-{name}"
    command = ["nvidia-smi", "nvlink", "-gt", "d", "-i", gpu]
    told = subprocess.run(command, capture_output=True, text=True).stdout
    found = re.findall(r"Data Rx: (\d+) KiB", told)
    return 1024.0 * sum(map(int, found)) if found else None


def pulled(x: Tensor, there: Tensor) -> None:
    """Copy the next rank's x, by a copy engine."""
    shared, handle = cuts.symmetric(x)
    handle.barrier(channel=0)
    there.copy_(handle.get_buffer((dist.get_rank() + 1) % dist.get_world_size(), x.shape, x.dtype))
    handle.barrier(channel=1)


def sampled(calls: dict[str, Callable[[], Any]]) -> dict[str, dict[str, float]]:
    """Return the median and the spread of each call's milliseconds on this rank."""
    graphs = {}
    for name, call in calls.items():
        for _ in range(WARM):
            call()
        one = torch.tensor([_elapsed(call)], device="cuda")
        dist.all_reduce(one, dist.ReduceOp.MAX)  # ranks must make as many calls as each other
        count = max(1, min(MOST_CALLS, round(SAMPLE_MS / one.item())))
        graphs[name] = _captured(call, count), count
    order, taken = random.Random(0), {name: [] for name in calls}
    for _ in range(ROUNDS):
        for name in order.sample(list(graphs), len(graphs)):
            graph, count = graphs[name]
            taken[name].append(_elapsed(graph.replay) / count)
    return {
        name: {"ms": statistics.median(times), "spread": _spread(times)}
        for name, times in taken.items()
    }


def _captured(call: Callable[[], Any], count: int) -> torch.cuda.CUDAGraph:
    graph = torch.cuda.CUDAGraph()
    _together()
    with torch.cuda.graph(graph, capture_error_mode="thread_local"):
        for _ in range(count):
            call()
    graph.replay()
    return graph


def _elapsed(call: Callable[[], Any]) -> float:
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    _together()
    begin.record()
    call()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end)


def _together() -> None:
    """Wait for this GPU, and then for the other ranks."""
    torch.cuda.synchronize()
    dist.barrier()
    torch.cuda.synchronize()


def _spread(times: list[float]) -> float:
    low, middle, high = statistics.quantiles(times, n=4)
    return (high - low) / middle


def _of(function: Callable, *arguments: Any) -> Callable[[], Any]:
    return lambda: function(*arguments)


def _product(multiply: Callable) -> Callable[[Tensor, Tensor], Callable]:
    """Return what makes the rank's columns of C from all of A."""

    def prepare(a: Tensor, b: Tensor) -> Callable:
        _, b_part = CUTS["columns"].parts(a, b, rank=dist.get_rank(), count=dist.get_world_size())
        return _of(multiply, a, b_part.contiguous())

    return prepare


def _fused(a: Tensor, b: Tensor) -> Callable:
    """Return torch's gather and product in one operator."""
    mine, columns = own(CUTS["gathered"], a, b)
    group = dist.group.WORLD.group_name
    fused = torch.ops.symm_mem.fused_all_gather_matmul
    return lambda: fused(mine, [columns], 0, group, return_A=False)


def _gathered(a: Tensor, b: Tensor) -> Callable:
    mine, columns = own(CUTS["gathered"], a, b)
    whole = torch.empty_like(a)

    def call() -> Tensor:
        cuts.all_gather(whole, mine)
        return torch.matmul(whole, columns)

    return call


def _dtensor(a: Tensor, b: Tensor) -> Callable:
    """Return what torch makes of `a @ b` for distributed tensors."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import DTensor, Shard

    mesh = init_device_mesh("cuda", (dist.get_world_size(),))
    mine, columns = own(CUTS["gathered"], a, b)
    x = DTensor.from_local(mine, mesh, [Shard(0)])
    y = DTensor.from_local(columns, mesh, [Shard(1)])
    return lambda: x @ y


def _transfer(name: str) -> Callable[[Tensor, Tensor], Callable]:
    def prepare(a: Tensor, b: Tensor) -> Callable:
        mine, _ = own(CUTS["gathered"], a, b)
        if name == "pulled":
            return _of(pulled, mine, torch.empty_like(mine))
        return _of(cuts.all_gather, torch.empty_like(a), mine)

    return prepare


def _halves(a: Tensor, b: Tensor) -> Callable:
    """Return the product of `_product` in as many parts as there are ranks, as in a ring."""
    p = dist.get_world_size()
    _, columns = CUTS["columns"].parts(a, b, rank=dist.get_rank(), count=p)
    columns, c = columns.contiguous(), a.new_empty(len(a), columns.shape[1])

    def call() -> None:
        for i in range(p):
            cuts.multiply(cuts.part(a, 0, i, p), columns, cuts.part(c, 0, i, p))

    return call


def _from_shared(a: Tensor, b: Tensor) -> Callable:
    """Return `pulled` where the rank's rows of A already lie where others can read them."""
    mine, columns = own(CUTS["gathered"], a, b)
    shared, _ = cuts.symmetric(mine)
    shared.copy_(mine)
    return _of(cuts.pulled, shared, columns)


def _ours(a: Tensor, b: Tensor) -> Tensor:
    from tiled_matmul.ladder import triton_best

    return triton_best.matmul(a, b)


OTHERS: dict[str, Callable[[Tensor, Tensor], Callable]] = {
    "one GPU": lambda a, b: _of(_ours, a, b),
    "one GPU, torch": lambda a, b: _of(torch.matmul, a, b),
    "product": _product(_ours),
    "product, torch": _product(torch.matmul),
    "product, in parts": _halves,
    "pulled, from shared": _from_shared,
    "transfer, gathered": _transfer("gathered"),
    "transfer, pulled": _transfer("pulled"),
    "torch, gathered": _gathered,
    "torch, fused": _fused,
    "torch, DTensor": _dtensor,
}
