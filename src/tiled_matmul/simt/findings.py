"""What is wrong with a kernel, found from the record of what its threads did.

Two accesses race if they touch the same bytes, at least one writes, at most one is atomic,
different threads make them, and nothing orders them. A barrier orders the threads of a block, and
`syncwarp` lanes that both took part; nothing orders blocks. What was written does not matter, and
neither does the order in which the interpreter happened to run the threads.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tiled_matmul.simt import table
from tiled_matmul.simt.memory import ArrayInfo, Log, Miss
from tiled_matmul.simt.table import ATOMIC, LOAD, STORE, WARP_SHIFT, Piece

VERBS = {LOAD: "read", STORE: "written", ATOMIC: "changed atomically"}


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong; `count` is how often it happened at the same lines.

    `threads` holds (block, thread) of one or two examples, each as (x, y, z).
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
        self.ops = site_ops(self.sites)
        # After a barrier that not all threads reached, a block's order of things is undefined.
        self.judged = {d.block: d.phase for d in runner.divergences}
        self.uninitialised: dict[tuple, list] = {}
        self.conflicts: dict[tuple, list] = {}
        touched: list[np.ndarray] = []
        for piece in table.pieces(log, self.ops):
            piece = _units(self._judged(piece))
            if not piece.size:
                continue
            self._look_for_races(piece)
            self._look_for_uninitialised(piece)
            touched.append(_by_block(piece))
        self._look_between_blocks(touched)

    # What was found, as findings.

    def races(self) -> list[Finding]:
        made = [self._race(*found) for found in self.conflicts.values()]
        return sorted(made, key=lambda f: (f.lines, f.array))

    def uninitialised_reads(self) -> list[Finding]:
        made = [self._uninitialised(*found) for found in self.uninitialised.values()]
        return sorted(made, key=lambda f: (f.lines, f.array))

    def out_of_bounds(self) -> list[Finding]:
        grouped: dict[tuple, list[Miss]] = {}
        for miss in self.log.misses:
            line = self.sites[miss.site].line
            grouped.setdefault((miss.kind, miss.array.name, line), []).append(miss)
        made = [self._miss(min(found, key=_miss_order), len(found)) for found in grouped.values()]
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
        last = np.array([self.judged.get(int(b), 1 << 62) for b in np.unique(piece.block)])
        last = last[np.searchsorted(np.unique(piece.block), piece.block)]
        return piece.take(piece.phase <= last)

    def _look_for_races(self, piece: Piece) -> None:
        place, _ = table.pack(piece.block - piece.block.min(), piece.phase, piece.address)
        packed, shifts = table.pack(place, piece.thread.astype(np.int64), piece.op.astype(np.int64))
        order = np.argsort(packed, kind="stable")
        place, thread, op = place[order], piece.thread[order], piece.op[order]
        starts = table.first_rows(place)
        ends = np.r_[starts[1:], place.size] - 1
        kinds = np.bitwise_or.reduceat(1 << op.astype(np.int64), starts)
        risky = (thread[starts] != thread[ends]) & (
            (kinds & 1 << STORE > 0) | (kinds == (1 << ATOMIC | 1 << LOAD))
        )
        if not risky.any():
            return
        rows = np.repeat(risky, ends - starts + 1)
        self._pairs(piece.take(order[rows]), place[rows])

    def _pairs(self, piece: Piece, place: np.ndarray) -> None:
        """Find conflicting accesses among those that share a place; the places are in order."""
        if (piece.clock >= 0).any():
            synced = np.isin(place, np.unique(place[piece.clock >= 0]))
            self._ordered_pairs(piece.take(synced), place[synced])
            piece, place = piece.take(~synced), place[~synced]
            if not piece.size:
                return
        starts = table.first_rows(place)
        number = np.repeat(np.arange(starts.size), np.diff(np.r_[starts, place.size]))
        who, _ = table.pack(number, piece.site, piece.array.astype(np.int64))
        order = np.lexsort((piece.thread, who))
        sub = table.first_rows(who[order])
        last = np.r_[sub[1:], order.size] - 1
        low, high = piece.take(order[sub]), piece.take(order[last])
        group = number[order[sub]]
        apart = 0
        while apart < sub.size:
            x = np.arange(sub.size - apart)
            y = x + apart
            same = group[x] == group[y]
            if not same.any():
                break
            writes = (low.op[x] != LOAD) | (low.op[y] != LOAD)
            plain = (low.op[x] != ATOMIC) | (low.op[y] != ATOMIC)
            alone = (low.thread[x] == high.thread[x]) & (low.thread[y] == high.thread[y])
            different = ~alone | (low.thread[x] != low.thread[y])
            self._keep(low, high, x, y, np.flatnonzero(same & writes & plain & different))
            apart += 1

    def _keep(self, low: Piece, high: Piece, x: np.ndarray, y: np.ndarray, rows: np.ndarray):
        """Remember one example for each pair of sites."""
        if not rows.size:
            return
        x, y = x[rows], y[rows]
        names = (
            low.site[x],
            low.array[x].astype(np.int64),
            low.site[y],
            low.array[y].astype(np.int64),
        )
        pairs, _ = table.pack(*names)
        _, first, counts = np.unique(pairs, return_index=True, return_counts=True)
        for at, count in zip(first, counts, strict=True):
            i, j = int(x[at]), int(y[at])
            choices = [(low, low), (low, high), (high, low), (high, high)]
            one, two = next(
                (p, q) for p, q in choices if (p.block[i], p.thread[i]) != (q.block[j], q.thread[j])
            )
            self._conflict(_row(one, i), _row(two, j), int(count))

    def _ordered_pairs(self, piece: Piece, place: np.ndarray) -> None:
        """The same where lanes of a warp have met at `syncwarp`: look at each pair."""
        vectors = self.log.vectors
        starts = table.first_rows(place)
        for low, high in zip(starts, np.r_[starts[1:], place.size], strict=True):
            found: dict[tuple, tuple] = {}
            rows = [_row(piece, i) for i in range(low, high)]
            for i, one in enumerate(rows):
                for two in rows[i + 1 :]:
                    if one.thread == two.thread or not _conflicting(one.op, two.op):
                        continue
                    if _met(one, two, vectors) or _met(two, one, vectors):
                        continue
                    found.setdefault((one.site, two.site), (one, two))
            for one, two in found.values():
                self._conflict(one, two, 1)

    def _look_between_blocks(self, touched: list[np.ndarray]) -> None:
        """Conflicts over global memory between blocks, which nothing orders."""
        if not touched:
            return
        rows = np.concatenate(touched)
        if not rows.size:
            return
        order = np.argsort(rows["address"], kind="stable")
        address, block, op = (rows[name][order] for name in ("address", "block", "op"))
        starts = table.first_rows(address)
        kinds = np.bitwise_or.reduceat(1 << op.astype(np.int64), starts)
        risky = (np.minimum.reduceat(block, starts) != np.maximum.reduceat(block, starts)) & (
            (kinds & 1 << STORE > 0) | (kinds == (1 << ATOMIC | 1 << LOAD))
        )
        if not risky.any():
            return
        wanted = address[starts[risky]]
        fenced = self.runner.program.fences
        parts, atomics = [], []
        for piece in table.pieces(self.log, self.ops):
            piece = _units(self._judged(piece))
            piece = piece.take(~piece.shared)
            parts.append(piece.take(np.isin(piece.address, wanted)))
            if fenced:
                atomics.append(piece.take(piece.op == ATOMIC))
        if fenced:
            self._fenced_pairs(table.together(parts), table.together(atomics))
        else:
            self._pairs_of_blocks(table.together(parts))

    def _fenced_pairs(self, piece: Piece, atomics: Piece) -> None:
        """The same in a kernel with fences, where blocks can hand over by atomics.

        An access comes before one of a later block if its thread, or one beyond a barrier, then did
        an atomic on a place on which the later block did one before.
        """
        places: dict[int, dict[int, list[_Row]]] = {}
        for i in range(atomics.size):
            row = _row(atomics, i)
            places.setdefault(row.address, {}).setdefault(row.block, []).append(row)

        def handed_over(one: _Row, two: _Row) -> bool:
            for blocks in places.values():
                given = [r.order for r in blocks.get(one.block, ()) if _in_turn(one, r)]
                taken = [r.order for r in blocks.get(two.block, ()) if _in_turn(r, two)]
                if given and taken and min(given) < max(taken):
                    return True
            return False

        order = np.lexsort((piece.order, piece.address))
        piece = piece.take(order)
        starts = table.first_rows(piece.address)
        for low, high in zip(starts, np.r_[starts[1:], piece.size], strict=True):
            rows = [_row(piece, i) for i in range(low, high)]
            found: dict[tuple, tuple] = {}
            for i, one in enumerate(rows):
                for two in rows[i + 1 :]:
                    if one.block == two.block or not _conflicting(one.op, two.op):
                        continue
                    pair = one.site, two.site
                    if pair not in found and not handed_over(one, two):
                        found[pair] = one, two
            for one, two in found.values():
                self._conflict(one, two, 1)

    def _pairs_of_blocks(self, piece: Piece) -> None:
        who, _ = table.pack(piece.address, piece.site, piece.array.astype(np.int64))
        order = np.lexsort((piece.thread, piece.block, who))
        sub = table.first_rows(who[order])
        last = np.r_[sub[1:], order.size] - 1
        low, high = piece.take(order[sub]), piece.take(order[last])
        apart = 0
        while apart < sub.size:
            x = np.arange(sub.size - apart)
            y = x + apart
            same = low.address[x] == low.address[y]
            if not same.any():
                break
            writes = (low.op[x] != LOAD) | (low.op[y] != LOAD)
            plain = (low.op[x] != ATOMIC) | (low.op[y] != ATOMIC)
            alone = (low.block[x] == high.block[x]) & (low.block[y] == high.block[y])
            different = ~alone | (low.block[x] != low.block[y])
            rows = np.flatnonzero(same & writes & plain & different)
            self._keep_blocks(low, high, x, y, rows)
            apart += 1

    def _keep_blocks(self, low: Piece, high: Piece, x, y, rows: np.ndarray) -> None:
        seen: dict[tuple, list] = {}
        for at in rows:
            i, j = int(x[at]), int(y[at])
            name = int(low.site[i]), int(low.site[j]), int(low.array[i]), int(low.array[j])
            if name in seen:
                seen[name][2] += 1
                continue
            choices = [(low, low), (low, high), (high, low), (high, high)]
            one, two = next((p, q) for p, q in choices if p.block[i] != q.block[j])
            seen[name] = [_row(one, i), _row(two, j), 1]
        for one, two, count in seen.values():
            self._conflict(one, two, count)

    def _conflict(self, one: _Row, two: _Row, count: int) -> None:
        if (self.sites[two.site].line, two.site) < (self.sites[one.site].line, one.site):
            one, two = two, one
        lines = self.sites[one.site].line, self.sites[two.site].line
        key = lines, self._name(one)
        known = self.conflicts.get(key)
        if known is None:
            self.conflicts[key] = [one, two, count]
            return
        known[2] += count
        if _pair_order(one, two) < _pair_order(*known[:2]):
            known[:2] = one, two

    def _name(self, row: _Row) -> str:
        return self.arrays[row.array].name

    def _race(self, one: _Row, two: _Row, count: int) -> Finding:
        info = self.arrays[one.array]
        index = element(info, one.address)
        name = f"{info.name}[{', '.join(map(str, index))}]"
        if self.arrays[two.array].name != info.name:
            other = self.arrays[two.array]
            at = ", ".join(map(str, element(other, two.address)))
            name += f", which is {other.name}[{at}] too,"
        lines = [self.sites[row.site].line for row in (one, two)]
        first = thread_text(self.runner, one.block, one.thread)
        second = thread_text(self.runner, two.block, two.thread, one.block)
        if lines[0] == lines[1] and one.op == two.op:
            said = f"{name} is {VERBS[one.op]} in line {lines[0]} by {first} and by {second}"
        else:
            said = (
                f"{name} is {VERBS[one.op]} in line {lines[0]} by {first} and "
                f"{VERBS[two.op]} in line {lines[1]} by {second}"
            )
        if one.block != two.block:
            said += ", and blocks run in any order."
            remedy = (
                "Let one block alone write the element, add with cuda.atomic, or launch a second "
                "kernel for the second step."
            )
        else:
            said += ", with no barrier between them."
            if lines[0] == lines[1] and one.op == two.op:
                remedy = "Give each thread an element of its own, or use cuda.atomic."
            elif ATOMIC in (one.op, two.op):
                remedy = "Make both accesses atomic, or put a cuda.syncthreads() between them."
            else:
                remedy = (
                    "A cuda.syncthreads() that all threads of the block pass between the two, "
                    "also on the way round a loop, usually mends it."
                )
        texts = {line: self._text(row.site) for line, row in zip(lines, (one, two), strict=True)}
        return Finding(
            "race",
            info.space,
            info.name,
            index,
            (self._who(one.block, one.thread), self._who(two.block, two.thread)),
            tuple(texts),
            tuple(texts.values()),
            count,
            said,
            remedy,
        )

    # Reads of shared memory that nobody has written.

    def _look_for_uninitialised(self, piece: Piece) -> None:
        piece = piece.take(piece.shared)
        if not piece.size:
            return
        place, _ = table.pack(piece.block - piece.block.min(), piece.address)
        # An atomic needs a value that a store left; a load may read what an atomic made of it.
        self._unwritten(piece, place, piece.op == LOAD, piece.op != LOAD)
        sets = np.array([site.sets for site in self.sites])[piece.site]
        self._unwritten(piece, place, (piece.op == ATOMIC) & ~sets, sets)

    def _unwritten(
        self, piece: Piece, place: np.ndarray, reading: np.ndarray, writing: np.ndarray
    ) -> None:
        """Keep those of the `reading` rows that no `writing` row comes before."""
        reads, wrote = np.flatnonzero(reading), np.flatnonzero(writing)
        by_phase = wrote[np.lexsort((piece.phase[wrote], place[wrote]))]
        starts = table.first_rows(place[by_phase])
        written, first_phase = place[by_phase][starts], piece.phase[by_phase][starts]
        at = np.searchsorted(written, place[reads])
        known = at < written.size
        known[known] = written[at[known]] == place[reads][known]
        phase = np.full(reads.size, 1 << 62)
        phase[known] = first_phase[at[known]]
        bad = piece.phase[reads] < phase
        for i in np.flatnonzero(piece.phase[reads] == phase):
            # In the phase of the first write, is every write ordered after this read?
            low = starts[at[i]]
            high = starts[at[i] + 1] if at[i] + 1 < starts.size else by_phase.size
            rows = by_phase[low:high]
            rows = rows[piece.phase[rows] == phase[i]]
            mine = piece.thread[rows] == piece.thread[reads[i]]
            later = mine & (rows > reads[i])
            if (piece.clock[rows] >= 0).any():
                read = _row(piece, int(reads[i]))
                met = [_met(read, _row(piece, int(row)), self.log.vectors) for row in rows]
                later |= ~mine & np.array(met)
            bad[i] = later.all()
        for i in reads[bad]:
            row = _row(piece, int(i))
            known_row = self.uninitialised.setdefault(
                (self.sites[row.site].line, self._name(row)), [row, 0]
            )
            known_row[1] += 1
            if (row.block, row.thread) < (known_row[0].block, known_row[0].thread):
                known_row[0] = row

    def _uninitialised(self, row: _Row, count: int) -> Finding:
        info = self.arrays[row.array]
        index = element(info, row.address)
        line = self.sites[row.site].line
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
            f"{info.name}[{', '.join(map(str, index))}] in line {line}, and nobody has written it.",
            "Let every element be written before the barrier, with a zero where the guard keeps "
            "a thread from loading.",
        )

    # Indices and barriers.

    def _miss(self, miss: Miss, count: int) -> Finding:
        site = self.sites[miss.site]
        verb = {"load": "reads", "store": "writes", "atomic": "changes"}[site.op]
        where = f"{miss.array.name}[{', '.join(map(str, miss.index))}]"
        said = f"{thread_text(self.runner, miss.block, miss.thread)} {verb} {where} in line "
        said += f"{site.line}, and the shape is {list(miss.shape)}"
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

    def _who(self, block: int, thread: int) -> tuple[tuple, tuple]:
        return tuple(self.runner.block_place(block)), tuple(self.runner.thread_place(thread))

    def _text(self, site: int) -> str:
        at = self.sites[site]
        return self.runner.program.sources[at.function].line(at.line)


def divergent_barrier(found: Any, count: int, runner: Any) -> Finding:
    """Return the finding for an execute.Divergence."""
    sites, sources = runner.program.sites, runner.program.sources
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
    source = sources[site.function]
    return Finding(
        "divergent barrier",
        "",
        "",
        (),
        places,
        tuple(lines),
        tuple(source.line(line) for line in lines),
        count,
        said,
        "Put the barrier outside of every condition, and let threads that have no element skip the "
        "work, not the barrier.",
    )


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
    return np.array([table.OPS[site.op] for site in sites] or [LOAD], np.int8)


def _units(piece: Piece) -> Piece:
    """Cut accesses into pieces of the smallest width, so that the same bytes compare equal."""
    if not piece.size:
        return piece
    unit = piece.width.copy()
    for space in (piece.shared, ~piece.shared):
        if space.any():
            unit[space] = piece.width[space].min()
    parts = (piece.width // unit).astype(np.int64)
    if (parts == 1).all():
        return piece
    rows = np.repeat(np.arange(piece.size), parts)
    step = np.arange(rows.size) - np.repeat(np.cumsum(parts) - parts, parts)
    cut = piece.take(rows)
    cut.address = cut.address + step * unit[rows]
    cut.width = unit[rows]
    return cut


def _by_block(piece: Piece) -> np.ndarray:
    """Return which block read, wrote or changed each address of global memory, once each."""
    rows = ~piece.shared
    made = np.zeros(int(rows.sum()), [("address", np.int64), ("block", np.int64), ("op", np.int8)])
    for name in made.dtype.names:
        made[name] = getattr(piece, name)[rows]
    packed, _ = table.pack(made["address"], made["block"], made["op"].astype(np.int64))
    _, first = np.unique(packed, return_index=True)
    return made[first]
