"""When things happen in a traced kernel, if copies, products and stores took given times.

The events of a trace know what waited for what. Here they are given times, in whole units: a role
goes on at once unless it waits, a copy arrives `copy_time` after it was started, and the tensor
cores of a block do one product after the other.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Sequence

from tiled_matmul.microscope.gluon.record import Event
from tiled_matmul.models.ring import Copy, Ring, Work


def timeline(
    events: Sequence[Event],
    *,
    stages: int,
    copy_time: int = 4,
    multiply_time: int = 2,
    store_time: int = 3,
    program: int = 0,
    block: int = 0,
    role: str = "multiply 0",
) -> Ring:
    """Return a Ring with the copies of B into one block's stages and the work of one of its roles.

    `events` are those of a GluonTrace, `stages` is the number of stages of the ring. Times are in
    units. Raises ValueError if no role of that name multiplied.
    """
    events = [each for each in events if each.program == program]
    tiles = {_name(each.buffer) for each in events if each.kind == "product"}
    ring = Ring(stages=stages, copy_time=copy_time, multiply_time=multiply_time)
    now: dict[tuple[int, str], int] = defaultdict(int)  # of each role
    cores: dict[int, int] = defaultdict(int)  # when the tensor cores of a block are free
    phases: dict[tuple, int] = defaultdict(int)  # when a barrier's phase was over
    copies: dict[tuple, deque[int]] = defaultdict(deque)  # when copies into a buffer arrive
    products: dict[tuple[int, str], list[int]] = defaultdict(list)  # when they are done
    filled: dict[str, int] = defaultdict(int)  # how often a buffer was, and how often it was used
    used: dict[str, int] = defaultdict(int)
    for e in events:
        who, buffer = (e.block, e.role), (e.block, e.buffer)
        if e.kind == "wait":
            now[who] = max(now[who], phases[e.buffer, e.block, e.phase])
        elif e.kind in ("arrive", "expect"):
            _complete(phases, e.buffer, e, now[who])
        elif e.kind == "copy":
            for at in e.blocks:
                copies[at, e.buffer].append(now[who] + copy_time)
            if block in e.blocks and _name(e.buffer) in tiles:
                stage, begin = _stage(e.buffer), now[who]
                tile = filled[e.buffer] * stages + stage
                filled[e.buffer] += 1
                ring.copies.append(Copy(tile, stage, begin, begin + copy_time))
        elif e.kind == "landed":
            _complete(phases, e.barrier, e, copies[buffer].popleft())
        elif e.kind == "product":
            begin = max(now[who], cores[e.block])
            cores[e.block] = begin + multiply_time
            products[who].append(cores[e.block])
            if who == (block, role):
                stage = _stage(e.buffer)
                tile = used[e.buffer] * stages + stage
                used[e.buffer] += 1
                ring.work.append(Work(tile, stage, begin, cores[e.block]))
        elif e.kind == "products done":
            done = products[who][: len(products[who]) - e.under_way]
            now[who] = max([now[who], *done[-1:]])
        elif e.kind == "store":
            if who == (block, role):
                ring.work.append(Work(None, None, now[who], now[who] + store_time))
            now[who] += store_time
    if not ring.work:
        roles = sorted({e.role for e in events if e.kind == "product"})
        raise ValueError(f"no role {role!r} multiplied; there are {', '.join(roles)}")
    ring.time, ring.finished = max(work.end for work in ring.work), True
    return ring


def _complete(phases: dict, barrier: str, event: Event, time: int) -> None:
    """Note an arrival at a barrier: the last one of a phase is its end."""
    at = barrier, event.block, event.phase
    phases[at] = max(phases[at], time)


def _name(buffer: str) -> str:
    return buffer.partition("[")[0]


def _stage(buffer: str) -> int:
    """Return the index of a buffer such as "b_tiles[2]"; one that is alone is stage 0."""
    return int(buffer.partition("[")[2].rstrip("]") or 0)
