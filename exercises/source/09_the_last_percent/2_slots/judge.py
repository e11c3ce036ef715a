"""09.2, which cost is the largest: what is asked for, and how an answer is judged."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np

from tiled_matmul.grader.spec import VALUES, Call, Exercise, Slip

SLOTS, LANES = 4, 32
REGISTERS, SHARED_BYTES, MOST_THREADS = 65_536, 233_472, 2_048
GIVEN = {
    **{"SLOTS": SLOTS, "LANES": LANES},
    **{"REGISTERS": REGISTERS, "SHARED_BYTES": SHARED_BYTES, "MOST_THREADS": MOST_THREADS},
}
Counted = Mapping[str, int]


def blocks(counted: Counted) -> dict[str, int]:
    """Return how many blocks each resource of a multiprocessor has room for."""
    return {
        "registers": REGISTERS // (counted["registers"] * counted["threads"]),
        "shared bytes": SHARED_BYTES // counted["shared_bytes"],
        "threads": MOST_THREADS // counted["threads"],
    }


def largest_cost(
    counted: Counted, lanes: int = LANES, slots: int = SLOTS, full: float = 0.9, all_of: bool = True
) -> list:
    """Return the five values; other arguments than the defaults are mistakes."""
    cycles = counted["cycles"] * (counted["multiprocessors"] if all_of else 1)
    fmas = counted["thread_fmas"] / lanes
    useful = fmas / (slots * cycles)
    other = (counted["instructions"] - fmas) / (slots * cycles)
    empty = 1 - useful - other
    room = blocks(counted)
    limit = min(room, key=room.get)
    if other >= empty:
        limit = "instructions"
    elif counted["wavefronts"] >= full * cycles:
        limit = "shared memory"
    return [useful, other, empty, limit, 1 / (1 - max(other, empty))]


def _drawn(rng: np.random.Generator, limit: str, busy: bool | None = None) -> tuple[Counted]:
    """Draw counters of a kernel with this limit, none of which is near another one.

    `busy` says whether shared memory has no cycle left; None leaves that to chance.
    """
    while True:
        full = rng.random() < 0.5 if busy is None else busy
        useful = rng.uniform(0.2, 0.75)
        other = rng.uniform(0.05, 0.9 - useful)
        empty = 1 - useful - other
        counted = {
            "cycles": int(rng.integers(200_000, 9_000_000)),
            "multiprocessors": int(rng.choice([72, 108, 132, 144])),
        }
        cycles = counted["cycles"] * counted["multiprocessors"]
        counted |= {
            "instructions": int((useful + other) * SLOTS * cycles),
            "thread_fmas": int(useful * SLOTS * cycles) * LANES,
            "wavefronts": int(cycles * (rng.uniform(0.91, 1) if full else rng.uniform(0.2, 0.89))),
            "threads": int(rng.choice([64, 128, 192, 256, 384, 512])),
            "registers": int(rng.choice([16, 24, 28, 32, 40, 64, 96, 128, 168, 232, 255])),
            "shared_bytes": int(rng.integers(4, 110)) * 1024,
        }
        room = sorted(blocks(counted).values())
        if room[0] and room[0] < room[1] and abs(other - empty) > 0.03:
            if largest_cost(counted)[3] == limit:
                return (counted,)


LIMITS = ("instructions", "shared memory", "registers", "shared bytes", "threads")


def _useful(**mistake: int | bool) -> Callable[[Counted], float]:
    """Return the slip of the first value."""
    return lambda counted: largest_cost(counted, **mistake)[0]


def _limit(choose: Callable[[Counted, list], str]) -> Callable[[Counted], str]:
    """Return the slip of the limit: `choose` names it, from the counters and the right result."""
    return lambda counted: choose(counted, largest_cost(counted))


def _gain(choose: Callable[[list], float]) -> Callable[[Counted], float]:
    """Return the slip of the last value: `choose` computes it from the right result."""
    return lambda counted: choose(largest_cost(counted))


def _by_slots(counted: Counted, right: list) -> str:
    return largest_cost(counted, full=0.9 * SLOTS)[3]


def _shared_first(counted: Counted, right: list) -> str:
    cycles = counted["cycles"] * counted["multiprocessors"]
    return "shared memory" if counted["wavefronts"] >= 0.9 * cycles else right[3]


def _most_blocks(counted: Counted, right: list) -> str:
    room = blocks(counted)
    return max(room, key=room.get) if right[3] in room else right[3]


def _without_threads(counted: Counted, right: list) -> str:
    """Registers of a thread, not of a block."""
    room = blocks(counted) | {"registers": REGISTERS // counted["registers"]}
    return min(room, key=room.get) if right[3] in room else right[3]


def _only(one: str, other: str) -> str | None:
    """Return what two mistakes have in common."""
    return one if one == other else None


UNITS = (
    "The instructions are counted for a warp, the multiply-adds for a thread: divide the latter by "
    "the number of lanes."
)
EXERCISE = Exercise(
    name="09.2",
    title="which cost is the largest",
    points=3,
    entry="largest_cost",
    parameters=("counted",),
    kind="values",
    rules=VALUES,
    given=GIVEN,
    answer=largest_cost,
    cases=(
        *(Call(draw=partial(_drawn, limit=limit)) for limit in LIMITS * 4),
        Call(draw=partial(_drawn, limit="instructions", busy=True)),
    ),
    slips=(
        Slip(_useful(lanes=1), "units", UNITS, part=0),
        Slip(
            _useful(slots=1),
            "slots",
            "A multiprocessor has SLOTS slots in each cycle, and that result counts one.",
            part=0,
        ),
        Slip(
            _useful(all_of=False),
            "slots",
            "The counts are those of all multiprocessors together, the cycles those of each one.",
            part=0,
        ),
        Slip(
            lambda counted: sum(largest_cost(counted)[:2]),
            "others",
            "The multiply-adds are among the instructions: the second share is that of the others "
            "alone.",
            part=1,
        ),
        Slip(
            _limit(_by_slots),
            "limit",
            "A multiprocessor serves one wavefront in a cycle, not one in each slot.",
            part=3,
        ),
        Slip(
            _limit(_shared_first),
            "limit",
            "The other instructions come first: if they take at least as many slots as stay empty, "
            'the limit is "instructions".',
            part=3,
        ),
        Slip(
            _limit(lambda c, right: _only(_most_blocks(c, right), _without_threads(c, right))),
            "limit",
            "Either that is what has room for the most blocks, and the limit is what has room for "
            "the fewest; or it takes the registers of one thread for those of a block.",
            part=3,
        ),
        Slip(
            _limit(_most_blocks),
            "limit",
            "That is what has room for the most blocks. The limit is what has room for the fewest.",
            part=3,
        ),
        Slip(
            _limit(_without_threads),
            "limit",
            "That takes the registers of one thread for those of a block, which needs as many for "
            "each of its threads.",
            part=3,
        ),
        Slip(
            _gain(lambda right: 1 + max(right[1:3])),
            "gain",
            "Without a share s of its slots, the kernel takes 1 − s of the time. It is 1 / (1 − s) "
            "times as fast, and not 1 + s times.",
            part=4,
        ),
        Slip(
            _gain(lambda right: 1 / right[0]),
            "gain",
            "That is how many times as fast it would be without both costs. Only the larger one "
            "goes.",
            part=4,
        ),
        Slip(
            _gain(lambda right: 1 / (1 - min(right[1:3]))),
            "gain",
            "That is what the smaller cost is worth: the larger one goes.",
            part=4,
        ),
        Slip(
            _gain(lambda right: 1 / max(right[1:3])),
            "gain",
            "That is 1 divided by the cost. What is left of the time is 1 minus the cost.",
            part=4,
        ),
    ),
    hints={
        **{"units": 1, "slots": 1, "others": 2, "gain": 2, "limit": 3, "nothing": 1, "error": 1},
        "other": 1,
    },
)
