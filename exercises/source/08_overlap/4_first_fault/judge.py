"""08.4, the first fault of a schedule: what is asked for, and how an answer is judged."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from tiled_matmul.grader.spec import VALUES, Call, Exercise, Slip

Schedule = tuple[tuple, ...]


def first_fault(schedule: Schedule, flaw: str = "") -> list:
    """Return the place and the name of the first fault; `flaw` names a mistake made on the way."""
    holds: dict[int, int] = {}
    arrived: set[int] = set()
    seen: set[int] = set()
    read: set[int] = set()
    groups: list[list[int]] = [[]]
    for place, (what, *numbers) in enumerate(schedule):
        if what == "copy":
            tile, buffer = numbers
            if buffer in read and flaw != "reads forgotten":
                return [place, "still read"]
            holds[buffer] = tile
            if flaw != "old tile":
                arrived.discard(buffer)
                seen.discard(buffer)
            groups[-1].append(buffer)
        elif what == "commit":
            if flaw == "commit lands":
                arrived.update(groups[-1])
            if groups[-1] or flaw != "empty groups":
                groups.append([])
        elif what == "wait":
            if flaw == "open group" and groups[-1]:
                groups.append([])
            leave = len(groups) - 1 - numbers[0]
            if flaw == "oldest left":
                leave = numbers[0]
            if flaw == "waits for all":
                leave = len(groups) - 1
            for _ in range(min(leave, len(groups) - 1)):
                arrived.update(groups.pop(0))
        elif what == "barrier":
            if flaw == "barrier lands":
                arrived.update(*groups)
                groups = [[]]
            seen |= arrived
            if flaw != "reads for ever":
                read.clear()
        else:
            tile, buffer = numbers
            if holds.get(buffer) != tile and flaw != "tiles forgotten":
                return [place, "other tile"]
            if buffer not in arrived:
                return [place, "under way"]
            if buffer not in seen and flaw != "barriers forgotten":
                return [place, "no barrier"]
            if flaw == "last read":
                read.clear()
            read.add(buffer)
    return [len(schedule), "right"]


def pipeline(stages: int, steps: int, buffers: int, barriers: int = 1) -> list[tuple]:
    """Return a right schedule with `stages` - 1 tiles in flight, if there are so many buffers.

    With two barriers a step, the copies start before the wait.
    """
    ahead = stages - 1
    out: list[tuple] = []
    for tile in range(ahead):
        out += [("copy", tile, tile % buffers)] if tile < steps else []
        out += [("commit",)]
    for step in range(steps):
        tile = step + ahead
        copies = [("copy", tile, tile % buffers)] if tile < steps else []
        copies += [("commit",)]
        product = [("multiply", step, step % buffers)]
        if barriers == 2:
            out += [*copies, ("wait", ahead), ("barrier",), *product, ("barrier",)]
        else:
            out += [("wait", ahead - 1), ("barrier",), *copies, *product]
    return out


def _rounds(rng: np.random.Generator) -> tuple[Schedule]:
    """Draw rounds in which all buffers are filled, and then multiplied in any order.

    Of some rounds the barrier behind the products is missing.
    """
    buffers, out = int(rng.integers(2, 5)), []
    for start in range(0, buffers * int(rng.integers(2, 4)), buffers):
        for buffer in rng.permutation(buffers).tolist():
            out += [("copy", start + buffer, buffer), *[("commit",)] * int(rng.integers(0, 2))]
        out += [("commit",), ("wait", 0), ("barrier",)]
        out += [("multiply", start + b, b) for b in rng.permutation(buffers).tolist()]
        out += [("barrier",)] * int(rng.integers(0, 3) > 0)
    return (tuple(out),)


def _some(rng: np.random.Generator, schedule: list[tuple], what: str, late: int = 0) -> int:
    """Return the place of one of the entries of a kind, `late` of them from the end or later."""
    places = [place for place, entry in enumerate(schedule) if entry[0] == what]
    return int(rng.choice(places[-late:] if late else places))


def _broken(rng: np.random.Generator, how: str) -> tuple[Schedule]:
    """Draw a pipeline and break it; it is drawn again if its copies meet in a buffer."""
    while True:
        stages, steps = int(rng.integers(2, 6)), int(rng.integers(4, 10))
        barriers = int(rng.integers(1, 3))
        buffers = stages - (how == "too few buffers" and stages > 2)
        out = pipeline(stages, steps, buffers, barriers)
        if how in ("commit", "wait", "barrier"):
            del out[_some(rng, out, how)]
        elif how == "wait for fewer":
            place = _some(rng, out, "wait")
            out[place] = ("wait", out[place][1] + 1)
        elif how == "empty groups":  # are not closed
            out = [
                entry
                for place, entry in enumerate(out)
                if entry[0] != "commit" or (place and out[place - 1][0] == "copy")
            ]
        elif how == "swapped":
            place = _some(rng, out, "wait")
            out[place : place + 2] = out[place + 1], out[place]
        elif how == "other buffer":
            place = _some(rng, out, str(rng.choice(["copy", "multiply"])))
            what, tile, buffer = out[place]
            out[place] = (what, tile, (buffer + 1) % stages)
        elif how == "other tile":
            place = _some(rng, out, "multiply")
            what, tile, buffer = out[place]
            out[place] = (what, tile + 1, buffer)
        if not _meeting(out):
            return (tuple(out),)


def _meeting(schedule: list[tuple]) -> bool:
    """Does a copy go to a buffer whose copies are still under way, before the first fault?"""
    end, _ = first_fault(tuple(schedule))
    groups: list[list[int]] = [[]]
    for what, *numbers in schedule[: end + 1]:
        if what == "copy":
            if any(numbers[1] in group for group in groups):
                return True
            groups[-1].append(numbers[1])
        elif what == "commit":
            groups.append([])
        elif what == "wait":
            del groups[: max(0, len(groups) - 1 - numbers[0])]
    return False


HOW = ("right", "commit", "wait", "barrier", "wait for fewer", "empty groups", "swapped")
HOW += ("other buffer", "other tile", "too few buffers")


def _flawed(flaw: str) -> Callable[[Schedule], list]:
    return partial(first_fault, flaw=flaw)


def _shown(*entries: tuple) -> Call:
    return Call((entries,))


START = (("copy", 0, 0), ("commit",))
ARRIVED = (*START, ("wait", 0), ("barrier",))
EXERCISE = Exercise(
    name="08.4",
    title="the first fault of a schedule",
    points=3,
    entry="first_fault",
    parameters=("schedule",),
    kind="values",
    rules=VALUES,
    answer=first_fault,
    cases=(
        _shown(*START, ("multiply", 0, 0)),
        _shown(*START, ("wait", 0), ("multiply", 0, 0)),
        _shown(*ARRIVED, ("multiply", 0, 0)),
        _shown(*START, ("barrier",), ("multiply", 0, 0)),
        _shown(*START, ("wait", 1), ("barrier",), ("multiply", 0, 0)),
        _shown(("copy", 0, 0), ("wait", 0), ("barrier",), ("multiply", 0, 0)),
        _shown(("copy", 0, 0), ("wait", 0), ("commit",), ("barrier",), ("multiply", 0, 0)),
        _shown(*START, ("commit",), ("wait", 1), ("barrier",), ("multiply", 0, 0)),
        _shown(*START, ("barrier",), ("wait", 0), ("multiply", 0, 0)),
        _shown(*ARRIVED, ("multiply", 0, 0), ("copy", 1, 0)),
        _shown(*ARRIVED, ("multiply", 0, 0), ("copy", 1, 1), ("barrier",), ("copy", 2, 0)),
        _shown(*ARRIVED, ("multiply", 0, 1)),
        _shown(*ARRIVED, ("multiply", 1, 0)),
        _shown(*ARRIVED, ("copy", 1, 0), ("multiply", 0, 0)),
        _shown(*ARRIVED, ("copy", 1, 0), ("multiply", 1, 0)),
        _shown(
            *(*START, ("copy", 1, 1), ("commit",), ("wait", 1), ("barrier",)),
            *(("multiply", 0, 0), ("multiply", 1, 1)),
        ),
        _shown(
            *(*START, ("copy", 1, 1), ("commit",), ("wait", 0), ("barrier",)),
            *(("multiply", 0, 0), ("multiply", 1, 1), ("copy", 2, 0)),
        ),
        *[Call(draw=_rounds)] * 8,
        *(Call(draw=partial(_broken, how=how)) for how in HOW * 6),
    ),
    slips=(
        Slip(
            lambda schedule: [first_fault(schedule)[0] + 1, first_fault(schedule)[1]],
            "place",
            "The first entry is at place 0.",
        ),
        Slip(
            _flawed("open group"),
            "groups",
            "`wait` waits for closed groups only. Copies that are not committed yet belong to no "
            "closed group, so nothing has waited for them.",
        ),
        Slip(
            _flawed("empty groups"),
            "groups",
            "A `commit` closes a group even if no copy has started since the last one: an empty "
            "group counts among the newest n.",
        ),
        Slip(
            _flawed("waits for all"),
            "groups",
            "`wait` leaves the newest n groups under way; that result lets every `wait` wait for "
            "all of them.",
        ),
        Slip(
            _flawed("oldest left"),
            "groups",
            "After `wait` with n, all groups but the newest n have arrived. That result has the "
            "oldest n arrived.",
        ),
        Slip(
            _flawed("barrier lands"),
            "barrier",
            "A barrier waits for threads, not for copies: only `wait` makes them arrive.",
        ),
        Slip(
            _flawed("commit lands"),
            "groups",
            "A `commit` only closes a group. Its copies are under way until a `wait`.",
        ),
        Slip(
            _flawed("old tile"),
            "tile",
            "A copy puts a new tile into the buffer. That the old one had arrived there says "
            "nothing about the new one.",
        ),
        Slip(
            _flawed("barriers forgotten"),
            "barrier",
            "After `wait`, only a thread's own copies have arrived. Those of other threads can be "
            "relied on after a barrier that comes behind the wait.",
        ),
        Slip(
            _flawed("reads forgotten"),
            "still read",
            "A buffer that was multiplied since the last barrier may still be read by a slow warp: "
            "a copy into it is a fault.",
        ),
        Slip(
            _flawed("last read"),
            "still read",
            "Several buffers may have been multiplied since the last barrier. All of them may "
            "still be read, and not only the last.",
        ),
        Slip(
            _flawed("reads for ever"),
            "still read",
            "At a barrier all threads have finished their products, so a buffer is no longer read "
            "behind it.",
        ),
        Slip(
            _flawed("tiles forgotten"),
            "tile",
            "A `multiply` names the tile that it needs. Which tile was copied to its buffer last?",
        ),
    ),
    hints={
        **{"groups": 2, "barrier": 3, "still read": 3, "tile": 1, "place": 1, "nothing": 1},
        **{"error": 1, "other": 1},
    },
)
