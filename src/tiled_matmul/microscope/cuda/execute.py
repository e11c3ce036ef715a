"""Run a program: one block after another, and in a block one thread after another.

Each thread runs up to its next barrier. The order of the threads can be chosen, so that a launch
gives the same result every time. On a GPU the threads run at once and in no fixed order; `findings`
reports where another order could give another result.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from tiled_matmul.microscope.cuda import values
from tiled_matmul.microscope.cuda.copies import Copies
from tiled_matmul.microscope.cuda.errors import DivergentBarrier, KernelError, TypingError
from tiled_matmul.microscope.cuda.hardware import WARP
from tiled_matmul.microscope.cuda.memory import (
    Array,
    Memory,
    checked_dtype,
    checked_shape,
    local_info,
    row_major,
    shared_data,
)
from tiled_matmul.microscope.cuda.names import COLLECTIVES
from tiled_matmul.microscope.cuda.program import Paths, Program

ORDERS = ("forward", "reverse", "shuffle")
DONE = -1
MOST_KEPT = 8  # local arrays of a thread that are kept for the next block
FULL_MASK = (1 << WARP) - 1


class Dim3(NamedTuple):
    """Three sizes or coordinates, x first."""

    x: int
    y: int
    z: int


@dataclass(frozen=True)
class Divergence:
    """A barrier that some threads of a block reach and others do not.

    `thread` waits at `site`. `other` waits at `other_site`; None means that it has ended, by the
    return in line `left`, or at the kernel's end if `left` is 0.
    """

    block: int
    phase: int
    site: int
    thread: int
    other_site: int | None
    other: int
    left: int


class Lane:
    """One thread: its coordinates and its arrays."""

    def __init__(self, thread: int, at: Dim3, runner: Runner) -> None:
        self.thread = thread
        self.runner = runner
        self.threadIdx = at
        self.threadIdx_x, self.threadIdx_y, self.threadIdx_z = at
        self.blockDim = runner.block
        self.blockDim_x, self.blockDim_y, self.blockDim_z = runner.block
        self.gridDim = runner.grid
        self.gridDim_x, self.gridDim_y, self.gridDim_z = runner.grid
        sizes = zip(runner.grid, runner.block, strict=True)
        self.gridsize_x, self.gridsize_y, self.gridsize_z = (g * b for g, b in sizes)
        self.warpsize = WARP
        self.laneid = thread % WARP
        self.lanemask_lt = (1 << self.laneid) - 1
        self.left = 0
        self.copies = Copies()
        self.arrays: dict[tuple, list[Array]] = {}  # local ones, used again in the next block

    def enter(self, block: Dim3) -> None:
        """Move the thread into another block."""
        self.blockIdx = block
        self.blockIdx_x, self.blockIdx_y, self.blockIdx_z = block
        self.grid_x = block.x * self.blockDim_x + self.threadIdx_x
        self.grid_y = block.y * self.blockDim_y + self.threadIdx_y
        self.grid_z = block.z * self.blockDim_z + self.threadIdx_z
        self.left = 0
        self.copies = Copies()
        self.taken = dict.fromkeys(self.arrays, 0)

    def shared(self, where: tuple, name: str, shape: Any, dtype: Any, alignment: Any) -> Array:
        """Return the block's shared array that is declared at this place in the source."""
        arrays = self.runner.shared
        if where not in arrays:
            arrays[where] = self.runner.new_shared(where, name, shape, dtype, alignment)
        return arrays[where]

    def local(self, name: str, shape: Any, dtype: Any) -> Array:
        """Return a local array of this thread, which no other one in this block is."""
        key = name, shape, dtype
        arrays = self.arrays.setdefault(key, [])
        place = self.taken[key] = self.taken.get(key, 0) + 1
        if place <= len(arrays):
            arrays[place - 1].forget()
            return arrays[place - 1]
        made = self.new_local(*key)
        if place <= MOST_KEPT:
            arrays.append(made)
        return made

    def new_local(self, name: str, shape: Any, dtype: Any) -> Array:
        shape, dtype = checked_shape(name, shape), checked_dtype(name, dtype)
        steps = row_major(shape, 1)
        size = shape[0] * steps[0]
        memory = self.runner.memory
        info = local_info(name, shape, dtype)
        return Array(memory, info, shared_data(dtype, size), dtype, shape, steps, 0)


class Runner:
    """One launch in the interpreter."""

    def __init__(
        self,
        program: Program,
        grid: Dim3,
        block: Dim3,
        arguments: Sequence[Any],
        memory: Memory,
        sharedmem: int,
        order: str,
        seed: int,
    ) -> None:
        self.program = program
        self.grid, self.block = grid, block
        self.arguments = arguments
        self.memory, self.log = memory, memory.log
        self.sharedmem = sharedmem
        self.order, self.random = order, random.Random(seed)
        self.divergences: list[Divergence] = []
        self.paths = Paths(max(1, len(program.sites)), program.loops)
        memory.describe = lambda site: (
            f"thread {tuple(self.thread_place(self.thread))} of block "
            f"{tuple(self.block_place(self.number))}, {program.place(site)}"
        )
        memory.where = lambda: (self.number, self.thread)
        memory.elements = self.paths.elements
        self.lanes = [
            Lane(thread, Dim3(*place), self)
            for thread, place in enumerate(
                (x, y, z) for z in range(block.z) for y in range(block.y) for x in range(block.x)
            )
        ]
        self.shared: dict[tuple, Array] = {}
        self.number = self.thread = 0

    def block_place(self, number: int) -> Dim3:
        """Return the coordinates of a block, given its number."""
        rest, x = divmod(number, self.grid.x)
        z, y = divmod(rest, self.grid.y)
        return Dim3(x, y, z)

    def thread_place(self, thread: int) -> Dim3:
        """Return the coordinates of a thread, given its number in the block."""
        return self.lanes[thread].threadIdx

    def run(self, blocks: Sequence[int]) -> None:
        """Run the blocks with these numbers."""
        self.program.space["_simt_iterations"] = self.paths.iterations
        self.program.space["_simt_along"] = self.paths.along
        with np.errstate(all="ignore"):
            for number in self._ordered(blocks):
                self.number = number
                self.shared = {}
                self.program.space["_simt_restart"]()
                place = self.block_place(number)
                for lane in self.lanes:
                    lane.enter(place)
                try:
                    self._run_block()
                except Exception as raised:
                    error = _explained(raised)
                    at = tuple(self.thread_place(self.thread))
                    error.add_note(f"in thread {at} of block {tuple(place)}")
                    raise error from error.__cause__

    def _ordered(self, numbers: Sequence[int]) -> Sequence[int]:
        numbers = sorted(numbers)
        if self.order == "reverse":
            return numbers[::-1]
        if self.order == "shuffle":
            self.random.shuffle(numbers)
        return numbers

    def _begin(self, thread: int, phase: int, clock: int = -1) -> None:
        self.thread = thread
        log = self.log
        if log is not None:
            log.starts.append(len(log.keys))
            log.blocks.append(self.number)
            log.threads.append(thread)
            log.phases.append(phase)
            log.clocks.append(clock)
            for copy in self.lanes[thread].copies:
                copy.record()

    def _run_block(self) -> None:
        function, arguments = self.program.function, self.arguments
        order = self._ordered(range(len(self.lanes)))
        if not self.program.waits:
            for thread in order:
                self._begin(thread, 0)
                function(self.lanes[thread], 0, *arguments)
            return
        threads = [function(lane, 0, *arguments) for lane in self.lanes]
        sends = [thread.send for thread in threads]
        waiting: list[Any] = [None] * len(threads)
        replies: list[Any] = [None] * len(threads)
        clocks = _WarpClocks(self.log)
        phase, active = 0, order
        while active:
            for thread in active:
                self._begin(thread, phase, clocks.of(thread))
                try:
                    waiting[thread] = sends[thread](replies[thread])
                except StopIteration:
                    waiting[thread] = DONE
                replies[thread] = None
            first = waiting[active[0]]
            if type(first) is int and waiting.count(first) == len(waiting):
                if first == DONE:
                    return
                active = order
                phase += 1
                continue
            active = self._meet_in_warps(order, waiting, replies, clocks, phase)
            if not active:
                active = self._meet_in_block(order, waiting, replies, phase)
                phase += 1

    def _meet_in_block(self, order, waiting, replies, phase) -> list[int]:
        """Release the threads that wait at a barrier of the block; return them."""
        here = [thread for thread in order if waiting[thread] != DONE]
        if not here:
            return here
        events = {thread: _event(waiting[thread]) for thread in here}
        first = min(here)
        others = [t for t in range(len(waiting)) if _event(waiting[t])[0] != events[first][0]]
        if others:
            self._diverged(phase, first, others[0], waiting)
        votes = [bool(operands[0]) for _, _, operands in events.values() if operands]
        for thread, (_, kind, _) in events.items():
            if kind is not None:
                outcomes = {"count": sum(votes), "and": int(all(votes)), "or": int(any(votes))}
                replies[thread] = values.i64(outcomes[kind])
                self._receive([thread])
            waiting[thread] = None
        return here

    def _receive(self, threads: Iterable[int]) -> None:
        """Record that each of these threads gets a value that other threads have made."""
        if self.log is not None:
            for thread in threads:
                place = self.number, thread
                self.log.received[place] = self.log.received.get(place, 0) + 1

    def _diverged(self, phase: int, thread: int, other: int, waiting: list) -> None:
        key, other_key = _event(waiting[thread])[0], _event(waiting[other])[0]
        sites = self.paths.sites
        divergence = Divergence(
            self.number,
            phase,
            key % sites,
            thread,
            None if other_key == DONE else other_key % sites,
            other,
            self.lanes[other].left,
        )
        if self.log is None:
            from tiled_matmul.microscope.cuda.findings import divergent_barrier

            raise DivergentBarrier(str(divergent_barrier(divergence, 1, self)))
        if all(d.block != self.number for d in self.divergences):
            self.divergences.append(divergence)

    def _meet_in_warps(self, order, waiting, replies, clocks, phase) -> list[int]:
        """Run the warp operations whose lanes have all arrived; return the released threads."""
        groups: dict[tuple, list[int]] = {}
        for thread in order:
            event = waiting[thread]
            if type(event) is tuple and (event[1] in COLLECTIVES or event[1] == "activemask"):
                mask = FULL_MASK if event[1] == "activemask" else int(event[2]) & FULL_MASK
                if not mask >> thread % WARP & 1:
                    self.thread = thread
                    raise KernelError(
                        f"{self.memory.describe(event[0] % self.paths.sites)}: lane "
                        f"{thread % WARP} is not in its own mask, {mask:#010x}"
                    )
                groups.setdefault((thread // WARP, event[0], mask), []).append(thread)
        if not groups:
            return []
        complete = {}
        for (warp, key, mask), lanes in groups.items():
            alive = _named(warp, mask, waiting)
            if waiting[lanes[0]][1] != "activemask" and alive <= set(lanes):
                complete[warp, key, mask] = lanes
        if not complete:
            complete = {
                group: lanes
                for group, lanes in groups.items()
                if waiting[lanes[0]][1] == "activemask"
            }
        if not complete:
            # No thread can go on, because a lane in a mask waits elsewhere.
            complete = groups
            (warp, _, mask), lanes = min(groups.items())
            missing = min(_named(warp, mask, waiting) - set(lanes))
            self._diverged(phase, min(lanes), missing, waiting)
        freed = set()
        for lanes in complete.values():
            kind = waiting[lanes[0]][1]
            operands = {thread: waiting[thread][3:] for thread in lanes}
            replies_of = COLLECT[kind](operands) if kind in COLLECT else {}
            if kind == "syncwarp":
                clocks.meet(lanes)
            if kind in COLLECT:
                self._receive(lanes)
            for thread in lanes:
                replies[thread] = replies_of.get(thread)
                waiting[thread] = None
                freed.add(thread)
        return [thread for thread in order if thread in freed]

    def new_shared(self, where: tuple, name: str, shape: Any, dtype: Any, alignment: Any) -> Array:
        """Return the current block's copy of a shared array, static or dynamic (shape 0)."""
        if shape == 0:
            return self._dynamic(where, name, dtype)
        info = self.memory.shared(where, name, shape, dtype, alignment)
        data = shared_data(info.dtype, info.size)
        return Array(self.memory, info, data, info.dtype, info.shape, row_major(info.shape, 1), 0)

    def _dynamic(self, where: tuple, name: str, dtype: Any) -> Array:
        info = self.memory.dynamic(where, name, dtype, self.sharedmem)
        raw = self.shared.setdefault(("dynamic",), np.full(self.sharedmem, 0xFF, np.uint8))
        data = raw[: info.size * info.itemsize].view(info.dtype)
        return Array(self.memory, info, data, info.dtype, info.shape, (1,), 0)


def _named(warp: int, mask: int, waiting: list) -> set[int]:
    """Return the threads of a warp that are in a mask and have not ended."""
    lanes = range(warp * WARP, min((warp + 1) * WARP, len(waiting)))
    return {t for t in lanes if mask >> t % WARP & 1 and waiting[t] != DONE}


def _event(event: Any) -> tuple[int, str | None, tuple]:
    """Return (key, kind, operands) of the barrier or warp operation at which a thread waits."""
    if type(event) is tuple:
        return event[0], event[1], event[2:]
    return event, None, ()


def _explained(error: Exception) -> Exception:
    """Return the error to raise: for a number used as an array, one that says so."""
    if not isinstance(error, AttributeError) or isinstance(error.obj, Array):
        return error
    what = f"{error.obj!r} is no array: it has no elements and no attributes"
    return TypingError(what).with_traceback(error.__traceback__)


class _WarpClocks:
    """The synchronisation of lanes by `syncwarp`, as a vector clock for each lane."""

    def __init__(self, log: Any) -> None:
        self.log = log
        self.clock: dict[int, list[int]] = {}
        self.number: dict[int, int] = {}

    def of(self, thread: int) -> int:
        return self.number.get(thread, -1)

    def meet(self, threads: list[int]) -> None:
        if self.log is None:
            return
        for thread in threads:
            if thread not in self.clock:
                self.clock[thread] = [0] * WARP
                self.clock[thread][thread % WARP] = 1
        together = [max(times) for times in zip(*(self.clock[t] for t in threads), strict=True)]
        for thread in threads:
            merged = list(together)
            merged[thread % WARP] += 1
            self.clock[thread] = merged
            self.number[thread] = len(self.log.vectors)
            self.log.vectors.append(tuple(merged))


# Operations of a group of lanes: from {thread: operands} to {thread: reply}.


def _shuffle(source: Callable[[int, int], int]) -> Callable[[dict], dict]:
    def collect(operands: dict[int, tuple]) -> dict[int, Any]:
        by_lane = {thread % WARP: value for thread, (value, _) in operands.items()}
        replies = {}
        for thread, (value, argument) in operands.items():
            # If the source lane is outside the warp or not in the group, the value is unchanged.
            replies[thread] = by_lane.get(source(thread % WARP, int(argument)), value)
        return replies

    return collect


def _same(operands: dict, reply: Any) -> dict:
    return dict.fromkeys(operands, reply)


_mask = values.caster(np.dtype("int32"))  # a full warp's mask is -1


def _ballot(operands: dict[int, tuple]) -> dict[int, Any]:
    mask = sum(1 << thread % WARP for thread, (vote,) in operands.items() if vote)
    return _same(operands, _mask(mask))


def _match_any(operands: dict[int, tuple]) -> dict[int, Any]:
    return {
        thread: _mask(sum(1 << t % WARP for t, (other,) in operands.items() if other == value))
        for thread, (value,) in operands.items()
    }


def _match_all(operands: dict[int, tuple]) -> dict[int, Any]:
    same = len({value for (value,) in operands.values()}) == 1
    mask = sum(1 << thread % WARP for thread in operands)
    return _same(operands, (_mask(mask if same else 0), values.flag(same)))


def _eq(operands: dict[int, tuple]) -> dict[int, Any]:
    votes = {bool(vote) for (vote,) in operands.values()}
    return _same(operands, values.flag(len(votes) == 1))


COLLECT: dict[str, Callable[[dict], dict]] = {
    "shfl_sync": _shuffle(lambda lane, source: source % WARP),
    "shfl_up_sync": _shuffle(lambda lane, delta: lane - delta),
    "shfl_down_sync": _shuffle(lambda lane, delta: lane + delta),
    "shfl_xor_sync": _shuffle(lambda lane, mask: lane ^ mask),
    "all_sync": lambda operands: _same(operands, values.flag(all(v for (v,) in operands.values()))),
    "any_sync": lambda operands: _same(operands, values.flag(any(v for (v,) in operands.values()))),
    "eq_sync": _eq,
    "ballot_sync": _ballot,
    "match_any_sync": _match_any,
    "match_all_sync": _match_all,
    "activemask": lambda operands: _same(
        operands, values.i64(sum(1 << thread % WARP for thread in operands))
    ),
}
