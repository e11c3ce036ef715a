"""`trace`: run a kernel in the interpreter and record every access of its threads."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from tiled_matmul.microscope.cuda import events, hardware
from tiled_matmul.microscope.cuda.events import OPS
from tiled_matmul.microscope.cuda.findings import Finding, Findings, element, site_ops
from tiled_matmul.microscope.cuda.memory import ArrayInfo, Log, row_major
from tiled_matmul.microscope.cuda.prepare import MAX_STEPS, prepare
from tiled_matmul.microscope.cuda.program import Site
from tiled_matmul.microscope.table import Table
from tiled_matmul.microscope.table import table as show_table

SHOWN_FINDINGS = 8


@dataclass(frozen=True)
class GlobalCounts:
    """Counts of requests to global memory.

    A request is an access instruction of one warp. `sectors` counts the distinct pieces of 32 bytes
    in each, `lanes` the threads' accesses, and `asked_bytes` their bytes. The last two are what a
    GPU's counters show: `counted_sectors` for all loads or stores, which differs from `sectors` for
    asynchronous copies of 16 bytes only, and `past_l1_sectors` for such copies.
    """

    requests: int
    sectors: int
    lanes: int
    asked_bytes: int
    counted_sectors: int = field(repr=False)
    past_l1_sectors: int = field(repr=False)

    @property
    def bytes(self) -> int:
        """The bytes of all sectors, which are moved unless a cache holds them."""
        return self.sectors * hardware.SECTOR_BYTES


@dataclass(frozen=True)
class SharedCounts:
    """Counts of requests to shared memory. A wavefront serves one word of each bank."""

    requests: int
    wavefronts: int
    bank_conflicts: int
    lanes: int
    asked_bytes: int


@dataclass(frozen=True)
class Request:
    """One access instruction of one warp, lane by lane.

    `elements` are flat, row-major indices, of the first element if a lane accesses a vector;
    `width` is the bytes of one lane's access. `addresses` are in bytes from the start of the
    array's allocation. `sectors` is empty for shared memory. `banks`, of each lane's first word, is
    empty for global memory, and `wavefronts` is 0.
    """

    site: Site
    array: ArrayInfo
    phase: int
    width: int
    lanes: tuple[int, ...]
    elements: tuple[int, ...]
    indices: tuple[tuple[int, ...], ...]
    addresses: tuple[int, ...]
    sectors: tuple[int, ...]
    banks: tuple[int, ...]
    wavefronts: int


ACCESS = np.dtype(
    [
        ("block", np.int64),
        ("thread", np.int16),
        ("warp", np.int16),
        ("lane", np.int8),
        ("phase", np.int64),
        ("site", np.int32),
        ("array", np.int16),
        ("element", np.int64),
        ("width", np.int16),
        ("request", np.int64),
    ]
)


def trace(
    kernel: Any,
    grid: int | tuple[int, ...],
    block: int | tuple[int, ...],
    *args: Any,
    sharedmem: int = 0,
    blocks: Iterable[tuple[int, ...]] | None = None,
    order: str = "forward",
    seed: int = 0,
    max_steps: int = MAX_STEPS,
) -> Trace:
    """Run a kernel in the interpreter and return the record of its accesses.

    `kernel` is a function, with or without `@cuda.jit`; `grid` and `block` are sizes (x, y, z) as
    in a launch; `args` are the arguments (tensors, arrays, numbers), which the kernel writes to as
    in a launch. `sharedmem` is the dynamic shared memory in bytes. `blocks` lists the blocks
    (x, y, z) to run; None runs all. `order` is the order of blocks, and of threads between
    barriers: "forward", "reverse", or "shuffle" with `seed`. `max_steps` limits the iterations of
    the loops in one block.

    An index out of bounds reads 0 or writes nothing, and a barrier that not all threads reach
    releases those that did; both are findings. Raises KernelError, TypeError or ValueError for a
    kernel or launch that cannot run.
    """
    log = Log()
    runner, numbers, finish = prepare(
        kernel, grid, block, args, log, sharedmem, blocks, order, seed, max_steps
    )
    runner.run(numbers)
    finish()
    return Trace(runner, log, numbers)


class Trace:
    """The record of one launch: counts, findings, and every access."""

    def __init__(self, runner: Any, log: Log, numbers: Sequence[int]) -> None:
        self._runner, self._log = runner, log
        self.name = runner.program.name
        self.grid, self.block = tuple(runner.grid), tuple(runner.block)
        self.warps = -(-len(runner.lanes) // hardware.WARP)  # of a block
        self.order = runner.order
        self.blocks = tuple(tuple(runner.block_place(number)) for number in sorted(numbers))
        self.arrays: tuple[ArrayInfo, ...] = tuple(runner.memory.arrays)
        self.sites: tuple[Site, ...] = tuple(runner.program.sites)
        self._ops = site_ops(self.sites)
        copies = np.array([site.asynchronous for site in self.sites], np.bool_)
        rows = [events.requests(piece, copies) for piece in events.pieces(log, self._ops)]
        self._requests = np.concatenate(rows) if rows else np.zeros(0, events.REQUEST)

    # Counts.

    def count(
        self,
        space: str,
        op: str,
        line: int | None = None,
        function: str | None = None,
        array: int | None = None,
        block: tuple[int, ...] | None = None,
        warp: int | None = None,
        asynchronous: bool | None = None,
    ) -> GlobalCounts | SharedCounts:
        """Return the counts of a space ("global", "shared") and op ("load", "store", "atomic").

        They are restricted by `line` (in a notebook, counted from the top of the cell), `function`
        (its name), `array` (its id), `block` (x, y, z), `warp`, and `asynchronous` (True for
        asynchronous copies only, False for all others). Raises ValueError for an unknown space, op
        or block.
        """
        if space not in ("global", "shared") or op not in ("load", "store", "atomic"):
            raise ValueError(
                f"counts are of global or shared load, store or atomic, not {space} {op}"
            )
        rows = self._requests
        sites = [
            site.id
            for site in self.sites
            if line in (None, site.line)
            and function in (None, site.function)
            and asynchronous in (None, site.asynchronous)
        ]
        rows = rows[np.isin(rows["site"], sites)]
        number = None if block is None else self._block_number(block)
        for column, value in (("array", array), ("block", number), ("warp", warp)):
            if value is not None:
                rows = rows[rows[column] == value]
        rows = rows[(rows["shared"] == (space == "shared")) & (rows["op"] == OPS[op])]
        common = int(rows["lanes"].sum()), int(rows["asked_bytes"].sum())
        if space == "global":
            names = "sectors", "counted_sectors", "past_l1_sectors"
            sectors, *shown = (int(rows[name].sum()) for name in names)
            return GlobalCounts(rows.size, sectors, *common, *shown)
        waves, conflicts = int(rows["wavefronts"].sum()), int(rows["conflicts"].sum())
        return SharedCounts(rows.size, waves, conflicts, *common)

    @property
    def global_loads(self) -> GlobalCounts:
        return self.count("global", "load")

    @property
    def global_stores(self) -> GlobalCounts:
        return self.count("global", "store")

    @property
    def global_atomics(self) -> GlobalCounts:
        return self.count("global", "atomic")

    @property
    def shared_loads(self) -> SharedCounts:
        return self.count("shared", "load")

    @property
    def shared_stores(self) -> SharedCounts:
        return self.count("shared", "store")

    @property
    def shared_atomics(self) -> SharedCounts:
        return self.count("shared", "atomic")

    def by_line(self) -> Table:
        """Return a table with the counts of each access in the source."""
        rows = []
        for site in self.sites:
            selected = self._requests["site"] == site.id
            if selected.any():
                head = {"function": site.function, "line": site.line}
                head |= {"access": site.text, "op": site.op}
                rows.append(head | self._costs(selected))
        several = len({row["function"] for row in rows}) > 1
        return _shown(rows, ("function",) * several + ("line", "access", "op"))

    def by_array(self) -> Table:
        """Return a table with the counts of each array, separately for each op."""
        rows = []
        for info in self.arrays:
            for op in ("load", "store", "atomic"):
                selected = (self._requests["array"] == info.id) & (self._requests["op"] == OPS[op])
                if selected.any():
                    head = {"array": info.name, "memory": info.space, "op": op}
                    rows.append(head | self._costs(selected))
        return _shown(rows, ("array", "memory", "op"))

    def by_block(self) -> Table:
        """Return a table with the counts of each block that ran."""
        return self._by("block", lambda row: self._runner.block_place(row))

    def by_warp(self) -> Table:
        """Return a table with the counts of each warp, over all blocks that ran."""
        return self._by("warp", lambda row: row)

    def _by(self, column: str, label: Callable) -> Table:
        rows = []
        for value in np.unique(self._requests[column]):
            named = label(int(value))
            text = str(tuple(named)) if isinstance(named, tuple) else named
            rows.append({column: text} | self._costs(self._requests[column] == value))
        return _shown(rows, (column,))

    def _costs(self, selected: np.ndarray) -> dict[str, int]:
        rows = self._requests[selected]
        sums = (int(rows[name].sum()) for name in ("lanes", "sectors", "wavefronts", "conflicts"))
        return dict(zip(COSTS, (rows.size, *sums), strict=True))

    # Findings.

    @cached_property
    def _findings(self) -> dict[str, list[Finding]]:
        search = Findings(self._runner, self._log, list(self.arrays))
        return {
            "races": search.races(),
            "out_of_bounds": search.out_of_bounds(),
            "uninitialised_reads": search.uninitialised_reads(),
            "divergent_barriers": search.divergent_barriers(),
        }

    @property
    def races(self) -> list[Finding]:
        """Unordered accesses of different threads to one element, at least one of them a write."""
        return self._findings["races"]

    @property
    def out_of_bounds(self) -> list[Finding]:
        """Indices outside an array's shape, and negative indices."""
        return self._findings["out_of_bounds"]

    @property
    def uninitialised_reads(self) -> list[Finding]:
        """Reads of shared memory that no thread has written."""
        return self._findings["uninitialised_reads"]

    @property
    def divergent_barriers(self) -> list[Finding]:
        """Barriers that some threads of a block reach and others do not."""
        return self._findings["divergent_barriers"]

    @property
    def findings(self) -> list[Finding]:
        """All findings: divergent barriers, indices, uninitialised reads and races."""
        return [
            *self.divergent_barriers,
            *self.out_of_bounds,
            *self.uninitialised_reads,
            *self.races,
        ]

    # Every access.

    def accesses(self, block: tuple[int, ...] | None = None) -> np.ndarray:
        """Return an array of ACCESS with a row for each thread's access, in the order of the run.

        `block` (x, y, z) restricts it to one block. `element` is a flat, row-major index, `width`
        is in bytes, and `request` numbers the instructions of all warps of a block in program
        order.
        """
        number = None if block is None else self._block_number(block)
        parts = []
        for piece in events.pieces(self._log, self._ops):
            if number is not None:
                piece = piece.take(piece.block == number)
            if not piece.size:
                continue
            starts = events.first_rows(piece.block)
            parts += [
                self._access_rows(piece.take(slice(low, high)))
                for low, high in zip(starts, np.r_[starts[1:], piece.size], strict=True)
            ]
        return np.concatenate(parts) if parts else np.zeros(0, ACCESS)

    def _access_rows(self, piece: events.Piece) -> np.ndarray:
        made = np.zeros(piece.size, ACCESS)
        for name in ("block", "thread", "phase", "site", "array", "width"):
            made[name] = getattr(piece, name)
        made["warp"] = piece.thread >> events.WARP_SHIFT
        made["lane"] = piece.thread & hardware.WARP - 1
        made["element"] = self._elements(piece)
        keys, inverse = np.unique(piece.key, return_inverse=True)
        paths = self._runner.paths
        ordered = sorted(range(keys.size), key=lambda i: paths.program_order(int(keys[i])))
        rank = np.empty(keys.size, np.int64)
        rank[ordered] = np.arange(keys.size)
        both, _ = events.pack(made["warp"].astype(np.int64), rank[inverse])
        _, made["request"] = np.unique(both, return_inverse=True)
        return made

    def _elements(self, piece: events.Piece) -> np.ndarray:
        flat = np.zeros(piece.size, np.int64)
        for number in np.unique(piece.array):
            info = self.arrays[number]
            rows = np.flatnonzero(piece.array == number)
            contiguous = (piece.address[rows] - info.start) // info.itemsize
            if info.strides != row_major(info.shape, info.itemsize):
                index_of = {int(a): element(info, int(a)) for a in np.unique(piece.address[rows])}
                contiguous = [
                    int(np.ravel_multi_index(index_of[int(a)], info.shape)) if info.shape else 0
                    for a in piece.address[rows]
                ]
            flat[rows] = contiguous
        return flat

    def requests(self, block: tuple[int, ...] = (0, 0), warp: int = 0) -> list[Request]:
        """Return the access instructions of one warp, in program order.

        Raises ValueError for a block that was not traced, or a warp that the block does not have.
        """
        number = self._block_number(block)
        if not 0 <= warp < self.warps:
            raise ValueError(f"a block of {self.block} has warps 0 to {self.warps - 1}, got {warp}")
        parts = [
            piece.take((piece.block == number) & (piece.thread >> events.WARP_SHIFT == warp))
            for piece in events.pieces(self._log, self._ops)
        ]
        parts = [part for part in parts if part.size]
        if not parts:
            return []
        piece = events.together(parts)
        paths = self._runner.paths
        keys = sorted(np.unique(piece.key).tolist(), key=paths.program_order)
        elements = self._elements(piece)
        by_key = np.argsort(piece.key, kind="stable")
        starts = np.searchsorted(piece.key[by_key], keys, side="left")
        ends = np.searchsorted(piece.key[by_key], keys, side="right")
        return [
            self._request(piece.take(rows), elements[rows])
            for rows in (np.sort(by_key[low:high]) for low, high in zip(starts, ends, strict=True))
        ]

    def _request(self, piece: events.Piece, elements: np.ndarray) -> Request:
        order = np.argsort(piece.thread, kind="stable")
        piece, elements = piece.take(order), elements[order]
        info = self.arrays[int(piece.array[0])]
        lanes = piece.thread & hardware.WARP - 1
        shared = info.space == "shared"
        addresses = piece.address - info.allocation
        waves = 0
        if shared:
            zeros = np.zeros(piece.size, np.int64)
            loads = piece.op == events.LOAD
            costs = hardware.wavefronts(zeros, lanes, piece.address, piece.width, loads, 1)
            waves = int(costs[0][0])
        banks = addresses // hardware.BANK_BYTES % hardware.BANKS if shared else ()
        last = addresses + piece.width - 1
        sectors = () if shared else np.unique(np.r_[addresses, last] // hardware.SECTOR_BYTES)
        indices = [np.unravel_index(int(e), info.shape) if info.shape else () for e in elements]
        return Request(
            self.sites[int(piece.site[0])],
            info,
            int(piece.phase[0]),
            int(piece.width[0]),
            *(tuple(int(x) for x in column) for column in (lanes, elements)),
            tuple(tuple(int(i) for i in index) for index in indices),
            *(tuple(int(x) for x in column) for column in (addresses, sectors, banks)),
            waves,
        )

    def _block_number(self, block: tuple[int, ...]) -> int:
        place = (*block, 0, 0, 0)[:3]
        if tuple(place) not in self.blocks:
            raise ValueError(f"block {tuple(block)} was not followed; the grid is {self.grid}")
        return place[0] + self.grid[0] * (place[1] + self.grid[1] * place[2])

    # How it is shown.

    def summary(self) -> Table:
        """Return a table with the counts of each memory and op."""
        rows = []
        for space in ("global", "shared"):
            for op in ("load", "store", "atomic"):
                chosen = (self._requests["shared"] == (space == "shared")) & (
                    self._requests["op"] == OPS[op]
                )
                if chosen.any():
                    rows.append({"memory": space, "op": op} | self._costs(chosen))
        return _shown(rows, ("memory", "op"))

    def _lines(self) -> tuple[str, list[list[str]]]:
        """Return a heading, and for each finding its message and its source lines."""
        blocks = f"{len(self.blocks)} of the grid's blocks, " if self._partial else ""
        head = f"{self.name}, grid {self.grid}, block {self.block}: {blocks}"
        head += f"{len(self.findings)} findings" if len(self.findings) != 1 else "1 finding"
        items = [
            [str(f), *(f"{n:5}  {text}" for n, text in zip(f.lines, f.texts, strict=True))]
            for f in self.findings[:SHOWN_FINDINGS]
        ]
        if len(self.findings) > SHOWN_FINDINGS:
            items.append([f"… and {len(self.findings) - SHOWN_FINDINGS} more, in .findings"])
        return head, items

    @property
    def _partial(self) -> bool:
        return len(self.blocks) < self.grid[0] * self.grid[1] * self.grid[2]

    def __repr__(self) -> str:
        head, items = self._lines()
        listed = (f"- {item}" for item in ("\n".join(lines) for lines in items))
        return "\n".join([head, repr(self.summary()), *listed])

    def _repr_html_(self) -> str:
        head, listed = self._lines()
        items = ""
        for message, *lines in listed:
            source = html.escape("\n".join(lines))
            items += f"<li>{html.escape(message)}{f'<pre>{source}</pre>' if lines else ''}</li>"
        items = f"<ul>{items}</ul>" if items else ""
        return f"<p>{html.escape(head)}</p>{self.summary()._repr_html_()}{items}"


COSTS = ("requests", "lanes", "sectors", "wavefronts", "bank conflicts")


def _shown(rows: list[dict], head: tuple[str, ...]) -> Table:
    """Return a table of counts, without the columns of an unused memory."""
    used = [cost for cost in COSTS if cost != "bank conflicts" and any(r[cost] for r in rows)]
    if "wavefronts" in used:
        used.append("bank conflicts")
    return show_table(rows, (*head, *used))
