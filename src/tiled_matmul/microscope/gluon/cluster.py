"""One program in Gluon: a cluster of one or more blocks, whose roles copy, multiply and wait.

Copies, products and stores are asynchronous, and take effect as late as they may (`engines.py`). So
a kernel that does not wait gets old data, as it may on a GPU; and each access is checked against
the clocks, which do not depend on when it happened.
"""

from __future__ import annotations

import linecache
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tiled_matmul.microscope.gluon.clocks import Access, Clock
from tiled_matmul.microscope.gluon.engines import TENSOR, Engines
from tiled_matmul.microscope.gluon.record import Record
from tiled_matmul.microscope.gluon.roles import Role, Roles
from tiled_matmul.microscope.gluon.shared import Barrier, Memory, View
from tiled_matmul.microscope.gluon.values import Tile

# What is called in the kit is reported where it is called.
HELPERS = str(Path(__file__).parents[2] / "kit") + os.sep
WORKERS = "worker"
FIRST = "first"


@dataclass(frozen=True)
class Remote:
    """An arrival at a barrier of another block, `block`, whose name is `who`; it is an Access."""

    source: tuple
    event: int
    who: str
    line: int
    function: str
    block: int


class Cluster(Engines):
    """The blocks of one program, and what Gluon's functions do in them."""

    def __init__(self, program: int, programs: int, blocks: int, record: Record, seed: Any) -> None:
        super().__init__(blocks)
        self.program, self.programs, self.blocks, self.record = program, programs, blocks, record
        self.roles = Roles(None if seed is None else seed + program)
        self.memories: list[Memory] = []
        self.calls: dict[int, int] = {}  # of allocate_shared_memory, by block
        self.initialised = False
        self.met: dict[str, tuple[set[int], Clock]] = {}
        self.meetings = [0] * blocks
        self.remote: list[Remote] = []

    def run(self, body: Callable[[], Any]) -> None:
        """Run a kernel's body in every block, and then what is still on its way."""
        for block in range(self.blocks):
            self.roles.add(Role(FIRST, block, body))
        self.roles.run(self._land)
        for role in self.roles.stuck:
            line, function = role.waits_at
            block = f" of block {role.block}" if self.blocks > 1 else ""
            text = f"Line {line}: {role.title}{block} {role.waits_in_words()}."
            self._find("deadlock", "", line, text, role=role, function=function)
        if self.roles.stuck:
            return
        while self._land():
            pass
        for arrival in self.remote:
            if not self.roles.all[arrival.block].clock.knows(arrival):
                text = (
                    f"Line {arrival.line} arrives at {arrival.who} of block {arrival.block}, which "
                    "may have ended, and its shared memory with it."
                )
                self._find("block gone", arrival.who, arrival.line, text, function=arrival.function)
        for role in self.roles.all:
            for line, _, buffer in role.stores:
                text = (
                    f"Line {line} starts a store of {buffer.name}, and the program ends while the "
                    "store may still read it."
                )
                self._find("unfinished store", buffer.name, line, text, role=role)
            self._stores(role, 0)

    # Where the kernel is.

    @property
    def role(self) -> Role:
        """The role whose turn it is."""
        return self.roles.current

    @property
    def block(self) -> int:
        """Its block."""
        return self.role.block

    def place(self) -> tuple[int, str]:
        """Return the line and function of the kernel that is running, not of its helpers."""
        frame, at = sys._getframe(1), None
        while frame is not None:
            if frame.f_code in self.record.codes:
                at = at or frame
                if not frame.f_code.co_filename.startswith(HELPERS):
                    at = frame
                    break
            frame = frame.f_back
        if at is None:
            return 0, ""
        place = at.f_lineno, at.f_code.co_name
        self.record.files[place] = at.f_code.co_filename
        return place

    # Memory.

    def allocate(self, dtype: Any, shape: Sequence[int], layout: Any) -> View:
        """Return shared memory; its name is that of the variable it is assigned to."""
        number = self.calls.get(self.block, 0)
        self.calls[self.block] = number + 1
        if number == len(self.memories):
            name = self._assigned() or f"memory {number}"
            self.memories.append(Memory(name, dtype, shape, layout, self.blocks))
            self.record.memory(self.memories[-1])
        return View(self.memories[number])

    def _assigned(self) -> str:
        """Return the variable that the statement assigns to, or that of the outermost caller."""
        name, frame = "", sys._getframe(1)
        while frame is not None:
            if frame.f_code in self.record.codes:
                text = linecache.getline(frame.f_code.co_filename, frame.f_lineno)
                target = text.partition("=")[0].partition(":")[0].strip()
                name = target if target.isidentifier() else name
            frame = frame.f_back
        return name

    def store(self, view: View, tile: Tile) -> None:
        """Store a tile from registers into a buffer."""
        data = tile.data
        self._access(view, self.block, "threads", writes=True, asynchronous=False)
        target = view.data(self.block)
        if target.shape != data.shape:
            raise ValueError(f"{view.name} has the shape {view.shape}, the tile {tile.shape}")
        target.copy_(data)

    def load(self, view: View) -> Tile:
        """Return a buffer's tile in registers."""
        self._access(view, self.block, "threads", writes=False, asynchronous=False)
        return Tile(view.data(self.block).clone(), view.shape, view.dtype)

    def _access(
        self,
        view: View,
        block: int,
        who: str,
        *,
        writes: bool,
        asynchronous: bool,
        source: tuple | None = None,
        event: int = 0,
    ) -> None:
        """Check an access to a buffer against those before, and note it."""
        role, (line, function) = self.role, self.place()
        if source is None:
            source, event = role.source, role.tick()
        access = Access(source, event, who, line, function, writes, asynchronous)
        buffer = view.memory.buffer(block, view.index)
        name = view.name + (f" of block {block}" if self.blocks > 1 else "")
        start = f"Line {line}: {who} {access.verb}{'' if who == 'threads' else 's'} {name}"
        if not writes and buffer.write is None:
            self._find("not written", name, line, f"{start}, and nothing has filled it yet.")
        for before in buffer.before(access):
            if before.source == access.source and source[0] == TENSOR:
                continue  # they are done in their order
            if not role.clock.knows(before):
                text = (
                    f"{start}, while {before.who} of line {before.line} may still {before.verb} it."
                )
                elsewhere = before.source[0] != "copy" and before.source[1] != role.block
                kind = "other block" if elsewhere else _kind(before, access)
                self._find(kind, name, line, text, before.line)
            elif (
                asynchronous
                and before.writes
                and not before.asynchronous
                and before.event > role.fenced.get(before.source, 0)
            ):
                text = (
                    f"{start}, which threads filled in line {before.line}: what threads store is "
                    "not seen by the copy engine and the tensor cores at once."
                )
                self._find("no fence", name, line, text, before.line)
        buffer.add(access)

    def fence(self) -> None:
        """Let the copy engine see what this role knows to be written."""
        self.role.fenced.join(self.role.clock)

    # Barriers.

    def init(self, view: View, count: int) -> None:
        """Set a barrier up, for `count` arrivals of each block of its group."""
        memory, block = self._barriers(view), self.block
        if memory.shares.leader(block) == block:
            count *= len(memory.shares.group(block))
            memory.state[block, view.index] = Barrier(view.name, count, count)
        self.initialised = True

    def arrive(self, view: View, count: int, pred: Any) -> None:
        """Arrive at a barrier, with what is over for this role."""
        self._set_up()
        if pred:
            self._signal(view, count)

    def expect(self, view: View, bytes: int, pred: Any) -> None:
        """Arrive at a barrier, and let its phase wait for so many bytes, too."""
        self._set_up()
        if pred:
            self._signal(view, 1, int(bytes))

    def _signal(self, view: View, count: int, bytes: int = 0) -> None:
        memory, role = self._barriers(view), self.role
        barrier = memory.barrier(self.block, view.index)
        if barrier.arrivals < count:
            line, _ = self.place()
            text = (
                f"Line {line} arrives at {view.name}, which has all {barrier.count} arrivals of "
                f"its phase {barrier.phase} already."
            )
            self._find("too many arrivals", view.name, line, text)
        role.tick()
        phase = barrier.phase
        leader = memory.shares.leader(self.block)
        if leader != self.block:
            event = role.clock[role.source]
            self.remote.append(Remote(role.source, event, view.name, *self.place(), block=leader))
        over = barrier.arrive(role.clock, role.fenced, count, bytes)
        self._note("expect" if bytes else "arrive", view, phase, over)
        self.roles.pause()

    def wait(self, view: View, parity: int, pred: Any) -> None:
        """Wait until a barrier's phase of this parity is over. Only a group's first block waits."""
        self._set_up()
        memory, block = self._barriers(view), self.block
        if not pred or memory.shares.leader(block) != block:
            return
        barrier, parity = memory.barrier(block, view.index), int(parity)
        if parity not in (0, 1):
            raise ValueError(f"mbarrier.wait takes a phase of 0 or 1, got {parity}")
        if not barrier.passed(parity):
            self._wait(
                lambda: barrier.passed(parity),
                lambda: f"waits for a phase of parity {parity}; {barrier}",
            )
        self.role.clock.join(barrier.completed)
        self.role.fenced.join(barrier.completed_fenced)
        self._note("wait", view, barrier.phase - 1)

    def leave(self) -> None:
        """Wait for all blocks at `cluster.barrier`, or `cluster.wait` after `cluster.arrive`."""
        self.meetings[self.block] += 1
        self.meet(f"meeting {self.meetings[self.block]}")

    def _wait(self, condition: Callable[[], bool], words: Callable[[], str]) -> None:
        self.roles.wait(condition, self.place(), words)

    def _barriers(self, view: View) -> Memory:
        if not view.memory.barriers:
            raise TypeError(f"{view.name} is no barrier: its layout is no MBarrierLayout")
        if len(view.index) != view.memory.leading:
            raise TypeError(f"{view.name} are several barriers: take one with index()")
        return view.memory

    def _set_up(self) -> None:
        """All blocks of a cluster wait for each other between `init` and the first use."""
        if self.blocks > 1 and self.initialised:
            self.meet("init")

    def meet(self, name: str) -> None:
        """Wait, once for each name, until all blocks are here, and know what they know."""
        here, clock = self.met.setdefault(name, (set(), Clock()))
        if self.block in here:
            return
        here.add(self.block)
        clock.join(self.role.clock)
        if len(here) < self.blocks:
            self._wait(
                lambda: len(here) == self.blocks, lambda: "waits for the cluster's other blocks"
            )
        self.role.clock.join(clock)

    # Roles.

    def specialise(self, jobs: Sequence[tuple[Any, Sequence[Any]]]) -> Any:
        """Run the first job here and the others in roles of their own; return the first's result.

        A block has as many roles as jobs, and goes on when all are done.
        """
        if self.blocks > 1:
            self.meet("warp_specialize")
        block, own = self.block, self.role
        started = []
        for number, (function, arguments) in enumerate(jobs[1:], 1):
            name = getattr(function, "__name__", WORKERS)
            role = Role(f"{name} {number}", block, lambda f=function, x=arguments: f(*x))
            role.clock.join(own.clock)
            role.fenced.join(own.fenced)
            started.append(self.roles.add(role))
        function, arguments = jobs[0]
        own.title = f"{getattr(function, '__name__', FIRST)} 0"
        result = function(*arguments)
        if not all(role.done for role in started):
            self._wait(
                lambda: all(role.done for role in started), lambda: "waits for the other roles"
            )
        for role in started:
            own.clock.join(role.clock)
        return result

    # Notes.

    def _note(
        self,
        kind: str,
        view: View | None = None,
        phase: int | None = None,
        over: bool = False,
        **more: Any,
    ) -> None:
        line, function = self.place()
        self.record.note(
            program=self.program,
            block=self.block,
            role=self.role.title,
            kind=kind,
            buffer=view.name if view else "",
            line=line,
            function=function,
            phase=phase,
            completes=over,
            **more,
        )

    def _find(
        self,
        kind: str,
        buffer: str,
        line: int,
        message: str,
        other: int = 0,
        role: Role | None = None,
        function: str = "",
    ) -> None:
        role, function = role or self.role, function or self.place()[1]
        file = self.record.files.get((line, function), "")
        self.record.find(
            kind=kind,
            line=line,
            function=function,
            text=linecache.getline(file, line).strip(),
            other=other,
            program=self.program,
            block=role.block,
            role=role.title,
            buffer=buffer,
            message=message,
        )


def _kind(before: Access, access: Access) -> str:
    """Return the kind of fault if `access` does not know that `before` is over."""
    if before.source[0] == "copy" and not access.writes:
        return "unfilled"
    if before.source[0] in ("products", TENSOR):
        return "unfinished product" if access.writes else "unfinished sums"
    if before.source[0] == "stores":
        return "unfinished store"
    if access.source[0] == "copy":
        return "too early"
    return "race"
