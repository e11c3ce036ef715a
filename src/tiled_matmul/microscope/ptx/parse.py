"""A PTX file with one kernel, taken apart: parameters, shared memory, instructions, labels.

Source: NVIDIA, PTX ISA, "Syntax" and "State spaces".
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

ENTRY = re.compile(r"\.entry\s+([\w$]+)\s*\((.*?)\)[^{]*\{(.*)\}", re.S)
PARAMETER = re.compile(
    r"\.param\s+(?:\.align\s+\d+\s+)?\.(\w+)\s+(?:\.ptr\S*\s+)?([\w$]+)(?:\[(\d+)\])?"
)
SHARED = re.compile(r"\.shared\s+\.align\s+(\d+)\s+\.b8\s+([\w$]+)\[(\d+)\]")
LABEL = re.compile(r"^([$\w]+):$")
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)
OPERAND = re.compile(r"\{[^}]*\}|\[[^\]]*\]|[^,\s]+")


class PtxError(ValueError):
    """PTX that cannot be read or run here; the message quotes the line."""


@dataclass(frozen=True)
class Instruction:
    """One instruction, such as `@!%p1 add.s32 %r1, %r2, 4`.

    `guard` is the predicate's register, or ""; with `unless` it runs where that is false.
    `operation` is what dots separate, `operands` are as written.
    """

    text: str
    operation: tuple[str, ...]
    operands: tuple[str, ...]
    guard: str = ""
    unless: bool = False


@dataclass(frozen=True)
class Kernel:
    """A kernel: bytes by parameter, in order; where each shared array begins; its instructions.

    `labels` say which instruction each stands before. `shared_bytes` is the size of all arrays.
    """

    name: str
    parameters: Mapping[str, int]
    shared: Mapping[str, int]
    shared_bytes: int
    code: Sequence[Instruction]
    labels: Mapping[str, int]

    def count(self, *begin: str) -> int:
        """Return how many instructions in the text begin so, such as "cp", "async", "ca"."""
        return sum(each.operation[: len(begin)] == begin for each in self.code)


def parse(text: str) -> Kernel:
    """Return the kernel in a PTX file. Raises PtxError unless there is exactly one."""
    found = ENTRY.findall(COMMENT.sub("", text))
    if len(found) != 1:
        raise PtxError(f"a PTX file must have one kernel, this one has {len(found)}")
    ((name, head, body),) = found
    parameters = {
        each: _bytes(kind) * int(many or 1) for kind, each, many in PARAMETER.findall(head)
    }
    shared, size = {}, 0
    for align, array, length in SHARED.findall(body):
        size = -(-size // int(align)) * int(align)
        shared[array] = size
        size += int(length)
    code: list[Instruction] = []
    labels: dict[str, int] = {}
    for line in re.split(r"[;\n]", body):
        line = " ".join(line.split())
        if not line or line.startswith("."):
            continue
        if label := LABEL.match(line):
            labels[label[1]] = len(code)
        else:
            code.append(_instruction(line))
    return Kernel(name, parameters, shared, size, code, labels)


def _bytes(kind: str) -> int:
    """Return the bytes of a type, such as "u64". Raises PtxError for one without a size."""
    if not (digits := re.search(r"\d+$", kind)):
        raise PtxError(f"a parameter has the type .{kind}, whose size is unknown")
    return int(digits[0]) // 8


def _instruction(line: str) -> Instruction:
    guard, unless, rest = "", False, line
    if line.startswith("@"):
        guard, _, rest = line[1:].partition(" ")
        unless, guard = guard.startswith("!"), guard.lstrip("!")
    operation, _, operands = rest.partition(" ")
    return Instruction(
        line,
        tuple(filter(None, re.split(r"\.|::", operation))),
        tuple(OPERAND.findall(operands)),
        guard,
        unless,
    )
