"""What is wrong with a kernel, found from the record of what its threads did.

Two accesses race if they touch the same bytes, at least one writes, at most one is atomic,
different threads make them, and nothing orders them. A barrier orders the threads of a block, and
`syncwarp` lanes that both took part; nothing orders blocks. What was written does not matter, and
neither does the order in which the interpreter happened to run the threads.

An asynchronous copy writes at some time between its beginning and its thread's wait for it. Until
then no access to those bytes is ordered with it, not even one of the same thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from tiled_matmul.microscope.cuda import events
from tiled_matmul.microscope.cuda.events import ATOMIC, LOAD, STORE, WARP_SHIFT, Piece
from tiled_matmul.microscope.cuda.memory import (
    ADDRESS_MASK,
    GLOBAL_START,
    WIDTH_BITS,
    ArrayInfo,
    Log,
    Miss,
)
from tiled_matmul.microscope.cuda.source import line_text

ACROSS = (
    "Let one block alone write the element, add with cuda.atomic, or leave the second step to a "
    "second kernel."
)
COPIES = (
    "Each thread waits for its own copies, with commit_copies and then wait_copies; a "
    "cuda.syncthreads() after that lets the others read them, and one before it keeps a copy out "
    "of what others still read."
)
PLAIN, BEGINS, FLIES, LANDS = range(4)  # what a site has to do with asynchronous copies
NO_BARRIER = ", with no barrier between them"
VERBS = {LOAD: "read", STORE: "written", ATOMIC: "changed atomically"}


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong at some lines of the source.

    `count` is how often: the elements that are raced for, the reads and accesses that went wrong,
    the blocks with a divergent barrier. `threads` holds (block, thread) of one or two examples,
    each as (x, y, z).
    """

    kind: str
    space: str
    array: str
    index: tuple[int, ...]
    threads: tuple[tuple[tuple, tuple], ...]
    lines: tuple[int, ...]
    texts: tuple[str, ...]
    count: int
    message: str = field(repr=False)
    remedy: str = field(repr=False)

    def __str__(self) -> str:
        return f"{self.message} {self.remedy}"


def element(info: ArrayInfo, address: int) -> tuple[int, ...]:
    """Return the index of the element of an array that covers a byte address."""
    rest = address - info.start
    index = [0] * len(info.shape)
    for axis in sorted(range(len(info.shape)), key=lambda a: -abs(info.strides[a])):
        stride, extent = info.strides[axis], info.shape[axis]
        if stride == 0 or extent == 1:
            continue
        place, rest = divmod(rest, abs(stride))
        index[axis] = place if stride > 0 else extent - 1 - place
    return tuple(int(i) for i in index)


def thread_text(runner: Any, block: int, thread: int, beside: int | None = None) -> str:
    """Return "thread (1, 0, 0)", with its block unless there is only one or it is `beside`."""
    text = f"thread {tuple(runner.thread_place(thread))}"
    blocks = runner.grid.x * runner.grid.y * runner.grid.z
    if blocks == 1 or beside == block:
        return text
    return f"{text} of block {tuple(runner.block_place(block))}"


class Findings:
    """Looks through the record of one launch."""

    def __init__(self, runner: Any, log: Log, arrays: list[ArrayInfo]) -> None:
        self.runner, self.log, self.arrays = runner, log, arrays
        self.sites = runner.program.sites
        ops = site_ops(self.sites)
        self.ops = np.where(ops == events.HIDDEN, STORE, ops)
        self.flags = _copy_flags(self.sites)
        # After a barrier that not all threads reached, a block's order of things is undefined.
        self.judged = {d.block: d.phase for d in runner.divergences}
        self.unit = _units(log)
        self.uninitialised: dict[tuple, list] = {}
        self.conflicts: dict[tuple, _Conflict] = {}
        touched: list[np.ndarray] = []
        for piece in events.pieces(log, self.ops):
            piece = _cut(self._judged(piece), self.unit)
            if not piece.size:
                continue
            self._look_for_races(piece)
            self._look_at_copies(piece)
            self._look_for_uninitialised(piece)
            touched.append(_by_block(piece))
        self._look_between_blocks(touched)

    @cached_property
    def copied_to(self) -> set[int]:
        """The arrays that asynchronous copies were begun to."""
        found: set[int] = set()
        for piece in events.pieces(self.log, self.ops):
            found |= set(np.unique(piece.array[self.flags[piece.site] == BEGINS]).tolist())
        return found

    # What was found, as findings.

    def races(self) -> list[Finding]:
        made = [self._race(found) for found in self.conflicts.values()]
        return sorted(made, key=lambda f: (f.lines, f.array))

    def uninitialised_reads(self) -> list[Finding]:
        made = [self._uninitialised(*found) for found in self.uninitialised.values()]
        return sorted(made, key=lambda f: (f.lines, f.array))

    def out_of_bounds(self) -> list[Finding]:
        grouped: dict[tuple, tuple[Miss, int]] = {}
        for miss, count in self.log.misses.values():
            key = miss.kind, miss.array.name, self._line(miss.site)
            first, known = grouped.get(key, (miss, 0))
            grouped[key] = min(first, miss, key=_miss_order), known + count
        made = [self._miss(first, count) for first, count in grouped.values()]
        return sorted(made, key=lambda f: (f.lines, f.kind))

    def divergent_barriers(self) -> list[Finding]:
        grouped: dict[tuple, list] = {}
        for found in self.runner.divergences:
            grouped.setdefault((found.site, found.other_site, found.left), []).append(found)
        return [
            divergent_barrier(min(found, key=lambda d: d.block), len(found), self.runner)
            for found in grouped.values()
        ]

    # Races.

    def _judged(self, piece: Piece) -> Piece:
        if not self.judged:
            return piece
        blocks, which = np.unique(piece.block, return_inverse=True)
        last = np.array([self.judged.get(int(block), 1 << 62) for block in blocks])
        return piece.take(piece.phase <= last[which])

    def _look_for_races(self, piece: Piece) -> None:
        """Conflicts between threads of one block that no barrier stands between."""
        place, _ = events.pack(piece.block - piece.block.min(), piece.phase, piece.address)
        rows = _risky(place, piece.thread.astype(np.int64), piece.op)
        if not rows.size:
            return
        piece, place = piece.take(rows), place[rows]
        if self.runner.program.fences:
            self._one_by_one(piece, place, lambda one, two: one.thread == two.thread)
        elif (piece.clock >= 0).any():
            # syncwarp orders lanes of one warp at most.
            warp = piece.thread.astype(np.int64) >> WARP_SHIFT
            self._side_by_side(piece, place, warp)
            place, _ = events.pack(place, warp)
            order = np.argsort(place, kind="stable")
            piece, place = piece.take(order), place[order]
            self._one_by_one(piece, place, lambda one, two: one.thread == two.thread)
        else:
            self._side_by_side(piece, place, piece.thread.astype(np.int64))

    def _look_at_copies(self, piece: Piece) -> None:
        """Conflicts between a thread's copy and what the thread itself does before it waits."""
        if not (self.flags == BEGINS).any():
            return
        piece = piece.take(piece.shared)
        place, _ = events.pack(piece.block, piece.thread.astype(np.int64), piece.address)
        order = np.argsort(place, kind="stable")
        piece, place, flag = piece.take(order), place[order], self.flags[piece.site[order]]
        step = (flag == BEGINS).astype(np.int64) - (flag == LANDS)
        before = np.cumsum(step) - step
        starts = events.first_rows(place)
        before -= np.repeat(before[starts], np.diff(np.r_[starts, place.size]))
        latest = np.maximum.accumulate(np.where(flag == BEGINS, np.arange(place.size), -1))
        for i in np.flatnonzero((before > 0) & ((flag == PLAIN) | (flag == BEGINS))):
            copy = latest[i - 1]
            self._conflict(_row(piece, int(copy)), _row(piece, int(i)), piece.address[i : i + 1])

    def _look_between_blocks(self, touched: list[np.ndarray]) -> None:
        """Conflicts over global memory between blocks."""
        if not touched:
            return
        rows = np.concatenate(touched)
        wanted = np.unique(rows["address"][_risky(rows["address"], rows["block"], rows["op"])])
        if not wanted.size:
            return
        parts = []
        for piece in events.pieces(self.log, self.ops):
            piece = _cut(self._judged(piece), self.unit)
            parts.append(piece.take(np.isin(piece.address, wanted) & ~piece.shared))
        piece = events.together(parts)
        piece = piece.take(np.argsort(piece.address, kind="stable"))
        if self.runner.program.fences:
            self._one_by_one(piece, piece.address, lambda one, two: one.block == two.block)
        else:
            self._side_by_side(piece, piece.address, piece.block)

    def _side_by_side(self, piece: Piece, place: np.ndarray, who: np.ndarray) -> None:
        """Keep conflicts between different `who` at the same place, where nothing orders them.

        Of all accesses from one site to one place only the first and the last `who` matter.
        """
        number = np.cumsum(np.r_[False, place[1:] != place[:-1]])
        which, _ = events.pack(number, piece.site, piece.array.astype(np.int64))
        order = np.lexsort((who, which))
        starts = events.first_rows(which[order])
        ends = np.r_[starts[1:], order.size] - 1
        ends_of = piece.take(order[starts]), piece.take(order[ends])
        low, high = who[order[starts]], who[order[ends]]
        group, op = number[order[starts]], piece.op[order[starts]]
        for apart in range(starts.size):
            x = np.arange(starts.size - apart)
            y = x + apart
            same = group[x] == group[y]
            if not same.any():
                return
            writes = (op[x] != LOAD) | (op[y] != LOAD)
            plain = (op[x] != ATOMIC) | (op[y] != ATOMIC)
            different = (low[x] != high[x]) | (low[y] != high[y]) | (low[x] != low[y])
            rows = np.flatnonzero(same & writes & plain & different)
            if rows.size:
                self._keep(ends_of, (low, high), x[rows], y[rows])

    def _keep(self, ends: tuple, whos: tuple, x: np.ndarray, y: np.ndarray) -> None:
        """Keep one example for each pair of sites, and all addresses."""
        low = ends[0]
        arrays = low.array.astype(np.int64)
        pairs, _ = events.pack(low.site[x], arrays[x], low.site[y], arrays[y])
        for pair in np.unique(pairs):
            mine = np.flatnonzero(pairs == pair)
            i, j = int(x[mine[0]]), int(y[mine[0]])
            p, q = next((p, q) for p in (0, 1) for q in (0, 1) if whos[p][i] != whos[q][j])
            self._conflict(_row(ends[p], i), _row(ends[q], j), low.address[x[mine]])

    def _one_by_one(self, piece: Piece, place: np.ndarray, same: Callable) -> None:
        """The same where some accesses are ordered after all: look at each pair."""
        starts = events.first_rows(place)
        for low, high in zip(starts, np.r_[starts[1:], place.size], strict=True):
            # Of what a thread does at a site between two meetings, the first and the last matter.
            alike: dict[tuple, list[_Row]] = {}
            for i in range(low, high):
                row = _row(piece, i)
                key = row.site, row.block, row.thread, row.clock, row.phase
                alike.setdefault(key, [row, row])[1] = row
            ends = {row.order: row for pair in alike.values() for row in pair}
            rows = [ends[order] for order in sorted(ends)]
            found: dict[tuple, tuple] = {}
            for at, one in enumerate(rows):
                for two in rows[at + 1 :]:
                    pair = one.site, two.site
                    if pair in found or same(one, two) or not _conflicting(one.op, two.op):
                        continue
                    if not self._ordered(one, two):
                        found[pair] = one, two
            for one, two in found.values():
                self._conflict(one, two, piece.address[low : low + 1])

    def _ordered(self, one: _Row, two: _Row) -> bool:
        """Is `one`, which ran first, bound to come first? By syncwarp, or by a hand-over."""
        if one.block == two.block and _met(one, two, self.log.vectors):
            return True
        for atomics in self.atomics.values():
            given = [r.order for r in atomics if r.block == one.block and _in_turn(one, r)]
            taken = [
                r.order
                for r in atomics
                if r.block == two.block and _in_turn(r, two) and self.sites[r.site].used
            ]
            if given and taken and min(given) < max(taken):
                return True
        return False

    @cached_property
    def atomics(self) -> dict[tuple, list[_Row]]:
        """The atomics of a kernel with fences, by place: with these, threads can hand over.

        An access comes before another if its thread, or one beyond a barrier, then did an atomic
        on a place, and the other's thread did one there before whose answer the source uses.
        """
        found: dict[tuple, list[_Row]] = {}
        if not self.runner.program.fences:
            return found
        for piece in events.pieces(self.log, self.ops):
            piece = piece.take(piece.op == ATOMIC)
            for i in range(piece.size):
                row = _row(piece, i)
                block = row.block if row.address < GLOBAL_START else -1
                found.setdefault((block, row.address), []).append(row)
        return found

    def _conflict(self, one: _Row, two: _Row, addresses: np.ndarray) -> None:
        """Keep a pair of accesses as an example for all at the same lines, at these addresses."""
        if (self._line(two.site), two.site) < (self._line(one.site), one.site):
            one, two = two, one
        key = self._line(one.site), self._line(two.site), self._name(one)
        known = self.conflicts.setdefault(key, _Conflict(one, two))
        known.addresses.append(addresses)
        known.across |= one.block != two.block
        if _pair_order(one, two) < _pair_order(known.one, known.two):
            known.one, known.two = one, two

    def _name(self, row: _Row) -> str:
        return self.arrays[row.array].name

    def _race(self, found: _Conflict) -> Finding:
        one, two = found.one, found.two
        info, other = self.arrays[one.array], self.arrays[two.array]
        index = element(info, one.address)
        name = f"{info.name}[{', '.join(map(str, index))}]"
        if other.name != info.name:
            at = ", ".join(map(str, element(other, two.address)))
            name += f", which is {other.name}[{at}] too,"
        first = thread_text(self.runner, one.block, one.thread)
        second = thread_text(self.runner, two.block, two.thread, one.block)
        one_line = self._line(one.site) == self._line(two.site)
        said = f"{name} is {self._verb(one)} in {self._said(one.site)} by {first} and "
        if one_line and one.op == two.op:
            said += f"by {second}"
        else:
            said += f"{self._verb(two)} in {self._said(two.site)} by {second}"
        copies = [bool(self.sites[r.site].asynchronous and r.op != LOAD) for r in (one, two)]
        if any(copies) and one.block == two.block:
            said += (
                ", while the copy may be under way."
                if one.thread != two.thread
                else ", with no wait for the copy between them."
            )
            remedy = COPIES
        elif one.block != two.block:
            said += ", and blocks run in any order."
            remedy = ACROSS
        else:
            said += f"{NO_BARRIER}."
            if one_line and one.op == two.op:
                remedy = "Give each thread an element of its own, or use cuda.atomic."
            elif ATOMIC in (one.op, two.op):
                remedy = "Make both accesses atomic, or put a cuda.syncthreads() between them."
            elif one_line:
                remedy = (
                    "Let all threads read, pass a cuda.syncthreads(), and then write; or write to "
                    "another array, or with cuda.atomic."
                )
            else:
                remedy = (
                    "A cuda.syncthreads() that all threads of the block pass between the two, "
                    "also on the way round a loop, usually mends it."
                )
            if found.across:
                remedy += f" Threads of different blocks meet there too. {ACROSS}"
        texts = {self._line(row.site): self._text(row.site) for row in (one, two)}
        return Finding(
            "race",
            info.space,
            info.name,
            index,
            (self._who(one.block, one.thread), self._who(two.block, two.thread)),
            tuple(line for _, line in texts),
            tuple(texts.values()),
            np.unique(np.concatenate(found.addresses)).size,
            said,
            remedy,
        )

    def _verb(self, row: _Row) -> str:
        copied = self.sites[row.site].asynchronous and row.op != LOAD
        return "copied to" if copied else VERBS[row.op]

    # Reads of shared memory that nobody has written.

    def _look_for_uninitialised(self, piece: Piece) -> None:
        piece = piece.take(piece.shared)
        if not piece.size:
            return
        place, _ = events.pack(piece.block - piece.block.min(), piece.address)
        # An atomic needs a value that a store left; a load may read what an atomic made of it.
        under_way = np.isin(self.flags[piece.site], (BEGINS, FLIES))
        self._unwritten(piece, place, piece.op == LOAD, (piece.op != LOAD) & ~under_way)
        sets = np.array([site.sets for site in self.sites])[piece.site]
        self._unwritten(piece, place, (piece.op == ATOMIC) & ~sets, sets)

    def _unwritten(
        self, piece: Piece, place: np.ndarray, reading: np.ndarray, writing: np.ndarray
    ) -> None:
        """Keep those of the `reading` rows that no `writing` row comes before."""
        reads, wrote = np.flatnonzero(reading), np.flatnonzero(writing)
        by_phase = wrote[np.lexsort((piece.phase[wrote], place[wrote]))]
        starts = events.first_rows(place[by_phase])
        written, first_phase = place[by_phase][starts], piece.phase[by_phase][starts]
        at = np.searchsorted(written, place[reads])
        known = at < written.size
        known[known] = written[at[known]] == place[reads][known]
        phase = np.full(reads.size, 1 << 62)
        phase[known] = first_phase[at[known]]
        bad = piece.phase[reads] < phase
        # In the phase of the first write, is every write ordered after the read?
        same = np.flatnonzero(piece.phase[reads] == phase)
        if same.size:
            first = by_phase[
                piece.phase[by_phase]
                == np.repeat(first_phase, np.diff(np.r_[starts, by_phase.size]))
            ]
            begins = events.first_rows(place[first])
            least = np.minimum.reduceat(piece.thread[first], begins)
            most = np.maximum.reduceat(piece.thread[first], begins)
            soonest = np.minimum.reduceat(first, begins)
            reader, group = piece.thread[reads[same]], at[same]
            mine = (least[group] == reader) & (most[group] == reader)
            bad[same] = mine & (soonest[group] > reads[same])
            if (piece.clock >= 0).any():
                ends = np.r_[begins[1:], first.size]
                for i in same[~mine]:
                    rows = first[begins[at[i]] : ends[at[i]]]
                    read = _row(piece, int(reads[i]))
                    writers = [_row(piece, int(row)) for row in rows]
                    bad[i] = all(
                        w.order > read.order
                        and (w.thread == read.thread or _met(read, w, self.log.vectors))
                        for w in writers
                    )
        rows = reads[bad]
        names, _ = events.pack(piece.site[rows], piece.array[rows].astype(np.int64))
        for name in np.unique(names):
            mine = rows[names == name]
            row = _row(piece, int(mine[np.lexsort((piece.thread[mine], piece.block[mine]))[0]]))
            key = self._line(row.site), self._name(row)
            known_row = self.uninitialised.setdefault(key, [row, 0])
            known_row[1] += mine.size
            if (row.block, row.thread) < (known_row[0].block, known_row[0].thread):
                known_row[0] = row

    def _uninitialised(self, row: _Row, count: int) -> Finding:
        info = self.arrays[row.array]
        index = element(info, row.address)
        line = self.sites[row.site].line
        copied = row.array in self.copied_to
        return Finding(
            "uninitialised read",
            info.space,
            info.name,
            index,
            (self._who(row.block, row.thread),),
            (line,),
            (self._text(row.site),),
            count,
            f"{thread_text(self.runner, row.block, row.thread)} reads "
            f"{info.name}[{', '.join(map(str, index))}] in {self._said(row.site)}, and "
            + ("no copy to it has landed." if copied else "nobody has written it."),
            COPIES
            if copied
            else "Let every element be written before the barrier, with a zero where the guard "
            "keeps a thread from loading.",
        )

    # Indices and barriers.

    def _miss(self, miss: Miss, count: int) -> Finding:
        site = self.sites[miss.site]
        verb = {"load": "reads", "store": "writes", "atomic": "changes"}[site.op]
        numbers = ", ".join(map(str, miss.index))
        view = miss.array.shape != miss.shape
        where = f"{site.array}[{numbers}]" if view else f"{miss.array.name}[{numbers}]"
        said = f"{thread_text(self.runner, miss.block, miss.thread)} {verb} {where} in "
        said += f"{self._said(miss.site)}, and the shape of "
        said += f"that part of {miss.array.name}" if view else miss.array.name
        said += f" is {list(miss.shape)}"
        if miss.kind == "negative index":
            said += ": Numba counts a negative index from the end."
            remedy = "Guard the index below as well: 0 <= i."
        else:
            said += "."
            remedy = "Guard the access with the array's own shape, each index with its own axis."
        return Finding(
            miss.kind,
            miss.array.space,
            miss.array.name,
            miss.index,
            (self._who(miss.block, miss.thread),),
            (site.line,),
            (self._text(miss.site),),
            count,
            said,
            remedy,
        )

    def _line(self, site: int) -> tuple[str, int]:
        """What tells a line of the source from all others; notebook cells each begin at 1."""
        return self.sites[site].file, self.sites[site].line

    def _said(self, site: int) -> str:
        """Return "line 7", with its function where the kernel calls others."""
        at = self.sites[site]
        several = len({each.function for each in self.sites}) > 1
        return f"line {at.line} of {at.function}" if several else f"line {at.line}"

    def _who(self, block: int, thread: int) -> tuple[tuple, tuple]:
        return tuple(self.runner.block_place(block)), tuple(self.runner.thread_place(thread))

    def _text(self, site: int) -> str:
        return self.sites[site].source


def divergent_barrier(found: Any, count: int, runner: Any) -> Finding:
    """Return the finding for an execute.Divergence."""
    sites = runner.program.sites
    site = sites[found.site]
    waiting = thread_text(runner, found.block, found.thread)
    other = thread_text(runner, found.block, found.other, found.block)
    lines = [site.line]
    said = f"{waiting} waits at the barrier in line {site.line}, and {other} "
    if found.other_site is not None:
        lines.append(sites[found.other_site].line)
        same = found.other_site == found.site
        said += (
            "stands there in another turn of the loop."
            if same
            else f"waits at another one, in line {lines[1]}."
        )
    elif found.left:
        lines.append(found.left)
        said += f"has left the kernel in line {found.left}."
    else:
        said += "has run to the kernel's end without it."
    lines = sorted(set(lines))
    places = tuple(
        (tuple(runner.block_place(found.block)), tuple(runner.thread_place(thread)))
        for thread in (found.thread, found.other)
    )
    return Finding(
        "divergent barrier",
        "",
        "",
        (),
        places,
        tuple(lines),
        tuple(line_text(site.file, line) for line in lines),
        count,
        said,
        "Put the barrier outside of every condition, and let threads that have no element skip the "
        "work, not the barrier.",
    )


@dataclass
class _Conflict:
    one: _Row
    two: _Row
    addresses: list[np.ndarray] = field(default_factory=list)
    across: bool = False  # are they, or others like them, of different blocks?


@dataclass(frozen=True)
class _Row:
    block: int
    thread: int
    clock: int
    site: int
    op: int
    array: int
    address: int
    phase: int
    order: int


def _row(piece: Piece, at: int) -> _Row:
    return _Row(*(int(getattr(piece, name)[at]) for name in _Row.__dataclass_fields__))


def _in_turn(one: _Row, two: _Row) -> bool:
    """Does `one` come before `two` in their block: in one thread, or with a barrier between?"""
    return one.phase < two.phase or (one.thread == two.thread and one.order < two.order)


def _pair_order(one: _Row, two: _Row) -> tuple:
    return one.block, one.thread, two.block, two.thread, one.address


def _miss_order(miss: Miss) -> tuple:
    return miss.block, miss.thread


def _conflicting(one: int, two: int) -> bool:
    return (one != LOAD or two != LOAD) and (one != ATOMIC or two != ATOMIC)


def _met(one: _Row, two: _Row, vectors: list[tuple[int, ...]]) -> bool:
    """Has lane `two` met lane `one` at a syncwarp after one's access and before two's?"""
    if one.thread >> WARP_SHIFT != two.thread >> WARP_SHIFT or two.clock < 0:
        return False
    lane = one.thread & (1 << WARP_SHIFT) - 1
    mine = vectors[one.clock][lane] if one.clock >= 0 else 1
    return vectors[two.clock][lane] >= mine


def site_ops(sites: Iterable[Any]) -> np.ndarray:
    """Return LOAD, STORE or ATOMIC for each site."""
    return np.array([events.OPS[site.op] for site in sites] or [LOAD], np.int8)


def _copy_flags(sites: Iterable[Any]) -> np.ndarray:
    """Return for each site whether there a copy's writing begins, goes on or ends."""
    kinds = {"store": BEGINS, "flight": FLIES, "landing": LANDS}
    found = [kinds.get(site.op, PLAIN) if site.asynchronous else PLAIN for site in sites]
    return np.array(found or [PLAIN], np.int8)


def _units(log: Log) -> tuple[int, int]:
    """Return the smallest width in bytes of any access, to global and to shared memory."""
    slots = np.frombuffer(log.slots, np.int64)
    found = []
    for shared in (False, True):
        least = 1 << 7
        for low in range(0, slots.size, events.PIECE):
            part = slots[low : low + events.PIECE]
            mine = part[(part >> WIDTH_BITS & ADDRESS_MASK < GLOBAL_START) == shared]
            if mine.size:
                least = min(least, int((mine & (1 << WIDTH_BITS) - 1).min()))
        found.append(1 << min(least, 7))
    return found[0], found[1]


def _cut(piece: Piece, units: tuple[int, int]) -> Piece:
    """Cut accesses into pieces of the smallest width, so that the same bytes compare equal."""
    unit = np.where(piece.shared, units[1], units[0]).astype(np.int16)
    parts = (piece.width // unit).astype(np.int64)
    if (parts == 1).all():
        return piece
    rows = np.repeat(np.arange(piece.size), parts)
    step = np.arange(rows.size) - np.repeat(np.cumsum(parts) - parts, parts)
    cut = piece.take(rows)
    cut.address = cut.address + step * unit[rows]
    cut.width = unit[rows]
    return cut


def _risky(place: np.ndarray, who: np.ndarray, op: np.ndarray) -> np.ndarray:
    """Return the rows, in order of their place, where different `who` may be in conflict."""
    if not place.size:
        return np.zeros(0, np.int64)
    packed, _ = events.pack(place, who, op.astype(np.int64))
    order = np.argsort(packed, kind="stable")
    starts = events.first_rows(place[order])
    ends = np.r_[starts[1:], place.size] - 1
    kinds = np.bitwise_or.reduceat(1 << op[order].astype(np.int64), starts)
    risky = (who[order[starts]] != who[order[ends]]) & (
        (kinds & 1 << STORE > 0) | (kinds == (1 << ATOMIC | 1 << LOAD))
    )
    return order[np.repeat(risky, ends - starts + 1)]


def _by_block(piece: Piece) -> np.ndarray:
    """Return which block read, wrote or changed each address of global memory, once each."""
    rows = ~piece.shared
    made = np.zeros(int(rows.sum()), [("address", np.int64), ("block", np.int64), ("op", np.int8)])
    for name in made.dtype.names:
        made[name] = getattr(piece, name)[rows]
    packed, _ = events.pack(made["address"], made["block"], made["op"].astype(np.int64))
    _, first = np.unique(packed, return_index=True)
    return made[first]
