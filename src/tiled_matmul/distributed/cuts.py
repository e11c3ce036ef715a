"""One product over p ranks: which axis is cut, who holds what, what travels.

C (M, N) is A (M, K) · B (K, N). Each function runs on every rank with that rank's parts of A and B,
and returns its part of C. Sums of parts are added in the dtype of C, as torch does. The product of
two parts is the course's own kernel on a GPU, and a reference on a CPU.
Source: Megatron-LM for `columns` and `inner`; van de Geijn and Watts for `summa`; PyTorch's
asynchronous tensor parallelism for `ring`, `ring_of_sums` and `pulled`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import lcm

import torch
import torch.distributed as dist
from torch import Tensor

from tiled_matmul.distributed.pending import touched
from tiled_matmul.models.distributed import AXES, grid_of
from tiled_matmul.torch import matmul

# From torch 2.13 on the old names warn.
all_gather = getattr(dist, "all_gather_single", None) or dist.all_gather_into_tensor
reduce_scatter = getattr(dist, "reduce_scatter_single", None) or dist.reduce_scatter_tensor


def rows(a: Tensor, b: Tensor) -> Tensor:
    """M is cut: a (M/p, K), b (K, N). Returns the rank's rows of C."""
    return matmul(a, b)


def columns(a: Tensor, b: Tensor) -> Tensor:
    """N is cut: a (M, K), b (K, N/p). Returns the rank's columns of C."""
    return matmul(a, b)


def inner(a: Tensor, b: Tensor) -> Tensor:
    """K is cut: a (M, K/p), b (K/p, N). Adds the parts of all ranks. Returns all of C."""
    c = matmul(a, b)
    dist.all_reduce(c)
    return c


def scattered(a: Tensor, b: Tensor) -> Tensor:
    """K is cut: a (M, K/p), b (K/p, N). Adds the parts. Returns the rank's rows of C."""
    parts = matmul(a, b)
    c = parts.new_empty(len(parts) // dist.get_world_size(), parts.shape[1])
    reduce_scatter(c, parts)
    return c


def gathered(a: Tensor, b: Tensor) -> Tensor:
    """M of A and N of B are cut: a (M/p, K), b (K, N/p). Returns the rank's columns of C.

    Every rank needs all rows of A, so they are gathered first.
    """
    whole = a.new_empty(len(a) * dist.get_world_size(), a.shape[1])
    all_gather(whole, a)
    return matmul(whole, b)


def ring(a: Tensor, b: Tensor) -> Tensor:
    """As `gathered`, but rows of A go from rank to rank while others are multiplied."""
    p, rank = dist.get_world_size(), dist.get_rank()
    c = a.new_empty(len(a) * p, b.shape[1])
    here, buffers = a, [torch.empty_like(a), torch.empty_like(a)]
    for step in range(p):
        there, travels = buffers[step % 2], step < p - 1
        waits = passed_on(here, there) if travels else []
        multiply(here, b, part(c, 0, (rank - step) % p, p))
        for wait in waits:
            wait.wait()
        here = there
    return c


def ring_of_sums(a: Tensor, b: Tensor) -> Tensor:
    """As `scattered`, but sums travel from rank to rank while the next ones are made."""
    p, rank = dist.get_world_size(), dist.get_rank()
    came, waits = None, []
    for step in range(p):
        c = matmul(part(a, 0, (rank - step - 1) % p, p), b)
        for wait in waits:
            wait.wait()
        if came is not None:
            c += came
        if step < p - 1:
            came = torch.empty_like(c)
            waits = passed_on(c, came)
    return c


def pulled(a: Tensor, b: Tensor) -> Tensor:
    """As `gathered`, but each rank's copy engine copies rows from the others' memory.

    After the first barrier others' rows are ready. After the second, no rank reads ours.
    """
    p, rank = dist.get_world_size(), dist.get_rank()
    shared, handle = symmetric(a)
    c = a.new_empty(len(a) * p, b.shape[1])
    whole = a.new_empty(len(a) * p, a.shape[1])
    if a.data_ptr() != shared.data_ptr():
        shared.copy_(a)  # first, as multiprocessors do it, and the product takes them all
    copies, products = copy_stream(a.device), torch.cuda.current_stream()
    copies.wait_stream(products)
    with torch.cuda.stream(copies):
        handle.barrier(channel=0)
        arrived = {}
        for other in ((rank + step) % p for step in range(1, p)):
            part(whole, 0, other, p).copy_(handle.get_buffer(other, a.shape, a.dtype))
            arrived[other] = copies.record_event()
        handle.barrier(channel=1)
    multiply(a, b, part(c, 0, rank, p))
    for other, event in arrived.items():
        products.wait_event(event)
        multiply(part(whole, 0, other, p), b, part(c, 0, other, p))
    products.wait_stream(copies)
    return c


def summa(a: Tensor, b: Tensor) -> Tensor:
    """Ranks form a grid: a (M/rows, K/columns), b (K/rows, N/columns). Returns a tile of C.

    Panel by panel of K, the ranks that hold it send it along their row or column of the grid.
    """
    (high, wide), (row, column), across, down = grid()
    panels = lcm(high, wide)
    c = torch.zeros(len(a), b.shape[1], dtype=torch.float32, device=a.device)
    for panel in range(panels):
        # A's panel is held by one column of the grid, B's by one row.
        a_from, a_part = divmod(panel, panels // wide)
        b_from, b_part = divmod(panel, panels // high)
        a_panel = a.new_empty(len(a), a.shape[1] * wide // panels)
        b_panel = b.new_empty(len(b) * high // panels, b.shape[1])
        if column == a_from:
            a_panel.copy_(part(a, 1, a_part, panels // wide))
        if row == b_from:
            b_panel.copy_(part(b, 0, b_part, panels // high))
        dist.broadcast(a_panel, row * wide + a_from, group=across)
        dist.broadcast(b_panel, b_from * wide + column, group=down)
        c += matmul(a_panel, b_panel)
    return c.to(a.dtype)


def passed_on(here: Tensor, there: Tensor) -> list[dist.Work]:
    """Send `here` to the next rank and let `there` come from the one before. Returns the waits."""
    p, rank = dist.get_world_size(), dist.get_rank()
    send = dist.P2POp(dist.isend, here, (rank + 1) % p)
    receive = dist.P2POp(dist.irecv, there, (rank - 1) % p)
    return dist.batch_isend_irecv([send, receive])


def part(x: Tensor, axis: int, index: int, count: int) -> Tensor:
    """Return part `index` of `count` of x along an axis, a view. Raises ValueError if uneven."""
    size, rest = divmod(x.shape[axis], count)
    if rest:
        raise ValueError(f"{x.shape[axis]} does not divide into {count} parts")
    return x.narrow(axis, index * size, size)


def multiply(a: Tensor, b: Tensor, out: Tensor) -> None:
    """Multiply into out, which may be rows of a larger matrix."""
    if a.is_cuda:
        touched(a, b, written=out)
        from tiled_matmul.ladder import triton_best

        triton_best.matmul(a, b, out=out)
    else:
        out.copy_(matmul(a, b))


_shared: dict[tuple, tuple] = {}
_streams: dict[torch.device, torch.cuda.Stream] = {}
_grids: dict[int, tuple] = {}


def symmetric(like: Tensor) -> tuple[Tensor, object]:
    """Return memory that all ranks can read, and its handle: one for each shape and dtype.

    Every `pulled` with rows of that shape copies them there, unless they are in it.
    """
    from torch.distributed import _symmetric_memory as symmetric_memory

    key = tuple(like.shape), like.dtype
    if key not in _shared:
        memory = symmetric_memory.empty(like.shape, dtype=like.dtype, device=like.device)
        _shared[key] = memory, symmetric_memory.rendezvous(memory, dist.group.WORLD)
    return _shared[key]


def copy_stream(device: torch.device) -> torch.cuda.Stream:
    """Return a stream for copies beside the products, one for each device."""
    if device not in _streams:
        _streams[device] = torch.cuda.Stream(device, priority=-1)  # before products
    return _streams[device]


def grid() -> tuple[tuple[int, int], tuple[int, int], dist.ProcessGroup, dist.ProcessGroup]:
    """Return the grid, this rank's (row, column), and the groups of its row and its column."""
    p, rank = dist.get_world_size(), dist.get_rank()
    high, wide = grid_of(p)
    if p not in _grids:  # every rank makes every group, in the same order
        across = [dist.new_group([row * wide + x for x in range(wide)]) for row in range(high)]
        down = [dist.new_group([y * wide + x for y in range(high)]) for x in range(wide)]
        _grids[p] = across, down
    across, down = _grids[p]
    row, column = divmod(rank, wide)
    return (high, wide), (row, column), across[row], down[column]


@dataclass(frozen=True)
class Cut:
    """A function, and the axis along which a rank has a part of A, of B and of C.

    None is all of it, "grid" the rank's tile of a grid.
    """

    run: Callable[[Tensor, Tensor], Tensor]
    a: int | str | None
    b: int | str | None
    c: int | str | None

    def parts(self, *matrices: Tensor, rank: int, count: int) -> list[Tensor]:
        """Return a rank's parts of A, B and, if given, C; views. Raises ValueError if uneven."""
        axes = (self.a, self.b, self.c)
        return [held(x, axis, rank, count) for x, axis in zip(matrices, axes, strict=False)]


def held(x: Tensor, axis: int | str | None, rank: int, count: int) -> Tensor:
    """Return what a rank holds of a matrix that is cut along an axis."""
    if axis is None:
        return x
    if axis == "grid":
        high, wide = grid_of(count)
        row, column = divmod(rank, wide)
        return part(part(x, 0, row, high), 1, column, wide)
    return part(x, axis, rank, count)


CUTS = {
    "rows": Cut(rows, *AXES["rows"]),
    "columns": Cut(columns, *AXES["columns"]),
    "inner": Cut(inner, *AXES["inner"]),
    "scattered": Cut(scattered, *AXES["scattered"]),
    "gathered": Cut(gathered, *AXES["gathered"]),
    "ring": Cut(ring, *AXES["gathered"]),
    "ring_of_sums": Cut(ring_of_sums, *AXES["scattered"]),
    "pulled": Cut(pulled, *AXES["gathered"]),
    "summa": Cut(summa, *AXES["summa"]),
}
GPUS_ONLY = ("pulled",)
