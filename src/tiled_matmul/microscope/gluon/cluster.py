"""One program in Gluon: a cluster of one or more blocks, whose roles copy, multiply and wait.

Copies, products and stores are asynchronous. Here each takes effect as late as it may: a copy lands
when no role can go on without it, a product and a store when their role waits for them. So a kernel
that does not wait gets old data, as it may on a GPU; and each access is checked against the clocks,
which do not depend on when it happened.
"""

from __future__ import annotations

import linecache
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from tiled_matmul.microscope.gluon.clocks import Access, Clock
from tiled_matmul.microscope.gluon.record import Record
from tiled_matmul.microscope.gluon.roles import Role, Roles
from tiled_matmul.microscope.gluon.shared import Barrier, Memory, View
from tiled_matmul.microscope.gluon.values import Descriptor, Tile

WORKERS = "worker"
FIRST = "first"
TENSOR = "tensor"


@dataclass
class Copy:
    """A copy that was started: it writes `targets`, and then signals a barrier in each block."""

    descriptor: Descriptor
    corner: list[int]
    targets: list[tuple[int, View, View]]  # (block, buffer, barrier)
    clock: Clock
    line: int
    function: str


@dataclass
class TensorStep:
    """A step of a block's tensor cores: a product in tensor memory, or arrivals that follow it."""

    block: int
    role: str
    line: int
    function: str
    clock: Clock
    arrivals: list[View]
    product: Callable[[], None] | None = None


class Sums(Tile):
    """The accumulator of products, which change it when their role waits for them."""

    def __init__(self, role: Role, start: Tile, use_acc: bool, shape: Sequence[int]) -> None:
        super().__init__(start._data, shape, start.dtype)
        self.role, self.start, self.use_acc = role, start, use_acc
        self.number = 0
        self.check: Callable[[], None] | None = None

    @property
    def data(self) -> torch.Tensor:
        if self.check is not None:
            self.check()
        return self._data

    def finish(self, a: torch.Tensor, b: torch.Tensor) -> None:
        """Add the product of two tiles, in float32."""
        product = a.float() @ b.float()
        self._data = self.start._data + product if self.use_acc else product


class Cluster:
    """The blocks of one program, and what Gluon's functions do in them."""

    def __init__(self, program: int, programs: int, blocks: int, record: Record, seed: Any) -> None:
        self.program, self.programs, self.blocks, self.record = program, programs, blocks, record
        self.roles = Roles(None if seed is None else seed + program)
        self.copies: list[Copy] = []
        self.tensor_steps: list[TensorStep] = []
        self.tensor_started = [0] * blocks
        self.memories: list[Memory] = []
        self.calls: dict[int, int] = {}  # of allocate_shared_memory, by block
        self.initialised = False
        self.met: dict[str, tuple[set[int], Clock]] = {}

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
        """Return the line and function that is running, in the file of the kernel if it can be."""
        frame, inner = sys._getframe(1), None
        while frame is not None:
            if frame.f_code in self.record.codes:
                inner = inner or frame
                if frame.f_code.co_filename == self.record.file:
                    return frame.f_lineno, frame.f_code.co_name
            frame = frame.f_back
        return (inner.f_lineno, inner.f_code.co_name) if inner else (0, "")

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
        self._note("wait", view, barrier.phase - 1, False)

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

    # Copies.

    def copy(
        self,
        descriptor: Descriptor,
        at: Sequence[int],
        barrier: View,
        to: View,
        pred: Any,
        multicast: bool,
    ) -> None:
        """Start a copy of a tile into a buffer; with `multicast`, into those of all that share it.

        Then the first of the blocks that hold the same copies for all of them.
        """
        self._set_up()
        if not pred:
            return
        self._fits(descriptor, to)
        self._barriers(barrier)
        held = to.memory.shares
        blocks = held.group(self.block) if multicast else [self.block]
        if multicast and held.leader(self.block) != self.block:
            return
        role, (line, function) = self.role, self.place()
        role.tick()
        clock = Clock(role.clock)
        for block in blocks:
            source = "copy", block, to.memory.name, to.index
            event = self.record.copied.get((self.program, source), 0) + 1
            self.record.copied[self.program, source] = event
            who = f"the copy of {descriptor.name}"
            self._access(to, block, who, writes=True, asynchronous=True, source=source, event=event)
            clock[source] = event
        corner = descriptor.corner(at, self.block)
        targets = [(x, to, barrier) for x in blocks]
        self.copies.append(Copy(descriptor, corner, targets, clock, line, function))
        self.record.traffic(descriptor, corner, len(blocks))
        self._note("copy", to, None, False, corner=corner, blocks=blocks)
        self.roles.pause()

    def _land(self) -> bool:
        """Let the oldest copy arrive, or the next product be done; False if none is on its way."""
        if not self.copies:
            return self._tensor_step()
        copy = self.copies.pop(0)
        tile = copy.descriptor.read(copy.corner)
        for block, to, barrier in copy.targets:
            to.data(block).copy_(tile)
            signalled = barrier.memory.barrier(block, barrier.index)
            phase = signalled.phase
            over = signalled.land(copy.clock, copy.descriptor.nbytes_per_cta)
            self.record.note(
                program=self.program,
                block=block,
                role="copies",
                kind="landed",
                buffer=to.name,
                line=copy.line,
                function=copy.function,
                phase=phase,
                completes=over,
                barrier=barrier.name,
            )
        return True

    def start_store(self, descriptor: Descriptor, at: Sequence[int], view: View) -> None:
        """Start a store of a buffer to global memory."""
        self._fits(descriptor, view)
        role, (line, _) = self.role, self.place()
        role.started["stores"] += 1
        source = "stores", role.block, role.name
        who = f"the store to {descriptor.name}"
        self._access(
            view,
            role.block,
            who,
            writes=False,
            asynchronous=True,
            source=source,
            event=role.started["stores"],
        )
        corner = descriptor.corner(at, role.block)
        block = role.block
        role.stores.append((line, lambda: descriptor.write(corner, view.data(block)), view))
        self._note("store", view, None, False, corner=corner)

    def wait_stores(self, most: int) -> None:
        """Wait until at most so many of the role's stores still read their buffers."""
        self._stores(self.role, most)

    def _stores(self, role: Role, most: int) -> None:
        while len(role.stores) > most:
            role.stores.pop(0)[1]()
        role.clock["stores", role.block, role.name] = role.started["stores"] - len(role.stores)

    def _fits(self, descriptor: Descriptor, view: View) -> None:
        if view.shape != descriptor.block_shape:
            raise ValueError(
                f"{descriptor.name} copies tiles of {descriptor.block_shape}, and {view.name} has "
                f"the shape {view.shape}"
            )

    # Products.

    def multiply(self, a: Any, b: View, acc: Tile, use_acc: Any, asynchronous: bool) -> Sums:
        """Start the product of two tiles, which adds to `acc`; a is in registers or shared."""
        role = self.role
        if not isinstance(acc, Tile):
            raise TypeError(f"warpgroup_mma adds to a tile in registers, got {acc!r}")
        rows, columns = acc.shape
        if a.shape[-1] != b.shape[-2] or a.shape[-2] != rows or b.shape[-1] != columns:
            raise ValueError(
                f"warpgroup_mma of {a.shape} and {b.shape} gives no sums of {acc.shape}"
            )
        role.started["products"] += 1
        number = role.started["products"]
        source = "products", role.block, role.name
        for view in (a, b):
            if isinstance(view, View):
                self._access(
                    view,
                    role.block,
                    "the product",
                    writes=False,
                    asynchronous=True,
                    source=source,
                    event=number,
                )
        sums = Sums(role, acc, bool(use_acc), acc.shape)
        sums.number = number
        sums.check = lambda: self._finished(sums)
        block = role.block
        left = a.data(block) if isinstance(a, View) else a.data
        role.products.append((number, sums, left, b.data(block)))
        self._note("product", b, None, False)
        if not asynchronous:
            self.wait_products(0, [])
        return sums

    def wait_products(self, most: int, deps: Sequence[Any]) -> Any:
        """Wait until at most so many of the role's products are not done; return `deps`."""
        role = self.role
        while len(role.products) > most:
            number, sums, left, right = role.products.pop(0)
            sums.finish(left, right)
            role.clock["products", role.block, role.name] = number
        self._note("products done", None, None, False, under_way=len(role.products))
        return deps[0] if len(deps) == 1 else tuple(deps)

    def _finished(self, sums: Sums) -> None:
        role = sums.role
        if sums.number > role.clock.get(("products", role.block, role.name), 0):
            line, _ = self.place()
            text = f"Line {line} uses the sums of a product that may not be done."
            self._find("unfinished sums", "", line, text)

    # Tensor memory.

    def multiply_there(
        self, a: View, b: View, acc: View, use_acc: Any, pred: Any, barriers: Sequence[View] | None
    ) -> None:
        """Start a product whose sums are in tensor memory; `barriers` are told when it is done.

        Products of a block are done in their order. Without barriers the role waits.
        """
        if not pred:
            return
        if a.shape[1] != b.shape[0] or acc.shape != [a.shape[0], b.shape[1]]:
            raise ValueError(f"tcgen05_mma of {a.shape} and {b.shape} gives no sums of {acc.shape}")
        role, (line, function), block = self.role, self.place(), self.block
        self.tensor_started[block] += 1
        number, source = self.tensor_started[block], (TENSOR, block)
        given = {"asynchronous": True, "source": source, "event": number}
        for view in (a, b, acc) if use_acc else (a, b):
            self._access(view, block, "the product", writes=False, **given)
        self._access(acc, block, "the product", writes=True, **given)
        clock = Clock(role.clock)
        clock[source] = number
        left, right, sums = a.data(block), b.data(block), acc.data(block)

        def product() -> None:
            new = left.float() @ right.float()
            sums.copy_(sums + new if use_acc else new)

        told = list(barriers or ())
        self.tensor_steps.append(
            TensorStep(block, role.title, line, function, clock, told, product)
        )
        self._note("product", b, None, False)
        if barriers is None:
            while self._tensor_step():
                pass
            role.clock.join(clock)

    def commit(self, barrier: View, pred: Any) -> None:
        """Let a barrier be told when all products so far of this block are done."""
        if not pred:
            return
        role, (line, function), block = self.role, self.place(), self.block
        clock = Clock(role.clock)
        clock[TENSOR, block] = self.tensor_started[block]
        self.tensor_steps.append(TensorStep(block, role.title, line, function, clock, [barrier]))

    def _tensor_step(self) -> bool:
        """Let the next step of the tensor cores be done. Returns False if there is none."""
        if not self.tensor_steps:
            return False
        step = self.tensor_steps.pop(0)
        if step.product is not None:
            step.product()
        for view in step.arrivals:
            barrier = self._barriers(view).barrier(step.block, view.index)
            phase = barrier.phase
            over = barrier.arrive(step.clock, step.clock, 1, 0)
            self.record.note(
                program=self.program,
                block=step.block,
                role="tensor cores",
                kind="arrive",
                buffer=view.name,
                line=step.line,
                function=step.function,
                phase=phase,
                completes=over,
            )
        return True

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

    def _note(self, kind: str, view: View | None, phase: Any, over: bool, **more: Any) -> None:
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
        role = role or self.role
        self.record.find(
            kind=kind,
            line=line,
            function=function or self.place()[1],
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
