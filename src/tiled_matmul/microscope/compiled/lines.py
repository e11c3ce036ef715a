"""Count the instructions of a Triton kernel's loop for each line of its source.

In Triton's PTX, `.loc` marks name the source line of each instruction. Only the innermost loop with
the most products, the loop over K, is counted; the code before and after it runs once.
"""

from __future__ import annotations

import inspect
import re
from collections import Counter
from pathlib import Path
from typing import Any

from tiled_matmul.microscope.written import function_of

PRODUCTS = r"(?:mma\.sync|wgmma\.mma_async|tcgen05\.mma|fma\.rn)\b"
INSTRUCTIONS = {
    "guards": r"setp\.",
    "global loads": r"ld\.global",
    "stores into shared memory": r"st\.shared",
    "copies into shared memory": r"cp\.async\.(?:ca|cg|bulk)",
    "waits": r"cp\.async\.wait|wgmma\.wait_group|mbarrier\.try_wait",
    "waits for copies": r"cp\.async\.wait",
    "waits for products": r"wgmma\.wait_group",
    "barriers": r"bar(?:rier)?\.",
    "loads from shared memory": r"ld\.shared|ldmatrix",
    "products": PRODUCTS,
}

FILE = re.compile(r'\.file\s+(\d+)\s+"([^"]*)"(?:\s+"([^"]*)")?')
LOC = re.compile(r"\.loc\s+(\d+)\s+(\d+)\s+\d+")
LABEL = re.compile(r"(\$\w+):")
BRANCH = re.compile(r"bra(?:\.uni)?\s+(\$\w+);")
OPCODE = re.compile(r"(?:@!?%p\d+\s+)?([a-z][\w.:]+)")


def by_line(kernel: Any, ptx: str) -> dict[str, Counter]:
    """Return {line of the kernel: Counter of INSTRUCTIONS} for the loop over K, in order.

    `ptx` is the PTX of `kernel`. Lines without an instruction and instructions without a line are
    left out. Raises ValueError if the PTX has no loop, or no `.loc` marks for the kernel's file.
    """
    function = function_of(kernel)
    source, first = inspect.getsourcelines(function)
    home = Path(inspect.getsourcefile(function) or "").name
    places = _places(ptx, home)
    counts: dict[int, Counter] = {}
    for place, text in _loop(list(zip(places, ptx.splitlines(), strict=True))):
        for kind, pattern in INSTRUCTIONS.items():
            if place is not None and re.match(pattern, text):
                counts.setdefault(place - first, Counter())[kind] += 1
    lines = {}
    for number in sorted(counts):
        if not 0 <= number < len(source):
            raise ValueError(f"line {first + number} of {home} is no line of {function.__name__}")
        lines[source[number].strip()] = counts[number]
    return lines


def _places(ptx: str, home: str) -> list[int | None]:
    """Return the line of the file `home` to which each line of the PTX belongs."""
    lines = ptx.splitlines()
    names = {match[1]: Path(match[3] or match[2]).name for match in FILE.finditer(ptx)}
    if home not in names.values():
        raise ValueError(f"this PTX does not say which lines of {home or 'its source'} it is of")
    places, now = [], None
    for line in lines:
        match = LOC.search(line)
        if match and names.get(match[1]) == home and match[2] != "0":
            now = int(match[2])
        places.append(now)
    return places


def _loop(lines: list[tuple[int | None, str]]) -> list[tuple[int | None, str]]:
    """Return the (place, instruction) pairs of the innermost loop with the most products."""
    labels, loops = {}, []
    for number, (_, text) in enumerate(lines):
        label, branch = LABEL.match(text), BRANCH.search(text)
        if label:
            labels[label[1]] = number
        elif branch and branch[1] in labels:
            loops.append((labels[branch[1]], number))
    if not loops:
        raise ValueError("this PTX has no loop")

    def opcodes(loop: tuple[int, int]) -> list[tuple[int | None, str]]:
        inside = ((place, OPCODE.match(t.strip())) for place, t in lines[loop[0] : loop[1] + 1])
        return [(place, match[1]) for place, match in inside if match]

    def products(loop: tuple[int, int]) -> int:
        return sum(bool(re.match(PRODUCTS, text)) for _, text in opcodes(loop))

    # Loops without products are waits inside the loop over K.
    working = [loop for loop in loops if products(loop)] or loops
    inner = [
        o for o in working if not any(i != o and o[0] <= i[0] <= i[1] <= o[1] for i in working)
    ]
    return opcodes(max(inner, key=products))
