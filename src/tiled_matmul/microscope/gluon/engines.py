"""The copy engine and the tensor cores of a cluster: what is started, and when it takes effect.

Each step takes effect as late as it may: a copy lands, and a product in tensor memory is done, when
no role can go on without it; other products and stores, when their role waits for them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from tiled_matmul.microscope.gluon.clocks import Clock
from tiled_matmul.microscope.gluon.record import Record
from tiled_matmul.microscope.gluon.roles import Role, Roles
from tiled_matmul.microscope.gluon.shared import Memory, View
from tiled_matmul.microscope.gluon.values import Descriptor, Tile

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
    line: int
    function: str
    clock: Clock
    arrivals: list[View]
    product: Callable[[], None] | None = None


class Sums(Tile):
    """The accumulator of products, which change it when their role waits for them."""

    def __init__(
        self, start: Tile, use_acc: bool, number: int, check: Callable[[int], None]
    ) -> None:
        super().__init__(start._data, start.shape, start.dtype)
        self.start, self.use_acc, self.number, self.check = start, use_acc, number, check

    @property
    def data(self) -> torch.Tensor:
        self.check(self.number)
        return self._data

    def finish(self, a: torch.Tensor, b: torch.Tensor) -> None:
        """Add the product of two tiles, in float32."""
        product = a.float() @ b.float()
        self._data = self.start._data + product if self.use_acc else product


class Engines:
    """The part of a Cluster that copies and multiplies; the rest is memory, barriers and roles."""

    program: int
    record: Record
    roles: Roles
    role: Role
    block: int
    place: Callable[[], tuple[int, str]]
    _access: Callable[..., None]
    _barriers: Callable[[View], Memory]
    _set_up: Callable[[], None]
    _note: Callable[..., None]
    _find: Callable[..., None]

    def __init__(self, blocks: int) -> None:
        self.copies: list[Copy] = []
        self.copied: dict[tuple, int] = {}  # how many were started, by source
        self.tensor_steps: list[TensorStep] = []
        self.tensor_started = [0] * blocks

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
            self.copied[source] = event = self.copied.get(source, 0) + 1
            who = f"the copy of {descriptor.name}"
            self._access(to, block, who, writes=True, asynchronous=True, source=source, event=event)
            clock[source] = event
        corner = descriptor.corner(at, self.block)
        targets = [(x, to, barrier) for x in blocks]
        self.copies.append(Copy(descriptor, corner, targets, clock, line, function))
        self.record.traffic(descriptor, corner, len(blocks))
        self._note("copy", to, corner=corner, blocks=blocks)
        self.roles.pause()

    def _land(self) -> bool:
        """Let the oldest copy arrive, or the next product be done; False if none is on its way."""
        if not self.copies:
            return self._tensor_step()
        copy = self.copies.pop(0)
        tile = copy.descriptor.read(copy.corner)
        for block, to, barrier in copy.targets:
            to.data(block).copy_(tile)
            who = {"role": "copies", "kind": "landed", "buffer": to.name, "barrier": barrier.name}
            self._tell(copy, block, barrier, who, bytes=-copy.descriptor.nbytes_per_cta)
        return True

    def _tell(
        self, step: Any, block: int, view: View, who: dict, count: int = 0, bytes: int = 0
    ) -> None:
        """Let a step of the hardware arrive at a block's barrier, or bring bytes to it."""
        barrier = view.memory.barrier(block, view.index)
        phase = barrier.phase
        over = barrier.arrive(step.clock, Clock(), count, bytes)
        who |= {"line": step.line, "function": step.function, "phase": phase, "completes": over}
        self.record.note(program=self.program, block=block, **who)

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
        self._note("store", view, corner=corner)

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
        sums = Sums(acc, bool(use_acc), number, lambda number: self._finished(role, number))
        block = role.block
        left = a.data(block) if isinstance(a, View) else a.data
        role.products.append((sums, left, b.data(block)))
        self._note("product", b)
        if not asynchronous:
            self.wait_products(0, [])
        return sums

    def wait_products(self, most: int, deps: Sequence[Any]) -> Any:
        """Wait until at most so many of the role's products are not done; return `deps`."""
        role = self.role
        while len(role.products) > most:
            sums, left, right = role.products.pop(0)
            sums.finish(left, right)
            role.clock["products", role.block, role.name] = sums.number
        self._note("products done", under_way=len(role.products))
        return deps[0] if len(deps) == 1 else tuple(deps)

    def _finished(self, role: Role, number: int) -> None:
        if number > role.clock.get(("products", role.block, role.name), 0):
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

        told = [view for view in barriers or () if self._barriers(view)]
        self.tensor_steps.append(TensorStep(block, line, function, clock, told, product))
        self._note("product", b)
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
        self._barriers(barrier)
        self.tensor_steps.append(TensorStep(block, line, function, clock, [barrier]))

    def _tensor_step(self) -> bool:
        """Let the next step of the tensor cores be done. Returns False if there is none."""
        if not self.tensor_steps:
            return False
        step = self.tensor_steps.pop(0)
        if step.product is not None:
            step.product()
        for view in step.arrivals:
            who = {"role": "tensor cores", "kind": "arrive", "buffer": view.name}
            self._tell(step, step.block, view, who, count=1)
        return True
