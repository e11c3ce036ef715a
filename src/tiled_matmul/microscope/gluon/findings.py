"""The faults of a Gluon kernel in sentences: what is not ordered, and a hint."""

from __future__ import annotations

from dataclasses import dataclass, field

REMEDIES = {
    "unfilled": "Wait for the barrier of the copy, in the phase that this copy completes.",
    "too early": "Let the copy wait until all who read the buffer have arrived at its barrier.",
    "unfinished product": (
        "A product reads its tiles until `warpgroup_mma_wait`, or the barrier of `tcgen05_mma`, "
        "says that it is done."
    ),
    "other block": "Let it wait for a barrier at which all blocks of the cluster arrive.",
    "block gone": "Let the blocks of a cluster wait for each other at the end, by `cluster`.",
    "unfinished sums": (
        "Call `warpgroup_mma_wait(0, deps=[…])` first, or wait for the barrier of `tcgen05_commit`."
    ),
    "unfinished store": "Call `tma.store_wait(0)` first: the store reads the buffer until then.",
    "no fence": "Call `fence_async_shared()` between what threads write and what a copy reads.",
    "not written": "Wait for what fills it.",
    "too many arrivals": "Count who arrives: `mbarrier.init` says how many.",
    "deadlock": "Who should complete that phase, and is it the phase that was meant?",
    "race": "Put a barrier between the two.",
}


@dataclass(frozen=True)
class GluonFinding:
    """One fault of a line of a kernel, first seen in `program`, `block` of its cluster, `role`.

    `kind` is one of REMEDIES. `text` is that line. `other` is the line that it is not ordered
    after, 0 if there is none; `buffer` is the buffer's name and index, and `count` how often this
    was seen.
    """

    kind: str
    line: int
    function: str
    text: str
    other: int
    program: int
    block: int
    role: str
    buffer: str
    count: int
    message: str = field(repr=False)

    @property
    def remedy(self) -> str:
        """What helps."""
        return REMEDIES[self.kind]

    def __str__(self) -> str:
        again = f" ({self.count:,} times)" if self.count > 1 else ""
        return f"{self.message}{again} {self.remedy}"
