"""A kernel in PTX, run instruction by instruction, one thread after the other up to each barrier.

What compilers make of plain kernels is here: integers, float32, loads and stores, asynchronous
copies, barriers, branches. An instruction that is not known stops the run, and is quoted. A copy
arrives when its thread waits for it, and not before, so that a missing wait is seen in C.
"""

from __future__ import annotations

import itertools
import operator
import struct
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from tiled_matmul.microscope.cuda.values import fma
from tiled_matmul.microscope.ptx.parse import Instruction, Kernel, PtxError

APART = 1 << 40  # the distance of two arrays' addresses in global memory
COMPARISONS = {
    **{name: getattr(operator, name) for name in ("eq", "ne", "lt", "le", "gt", "ge")},
    **{"lo": operator.lt, "ls": operator.le, "hi": operator.gt, "hs": operator.ge},
}
INTEGERS: Mapping[str, Callable[..., int]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "mad": lambda x, y, z: x * y + z,
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
    "not": operator.invert,
    "neg": operator.neg,
    "min": min,
    "max": max,
    "shl": lambda x, by: x << min(by, 64),
    "shr": lambda x, by: x >> min(by, 64),
    "mov": lambda x: x,
    "abs": abs,
    # Towards zero, as in C.
    "div": lambda x, y: abs(x) // abs(y) * (1 if x * y >= 0 else -1),
    "rem": lambda x, y: x - y * (abs(x) // abs(y)) * (1 if x * y >= 0 else -1),
}
WIDTHS = {"lo", "hi", "wide"}  # which bits of a product
REALS: Mapping[str, Callable] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "fma": fma,
    "neg": operator.neg,
}


@dataclass(frozen=True)
class Copied:
    """One asynchronous copy: `size` bytes of array `array`, from byte `begin`, to shared memory.

    `thread` and `block` are (x, y, z), `to` is the byte of shared memory, and `barriers` how many
    the thread had passed.
    """

    block: tuple[int, int, int]
    thread: tuple[int, int, int]
    array: int
    begin: int
    to: int
    size: int
    barriers: int


@dataclass
class Ran:
    """What a launch did: its copies in their order, and instructions by name and thread.

    `executed` counts ((x, y, z) of the thread, what the instruction begins with), such as
    "ld.global", over all blocks.
    """

    copies: list[Copied] = field(default_factory=list)
    executed: Counter = field(default_factory=Counter)

    def of(self, name: str) -> dict[tuple[int, int, int], int]:
        """Return how often each thread, by its place in the block, executed an instruction."""
        return {thread: count for (thread, each), count in self.executed.items() if each == name}


def run(
    kernel: Kernel,
    grid: Sequence[int],
    block: Sequence[int],
    arguments: Sequence[bytes | np.ndarray | tuple],
) -> Ran:
    """Run a kernel on `grid` blocks of `block` threads, each up to (x, y, z); return what it did.

    An argument is its bytes, an array, whose address is passed, or an array and the bytes that
    follow its address in a struct. Arrays must be C-contiguous, and are written to. Raises
    PtxError for arguments of another number or of too many bytes, for an instruction that is not
    known, for an access outside of an array, and for a block of which some threads wait for others
    that have ended.
    """
    if len(arguments) != len(kernel.parameters):
        raise PtxError(
            f"{kernel.name} takes {len(kernel.parameters)} arguments, got {len(arguments)}"
        )
    memory: list[memoryview] = []
    values: dict[str, bytes] = {}
    for (name, size), given in zip(kernel.parameters.items(), arguments, strict=True):
        array, rest = given if isinstance(given, tuple) else (given, b"")
        if isinstance(array, np.ndarray):
            memory.append(memoryview(array).cast("B"))
            array = struct.pack("<q", APART * len(memory))
        if len(array) + len(rest) > size:
            raise PtxError(f"{name} has {size} bytes, got {len(array) + len(rest)}")
        values[name] = (array + rest).ljust(size, b"\0")
    ran = Ran()
    sizes, places = (*grid, 1, 1)[:3], (*block, 1, 1)[:3]
    for at in _places(sizes):
        shared = memoryview(bytearray(kernel.shared_bytes))
        threads = [
            _Thread(kernel, values, memory, shared, sizes, places, at, place, ran)
            for place in _places(places)
        ]
        running = [(thread, thread.steps()) for thread in threads]
        while running:
            waits = [pair for pair in running if next(pair[1], None) is not None]
            if waits and len(waits) < len(running):
                ended = len(running) - len(waits)
                raise PtxError(f"in block {at} {len(waits)} threads wait for {ended} that ended")
            running = waits
    return ran


def _places(sizes: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    """Yield every (x, y, z) below the sizes, x the fastest."""
    for z, y, x in itertools.product(*map(range, reversed(sizes))):
        yield x, y, z


class _Thread:
    """One thread: its registers as unsigned integers, by name, and its copies under way."""

    def __init__(
        self,
        kernel: Kernel,
        values: Mapping[str, bytes],
        memory: Sequence[memoryview],
        shared: memoryview,
        grid: tuple,
        block: tuple,
        at: tuple[int, int, int],
        place: tuple[int, int, int],
        ran: Ran,
    ) -> None:
        self.kernel, self.values, self.ran = kernel, values, ran
        self.memory, self.shared = memory, shared
        self.block, self.place = at, place
        special = {"%tid": place, "%ctaid": at, "%ntid": block, "%nctaid": grid}
        self.registers: dict[str, int] = {
            f"{name}.{axis}": size
            for name, sizes in special.items()
            for axis, size in zip("xyz", sizes, strict=True)
        }
        self.who = f"thread {place} of block {at}"
        self.under_way: list[tuple[int, bytes]] = []
        self.barriers = 0

    def steps(self) -> Iterator[bool]:
        """Run, and yield at each barrier."""
        at = 0
        while at < len(self.kernel.code):
            each = self.kernel.code[at]
            at += 1
            if each.guard and bool(self.value(each.guard, "pred")) == each.unless:
                continue
            name, *more = each.operation
            self.ran.executed[self.place, ".".join(_named(each))] += 1
            if name == "bra":
                at = self.kernel.labels[each.operands[0]]
            elif name == "ret":
                return
            elif name in ("bar", "barrier") and each.operands == ("0",):
                self.barriers += 1
                yield True
            elif name in ("ld", "st"):
                self.move(each)
            elif name == "cp":
                self.copy(each)
            else:
                self.compute(each, name, more)

    def compute(self, each: Instruction, name: str, more: Sequence[str]) -> None:
        """Run an instruction on registers."""
        kind = more[-1] if more else ""
        to, *given = each.operands
        if name == "cvta":
            result = self.value(given[0], "u64")
        elif name == "setp" and len(more) == 2 and more[0] in COMPARISONS and kind[1:] != "16":
            read = self.real if kind == "f32" else lambda x: self.value(x, kind)
            x, y = map(read, given)
            result = int(x == x and y == y and COMPARISONS[more[0]](x, y))  # a NaN is unlike all
        elif name == "selp":
            result = self.value(given[0] if self.value(given[2], "pred") else given[1], kind)
        elif name == "cvt" and len(more) == 2 and {more[0][0], kind[0]} <= {"u", "s"}:
            result, kind = self.value(given[0], kind), more[0]
        elif kind == "f32" and name in REALS and set(more) <= {"f32", "rn"}:
            with np.errstate(all="ignore"):
                real = REALS[name](*(self.real(x) for x in given))
            result = struct.unpack("<I", struct.pack("<f", real))[0]
        elif name in INTEGERS and kind[:1] in set("usbp") and set(more[:-1]) <= WIDTHS:
            asked = [kind] * len(given)
            if "wide" in more:
                wide = f"{kind[0]}{2 * int(kind[1:])}"
                asked, kind = [kind, kind, wide][: len(given)], wide
            elif name in ("shl", "shr"):
                asked[1] = "u32"
            numbers = [self.value(x, of) for x, of in zip(given, asked, strict=True)]
            if "hi" in more:
                high = numbers[0] * numbers[1] >> int(kind[1:])
                result = high + sum(numbers[2:])
            elif name in ("div", "rem") and not numbers[1]:
                raise PtxError(f"{self.who} divides by 0: {each.text}")
            else:
                result = INTEGERS[name](*numbers)
        else:
            raise PtxError(f"this instruction is not known: {each.text}")
        bits = 1 if kind == "pred" or name == "setp" else int(kind[1:])
        self.registers[to] = result & ((1 << bits) - 1)

    def value(self, operand: str, kind: str) -> int:
        """Return an operand as an integer of a type, such as "s32"."""
        if operand in self.registers:
            number = self.registers[operand]
        elif operand in self.kernel.shared:
            number = self.kernel.shared[operand]
        elif operand.startswith(("0f", "0F")):
            number = int(operand[2:], 16)
        else:
            try:
                number = int(operand, 0)
            except ValueError:
                raise PtxError(f"{operand} is read before it is written") from None
        if kind == "pred":
            return number
        bits = int(kind[1:])
        number &= (1 << bits) - 1
        return number - (1 << bits) if kind[0] == "s" and number >> (bits - 1) else number

    def real(self, operand: str) -> np.float32:
        """Return an operand as a float32."""
        return np.uint32(self.value(operand, "b32")).view(np.float32)

    def address(self, operand: str) -> int:
        """Return the address in brackets: a register or a name, and what is added to it."""
        base, sign, added = operand.strip("[] ").partition("+")
        return self.value(base, "u64") + (int(added) if sign else 0)

    def at(self, space: str, address: int, size: int, text: str) -> memoryview:
        """Return bytes of global or shared memory. Raises PtxError outside of them."""
        number, begin = divmod(address, APART) if space == "global" else (1, address)
        if space == "global" and not 1 <= number <= len(self.memory):
            raise PtxError(f"{self.who}: address {address:#x} is in no array: {text}")
        whole = self.memory[number - 1] if space == "global" else self.shared
        if begin + size > len(whole):
            what = f"array {number - 1}" if space == "global" else "shared memory"
            outside = f"bytes {begin} to {begin + size} of {what}, which has {len(whole)}"
            raise PtxError(f"{self.who}: {outside}: {text}")
        return whole[begin : begin + size]

    def move(self, each: Instruction) -> None:
        """Run a load or a store, of one value or of several."""
        name, space, *more = each.operation
        size = int(more[-1][1:]) // 8
        register, place = each.operands if name == "ld" else each.operands[::-1]
        registers = [x.strip() for x in register.strip("{}").split(",")]
        if space == "param":
            base, _, added = place.strip("[]").partition("+")
            data = memoryview(self.values[base])[int(added or 0) :]
        else:
            data = self.at(space, self.address(place), size * len(registers), each.text)
        for number, one in enumerate(registers):
            part = slice(size * number, size * (number + 1))
            if name == "ld":
                signed = more[-1].startswith("s")
                self.registers[one] = int.from_bytes(data[part], "little", signed=signed) % 2**64
            else:
                data[part] = self.value(one, f"u{8 * size}").to_bytes(size, "little")

    def copy(self, each: Instruction) -> None:
        """Run an instruction of asynchronous copies, from global to shared memory."""
        if each.operation[:2] == ("cp", "async") and each.operation[-2:] == ("shared", "global"):
            to, begin, size = (
                self.address(each.operands[0]),
                self.address(each.operands[1]),
                int(each.operands[2]),
            )
            data = bytes(self.at("global", begin, size, each.text))
            self.at("shared", to, size, each.text)
            self.under_way.append((to, data))
            array, offset = begin // APART - 1, begin % APART
            self.ran.copies.append(
                Copied(self.block, self.place, array, offset, to, size, self.barriers)
            )
        elif each.operation == ("cp", "async", "wait_all"):
            for to, data in self.under_way:
                self.shared[to : to + len(data)] = data
            self.under_way.clear()
        else:
            raise PtxError(f"this instruction is not known: {each.text}")


def _named(each: Instruction) -> tuple[str, ...]:
    """Return what an instruction is counted as: its name, and where a load or a store goes."""
    if each.operation[0] in ("ld", "st"):
        return each.operation[:2]
    if each.operation[0] == "cp":
        return each.operation if "wait_all" in each.operation else each.operation[:2]
    return each.operation[:1]
