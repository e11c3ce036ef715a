"""`trace_gluon`: run a kernel in Gluon on the CPU, and report what is not ordered."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tiled_matmul.microscope.gluon.cluster import Cluster
from tiled_matmul.microscope.gluon.findings import GluonFinding
from tiled_matmul.microscope.gluon.names import Exchanged, is_gluon
from tiled_matmul.microscope.gluon.record import Event, Record, Traffic
from tiled_matmul.microscope.gluon.values import Descriptor, Pointer
from tiled_matmul.microscope.table import Table, plural, table

MOST_BLOCKS = 16
SHOWN = 6
OPTIONS = ("num_warps", "num_ctas", "num_stages", "maxnreg", "debug", "launch_pdl", "warp_size")


class GluonError(RuntimeError):
    """A kernel whose roles wait for ever, or with accesses that nothing orders."""


def trace_gluon(
    kernel: Any, grid: Sequence[int], *arguments: Any, seed: int | None = None, **options: Any
) -> GluonTrace:
    """Run a kernel under `@gluon.jit` in the interpreter and return what it did.

    `grid` is a tuple of one positive int, the number of programs, which run one after another; each
    is a cluster of `num_ctas` blocks. `arguments` and `options` are those of a launch: Gluon's
    descriptors, torch tensors, and numbers. What the kernel stores is in the tensors afterwards.
    Roles take turns when they have to wait; with a `seed`, turns are drawn.

    Raises TypeError or ValueError for a launch that is not possible, also of tensors that have no
    memory, and what the kernel raises.
    """
    if not is_gluon(kernel):
        raise TypeError(f"trace_gluon takes a function under @gluon.jit, got {kernel!r}")
    if not isinstance(grid, tuple | list) or [type(x) for x in grid] != [int] or grid[0] < 1:
        raise ValueError(f"grid must be a tuple of one positive int, got {grid!r}")
    blocks = options.get("num_ctas", 1)
    if type(blocks) is not int or blocks & (blocks - 1) or not 1 <= blocks <= MOST_BLOCKS:
        raise ValueError(f"num_ctas must be 1, 2, 4, 8 or 16, got {blocks!r}")
    given = {name: value for name, value in options.items() if name not in OPTIONS}
    bound = inspect.signature(kernel.fn).bind(*arguments, **given)
    bound.apply_defaults()
    values = {name: _meant(name, value, blocks) for name, value in bound.arguments.items()}
    record = Record(file=kernel.fn.__code__.co_filename)
    for program in range(grid[0]):
        cluster = Cluster(program, grid[0], blocks, record, seed)
        exchanged = Exchanged(cluster)
        function = exchanged.function(kernel)
        known = {name: exchanged.value(value) for name, value in values.items()}
        cluster.run(lambda f=function, x=known: f(**x))
        if any(finding.kind == "deadlock" for finding in record.found.values()):
            break
    return GluonTrace(kernel.fn.__name__, grid[0], blocks, record)


_collected: list[GluonTrace] | None = None
_seed: int | None = None


@contextmanager
def collect(seed: int | None = None) -> Iterator[list[GluonTrace]]:
    """Collect the traces of launches, which then raise nothing; `seed` as for `trace_gluon`."""
    global _collected, _seed
    before = _collected, _seed
    _collected, _seed = [], seed
    try:
        yield _collected
    finally:
        _collected, _seed = before


def launch(kernel: Any, grid: Sequence[int], *arguments: Any, **options: Any) -> None:
    """Make a launch in the interpreter. Raises GluonError for a fault, unless inside `collect`."""
    trace = trace_gluon(kernel, grid, *arguments, seed=_seed, **options)
    if _collected is None:
        trace.require()
    else:
        _collected.append(trace)


class GluonTrace:
    """What one launch did: `events` in order, `findings`, and its `copies`.

    `copies` maps the name of a descriptor to its Traffic, `memories` that of an allocation to its
    bytes in a block's shared memory, or its tensor memory.
    """

    def __init__(self, name: str, programs: int, blocks: int, record: Record) -> None:
        self.name, self.programs, self.blocks = name, programs, blocks
        self.events: list[Event] = record.events
        self.findings: list[GluonFinding] = list(record.found.values())
        self.copies: dict[str, Traffic] = record.copies
        self.memories: dict[str, int] = record.memories

    @property
    def ok(self) -> bool:
        """Did all roles end, with every access ordered?"""
        return not self.findings

    def by_descriptor(self) -> Table:
        """Return a table of the copies of each descriptor."""
        columns = "matrix", "copies", "buffers filled", "bytes filled", "lines of the L2"
        return table(
            [
                dict(zip(columns, (name, t.copies, t.filled, t.bytes, t.lines), strict=True))
                for name, t in self.copies.items()
            ]
        )

    def by_line(self) -> Table:
        """Return a table of what each line of the kernel did, and how often."""
        counted = Counter((e.function, e.line, e.kind, _without_index(e)) for e in self.events)
        rows = sorted(counted.items(), key=lambda item: item[0][:2])
        return table(
            [
                {"line": line, "in": function, "does": kind, "to": buffer, "times": times}
                for (function, line, kind, buffer), times in rows
                if line
            ]
        )

    def by_array(self) -> Table:
        """Return `by_descriptor()`."""
        return self.by_descriptor()

    def _no_view(self) -> Table:
        raise ValueError(f"{self.name} is in Gluon: its trace has views by line and by array")

    by_block = by_warp = _no_view

    def require(self) -> None:
        """Raise GluonError if roles wait for each other for ever, or an access is not ordered."""
        if not self.ok:
            raise GluonError(str(self))

    def __repr__(self) -> str:
        cluster = f" of {self.blocks} blocks" if self.blocks > 1 else ""
        lines = [f"{self.name}: {plural(self.programs, 'program')}{cluster}"]
        lines += [f"- {finding}" for finding in self.findings[:SHOWN]]
        if len(self.findings) > SHOWN:
            lines.append(f"- and {len(self.findings) - SHOWN} more")
        if self.ok:
            lines.append("Every access is ordered, and every role came to its end.")
        return "\n".join(lines)


def _meant(name: str, value: Any, blocks: int) -> Any:
    """Return what an argument of a launch is in a kernel."""
    tensor = getattr(value, "base", value)
    if hasattr(tensor, "untyped_storage") and tensor.untyped_storage().device.type == "meta":
        raise ValueError(f"{name} is {type(tensor).__name__} {tuple(tensor.shape)} without memory")
    if hasattr(value, "block_shape"):
        return Descriptor(name, value, blocks)
    return Pointer(name, value) if hasattr(value, "data_ptr") else value


def _without_index(event: Event) -> str:
    return event.buffer.partition("[")[0]
