"""Find a kernel's faults in the record of its threads' accesses.

Two accesses race if they touch the same bytes, at least one writes, at most one is atomic, they
come from different threads, and nothing orders them. A barrier orders the threads of a block, and
`syncwarp` orders the lanes that take part; nothing orders blocks. Neither the values written nor
the order in which the interpreter ran the threads matter.

An asynchronous copy writes at some time between its beginning and its thread's wait for it. Until
then no access to those bytes is ordered with it, not even one of the same thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

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
PLAIN, BEGINS, FLIES, LANDS = range(4)  # a site's role in asynchronous copies
NO_BARRIER = ", with no barrier between them"
VERBS = {LOAD: "read", STORE: "written", ATOMIC: "changed atomically"}


@dataclass(frozen=True)
class Finding:
    """One fault, at one or two lines of the source.

    `count` is the number of elements in a race, of faulty accesses, or of blocks with a divergent
    barrier. `threads` holds the (block, thread) of one or two examples, each as (x, y, z).
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
    """Return "thread (1, 0, 0)", with its block unless the grid has one block or it is `beside`."""
    text = f"thread {tuple(runner.thread_place(thread))}"
    blocks = runner.grid.x * runner.grid.y * runner.grid.z
    if blocks == 1 or beside == block:
        return text
    return f"{text} of block {tuple(runner.block_place(block))}"


class Findings:
    """The search for faults in the record of one launch."""

    def __init__(self, runner: Any, log: Log, arrays: list[ArrayInfo]) -> None:
        self.runner, self.log, self.arrays = runner, log, arrays
        self.sites = runner.program.sites
        ops = site_ops(self.sites)
        self.ops = np.where(ops == events.HIDDEN, STORE, ops)
        self.flags = _copy_flags(self.sites)
        # After a divergent barrier, the order of a block's accesses is undefined.
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
        """The ids of the arrays that are targets of asynchronous copies."""
        arrays: set[int] = set()
        for piece in events.pieces(self.log, self.ops):
            arrays |= set(np.unique(piece.array[self.flags[piece.site] == BEGINS]).tolist())
        return arrays

    # The faults, as findings.

    def races(self) -> list[Finding]:
        findings = [self._race(conflict) for conflict in self.conflicts.values()]
        return sorted(findings, key=lambda f: (f.lines, f.array))

    def uninitialised_reads(self) -> list[Finding]:
        findings = [self._uninitialised(*read) for read in self.uninitialised.values()]
        return sorted(findings, key=lambda f: (f.lines, f.array))

    def out_of_bounds(self) -> list[Finding]:
        grouped: dict[tuple, tuple[Miss, int]] = {}
        for miss, count in self.log.misses.values():
            key = miss.kind, miss.array.name, self._line(miss.site)
            first, known = grouped.get(key, (miss, 0))
            grouped[key] = min(first, miss, key=_miss_order), known + count
        findings = [self._miss(first, count) for first, count in grouped.values()]
        return sorted(findings, key=lambda f: (f.lines, f.kind))

    def divergent_barriers(self) -> list[Finding]:
        grouped: dict[tuple, list] = {}
        for divergence in self.runner.divergences:
            key = divergence.site, divergence.other_site, divergence.left
            grouped.setdefault(key, []).append(divergence)
        return [
            divergent_barrier(min(group, key=lambda d: d.block), len(group), self.runner)
            for group in grouped.values()
        ]

    # Races.

    def _judged(self, piece: Piece) -> Piece:
        if not self.judged:
            return piece
        blocks, which = np.unique(piece.block, return_inverse=True)
        last = np.array([self.judged.get(int(block), 1 << 62) for block in blocks])
        return piece.take(piece.phase <= last[which])

    def _look_for_races(self, piece: Piece) -> None:
        """Find conflicts between threads of one block with no barrier between them."""
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
            rows = _risky(place, piece.thread.astype(np.int64), piece.op)
            if rows.size:
                piece, place = piece.take(rows), place[rows]
                self._one_by_one(piece, place, lambda one, two: one.thread == two.thread)
        else:
            self._side_by_side(piece, place, piece.thread.astype(np.int64))

    def _look_at_copies(self, piece: Piece) -> None:
        """Find conflicts between a thread's copy and its own accesses before it waits."""
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
        """Find conflicts between blocks in global memory."""
        if not touched:
            return
        rows = np.concatenate(touched)
        addresses = np.unique(rows["address"][_risky(rows["address"], rows["block"], rows["op"])])
        if not addresses.size:
            return
        parts = []
        for piece in events.pieces(self.log, self.ops):
            piece = _cut(self._judged(piece), self.unit)
            parts.append(piece.take(np.isin(piece.address, addresses) & ~piece.shared))
        piece = events.together(parts)
        piece = piece.take(np.argsort(piece.address, kind="stable"))
        if self.runner.program.fences:
            self._one_by_one(piece, piece.address, lambda one, two: one.block == two.block)
        else:
            self._side_by_side(piece, piece.address, piece.block)

    def _side_by_side(self, piece: Piece, place: np.ndarray, actor: np.ndarray) -> None:
        """Keep conflicts between different actors at the same place, where nothing orders them.

        `actor` holds the thread, warp or block of each access. Of all accesses from one site to one
        place only those of the first and the last actor matter.
        """
        number = np.cumsum(np.r_[False, place[1:] != place[:-1]])
        which, _ = events.pack(number, piece.site, piece.array.astype(np.int64))
        order = np.lexsort((actor, which))
        starts = events.first_rows(which[order])
        ends = np.r_[starts[1:], order.size] - 1
        ends_of = piece.take(order[starts]), piece.take(order[ends])
        low, high = actor[order[starts]], actor[order[ends]]
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

    def _keep(self, ends: tuple, actors: tuple, x: np.ndarray, y: np.ndarray) -> None:
        """Keep one example for each pair of sites, and all addresses."""
        low = ends[0]
        arrays = low.array.astype(np.int64)
        pairs, _ = events.pack(low.site[x], arrays[x], low.site[y], arrays[y])
        for pair in np.unique(pairs):
            rows = np.flatnonzero(pairs == pair)
            i, j = int(x[rows[0]]), int(y[rows[0]])
            p, q = next((p, q) for p in (0, 1) for q in (0, 1) if actors[p][i] != actors[q][j])
            self._conflict(_row(ends[p], i), _row(ends[q], j), low.address[x[rows]])

    def _one_by_one(self, piece: Piece, place: np.ndarray, same: Callable) -> None:
        """Keep conflicts where something orders some of the accesses: compare pairs of them."""
        starts = events.first_rows(place)
        all_rows = list(map(_Row, *(getattr(piece, name).tolist() for name in _Row._fields)))
        for low, high in zip(starts.tolist(), [*starts[1:].tolist(), place.size], strict=True):
            # Of a thread's accesses at a site between two syncwarps, the first and last matter.
            alike: dict[tuple, list[_Row]] = {}
            for row in all_rows[low:high]:
                key = row.site, row.block, row.thread, row.clock, row.phase
                alike.setdefault(key, [row, row])[1] = row
            ends = {row.order: row for pair in alike.values() for row in pair}
            rows = [ends[order] for order in sorted(ends)]
            examples: dict[tuple, tuple] = {}
            # What is ordered behind a thread's latest access is ordered behind its earlier ones.
            latest: dict[tuple, _Row] = {}
            writes: dict[tuple, _Row] = {}
            for two in rows:
                for one in (writes if two.op == LOAD else latest).values():
                    pair = one.site, two.site
                    if pair in examples or same(one, two) or not _conflicting(one.op, two.op):
                        continue
                    if not self._ordered(one, two):
                        examples[pair] = one, two
                actor = two.site, two.block, two.thread
                latest[actor] = two
                if two.op != LOAD:
                    writes[actor] = two
            for one, two in examples.values():
                self._conflict(one, two, piece.address[low : low + 1])

    def _ordered(self, one: _Row, two: _Row) -> bool:
        """Return whether syncwarp or a hand-over orders `one`, which ran first, before `two`."""
        if one.block == two.block and _met(one, two, self.log.vectors):
            return True
        for atomics in self.atomics.values():
            before = [r.order for r in atomics if r.block == one.block and _in_turn(one, r)]
            after = [
                r.order
                for r in atomics
                if r.block == two.block and _in_turn(r, two) and self.sites[r.site].used
            ]
            if before and after and min(before) < max(after):
                return True
        return False

    @cached_property
    def atomics(self) -> dict[tuple, list[_Row]]:
        """The atomics of a kernel with fences, by address: threads use them to hand over data.

        A hand-over orders two accesses: after the first one its thread, or one behind a barrier,
        does an atomic on an address. Before the second one its thread does an atomic there, too,
        whose result the source uses.
        """
        by_place: dict[tuple, list[_Row]] = {}
        if not self.runner.program.fences:
            return by_place
        for piece in events.pieces(self.log, self.ops):
            piece = piece.take(piece.op == ATOMIC)
            for i in range(piece.size):
                row = _row(piece, i)
                block = row.block if row.address < GLOBAL_START else -1
                by_place.setdefault((block, row.address), []).append(row)
        return by_place

    def _conflict(self, one: _Row, two: _Row, addresses: np.ndarray) -> None:
        """Keep a pair of accesses, as the example for all conflicts at the same two lines."""
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

    def _race(self, conflict: _Conflict) -> Finding:
        one, two = conflict.one, conflict.two
        info, other = self.arrays[one.array], self.arrays[two.array]
        index = element(info, one.address)
        name = f"{info.name}[{', '.join(map(str, index))}]"
        if other.name != info.name:
            at = ", ".join(map(str, element(other, two.address)))
            name += f", which is {other.name}[{at}] too,"
        first = thread_text(self.runner, one.block, one.thread)
        second = thread_text(self.runner, two.block, two.thread, one.block)
        one_line = self._line(one.site) == self._line(two.site)
        message = f"{name} is {self._verb(one)} in {self._line_name(one.site)} by {first} and "
        if one_line and one.op == two.op:
            message += f"by {second}"
        else:
            message += f"{self._verb(two)} in {self._line_name(two.site)} by {second}"
        copies = [bool(self.sites[r.site].asynchronous and r.op != LOAD) for r in (one, two)]
        if any(copies) and one.block == two.block:
            message += (
                ", while the copy may be under way."
                if one.thread != two.thread
                else ", with no wait for the copy between them."
            )
            remedy = COPIES
        elif one.block != two.block:
            message += ", and blocks run in any order."
            remedy = ACROSS
        else:
            message += f"{NO_BARRIER}."
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
                    "Put a cuda.syncthreads() that all threads of the block reach between the two, "
                    "also from one iteration of a loop to the next."
                )
            if conflict.across:
                remedy += f" Threads of different blocks meet there too. {ACROSS}"
        texts = {self._line(row.site): self._text(row.site) for row in (one, two)}
        return Finding(
            "race",
            info.space,
            info.name,
            index,
            (self._example(one.block, one.thread), self._example(two.block, two.thread)),
            tuple(line for _, line in texts),
            tuple(texts.values()),
            np.unique(np.concatenate(conflict.addresses)).size,
            message,
            remedy,
        )

    def _verb(self, row: _Row) -> str:
        copied = self.sites[row.site].asynchronous and row.op != LOAD
        return "copied to" if copied else VERBS[row.op]

    # Reads of shared memory that no thread has written.

    def _look_for_uninitialised(self, piece: Piece) -> None:
        piece = piece.take(piece.shared)
        if not piece.size:
            return
        place, _ = events.pack(piece.block - piece.block.min(), piece.address)
        # An atomic needs a stored value; a load may read the result of an atomic.
        under_way = np.isin(self.flags[piece.site], (BEGINS, FLIES))
        self._unwritten(piece, place, piece.op == LOAD, (piece.op != LOAD) & ~under_way)
        sets = np.array([site.sets for site in self.sites])[piece.site]
        self._unwritten(piece, place, (piece.op == ATOMIC) & ~sets, sets)

    def _unwritten(
        self, piece: Piece, place: np.ndarray, reading: np.ndarray, writing: np.ndarray
    ) -> None:
        """Keep the `reading` rows that do not come after any `writing` row."""
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
            own = (least[group] == reader) & (most[group] == reader)
            bad[same] = own & (soonest[group] > reads[same])
            if (piece.clock >= 0).any():
                ends = np.r_[begins[1:], first.size]
                # A write that ran before the read is not ordered after it.
                earliest = np.minimum.reduceat(piece.order[first], begins)[group]
                for i in same[~own & (earliest > piece.order[reads[same]])]:
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
            own = rows[names == name]
            row = _row(piece, int(own[np.lexsort((piece.thread[own], piece.block[own]))[0]]))
            key = self._line(row.site), self._name(row)
            known_row = self.uninitialised.setdefault(key, [row, 0])
            known_row[1] += own.size
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
            (self._example(row.block, row.thread),),
            (line,),
            (self._text(row.site),),
            count,
            f"{thread_text(self.runner, row.block, row.thread)} reads "
            f"{info.name}[{', '.join(map(str, index))}] in {self._line_name(row.site)}, and "
            + ("no copy to it has landed." if copied else "no thread has written it."),
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
        message = f"{thread_text(self.runner, miss.block, miss.thread)} {verb} {where} in "
        message += f"{self._line_name(miss.site)}, and the shape of "
        message += f"that part of {miss.array.name}" if view else miss.array.name
        message += f" is {list(miss.shape)}"
        if miss.kind == "negative index":
            message += ": Numba counts a negative index from the end."
            remedy = "Guard the index below as well: 0 <= i."
        else:
            message += "."
            remedy = "Guard the access with the array's own shape, each index with its own axis."
        return Finding(
            miss.kind,
            miss.array.space,
            miss.array.name,
            miss.index,
            (self._example(miss.block, miss.thread),),
            (site.line,),
            (self._text(miss.site),),
            count,
            message,
            remedy,
        )

    def _line(self, site: int) -> tuple[str, int]:
        """Return (file, line), which is unique, as the lines of each notebook cell begin at 1."""
        return self.sites[site].file, self.sites[site].line

    def _line_name(self, site: int) -> str:
        """Return "line 7", with its function if the kernel calls others."""
        at = self.sites[site]
        several = len({each.function for each in self.sites}) > 1
        return f"line {at.line} of {at.function}" if several else f"line {at.line}"

    def _example(self, block: int, thread: int) -> tuple[tuple, tuple]:
        return tuple(self.runner.block_place(block)), tuple(self.runner.thread_place(thread))

    def _text(self, site: int) -> str:
        return self.sites[site].source


def divergent_barrier(divergence: Any, count: int, runner: Any) -> Finding:
    """Return the finding for an execute.Divergence."""
    sites = runner.program.sites
    site = sites[divergence.site]
    waiting = thread_text(runner, divergence.block, divergence.thread)
    other = thread_text(runner, divergence.block, divergence.other, divergence.block)
    lines = [site.line]
    message = f"{waiting} waits at the barrier in line {site.line}, and {other} "
    if divergence.other_site is not None:
        lines.append(sites[divergence.other_site].line)
        same = divergence.other_site == divergence.site
        message += (
            "waits there in another iteration of the loop."
            if same
            else f"waits at another one, in line {lines[1]}."
        )
    elif divergence.left:
        lines.append(divergence.left)
        message += f"has left the kernel in line {divergence.left}."
    else:
        message += "has run to the kernel's end without it."
    lines = sorted(set(lines))
    places = tuple(
        (tuple(runner.block_place(divergence.block)), tuple(runner.thread_place(thread)))
        for thread in (divergence.thread, divergence.other)
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
        message,
        "Put the barrier outside of every condition, and let threads that have no element skip the "
        "work, not the barrier.",
    )


@dataclass
class _Conflict:
    one: _Row
    two: _Row
    addresses: list[np.ndarray] = field(default_factory=list)
    across: bool = False  # whether such accesses of different blocks conflict, too


class _Row(NamedTuple):
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
    return _Row(*(int(getattr(piece, name)[at]) for name in _Row._fields))


def _in_turn(one: _Row, two: _Row) -> bool:
    """Return whether `one` precedes `two` in their block, in one thread or before a barrier."""
    return one.phase < two.phase or (one.thread == two.thread and one.order < two.order)


def _pair_order(one: _Row, two: _Row) -> tuple:
    return one.block, one.thread, two.block, two.thread, one.address


def _miss_order(miss: Miss) -> tuple:
    return miss.block, miss.thread


def _conflicting(one: int, two: int) -> bool:
    return (one != LOAD or two != LOAD) and (one != ATOMIC or two != ATOMIC)


def _met(one: _Row, two: _Row, vectors: list[tuple[int, ...]]) -> bool:
    """Return whether a syncwarp of both lanes lies between the accesses `one` and `two`."""
    if one.thread >> WARP_SHIFT != two.thread >> WARP_SHIFT or two.clock < 0:
        return False
    lane = one.thread & (1 << WARP_SHIFT) - 1
    vector = vectors[one.clock][lane] if one.clock >= 0 else 1
    return vectors[two.clock][lane] >= vector


def site_ops(sites: Iterable[Any]) -> np.ndarray:
    """Return LOAD, STORE or ATOMIC for each site."""
    return np.array([events.OPS[site.op] for site in sites] or [LOAD], np.int8)


def _copy_flags(sites: Iterable[Any]) -> np.ndarray:
    """Return each site's role in asynchronous copies: PLAIN, BEGINS, FLIES or LANDS."""
    kinds = {"store": BEGINS, "flight": FLIES, "landing": LANDS}
    flags = [kinds.get(site.op, PLAIN) if site.asynchronous else PLAIN for site in sites]
    return np.array(flags or [PLAIN], np.int8)


def _units(log: Log) -> tuple[int, int]:
    """Return the smallest width in bytes of the accesses to global and to shared memory."""
    slots = np.frombuffer(log.slots, np.int64)
    units = []
    for shared in (False, True):
        least = 1 << 7
        for low in range(0, slots.size, events.PIECE):
            part = slots[low : low + events.PIECE]
            selected = part[(part >> WIDTH_BITS & ADDRESS_MASK < GLOBAL_START) == shared]
            if selected.size:
                least = min(least, int((selected & (1 << WIDTH_BITS) - 1).min()))
        units.append(1 << min(least, 7))
    return units[0], units[1]


def _cut(piece: Piece, units: tuple[int, int]) -> Piece:
    """Split accesses into parts of the smallest width, so that equal bytes have equal addresses."""
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


def _risky(place: np.ndarray, actor: np.ndarray, op: np.ndarray) -> np.ndarray:
    """Return the rows, ordered by place, at whose place different actors may conflict."""
    if not place.size:
        return np.zeros(0, np.int64)
    packed, _ = events.pack(place, actor, op.astype(np.int64))
    order = np.argsort(packed, kind="stable")
    starts = events.first_rows(place[order])
    ends = np.r_[starts[1:], place.size] - 1
    kinds = np.bitwise_or.reduceat(1 << op[order].astype(np.int64), starts)
    risky = (actor[order[starts]] != actor[order[ends]]) & (
        (kinds & 1 << STORE > 0) | (kinds == (1 << ATOMIC | 1 << LOAD))
    )
    return order[np.repeat(risky, ends - starts + 1)]


def _by_block(piece: Piece) -> np.ndarray:
    """Return the distinct (address, block, op) of the accesses to global memory."""
    rows = ~piece.shared
    made = np.zeros(int(rows.sum()), [("address", np.int64), ("block", np.int64), ("op", np.int8)])
    for name in made.dtype.names:
        made[name] = getattr(piece, name)[rows]
    packed, _ = events.pack(made["address"], made["block"], made["op"].astype(np.int64))
    _, first = np.unique(packed, return_index=True)
    return made[first]
