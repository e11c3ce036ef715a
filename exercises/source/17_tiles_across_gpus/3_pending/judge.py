"""17.3, the first touch that is too early: what is asked for, and how an answer is judged."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tiled_matmul.grader.spec import VALUES, Call, Exercise, Slip

ALL = frozenset(("read", "write", "send", "receive"))
WRITES = frozenset(("write", "receive"))


def _first(
    while_received: frozenset = ALL, while_sent: frozenset = WRITES, all_wait: bool = False,
    cause: bool = False,
) -> Callable:  # fmt: skip
    """Return an answer, right if nothing is changed."""

    def answer(calls: list) -> int:
        moving: dict[str, dict[str, int]] = {"send": {}, "receive": {}}
        for index, (what, buffer) in enumerate(calls):
            if what == "wait":
                for each in moving.values():
                    each.clear() if all_wait else each.pop(buffer, None)
                continue
            for kind, early in (("receive", while_received), ("send", while_sent)):
                if buffer in moving[kind] and what in early:
                    return moving[kind][buffer] if cause else index
            if what in moving:
                moving[what].setdefault(buffer, index)
        return -1

    return answer


too_early = _first()


def _case(random: np.random.Generator) -> tuple:
    """Return calls of two buffers; waits are drawn often, so that some break no rule."""
    kinds, share = ("send", "receive", "wait", "read", "write"), (0.2, 0.15, 0.35, 0.2, 0.1)
    count = int(random.integers(4, 9))
    return (
        [
            [str(random.choice(kinds, p=share)), str(random.choice(("a", "b")))]
            for _ in range(count)
        ],
    )


def _calls(*words: str) -> Call:
    """Return the case of calls that are written as "receive a"."""
    return Call(([word.split() for word in words],))


EXERCISE = Exercise(
    name="17.3",
    title="the first touch that is too early",
    points=4,
    entry="too_early",
    parameters=("calls",),
    kind="values",
    rules=VALUES,
    answer=too_early,
    cases=(
        _calls("send a", "receive b", "read a", "wait a", "wait b", "read b"),
        _calls("send a", "receive b", "read a", "read b", "wait b"),
        _calls("send a", "write a"),
        _calls("receive a", "write a"),
        _calls("send a", "receive a", "wait a"),
        _calls("receive a", "wait b", "read a"),
        _calls("send a", "send a", "wait a", "write a"),
        *(Call(draw=_case) for _ in range(20)),
    ),
    slips=(
        Slip(
            _first(while_sent=ALL),
            "reads of sent",
            "A buffer that is being sent may still be read, and sent once more.",
        ),
        Slip(
            _first(while_sent=frozenset()),
            "sends forgotten",
            "A buffer that is being sent must not be written: the transfer still reads it.",
        ),
        Slip(
            _first(while_sent=frozenset(("write",))),
            "receives forgotten",
            "A receive writes its buffer, so it must not start while that is being sent.",
        ),
        Slip(
            _first(all_wait=True),
            "waits for all",
            "A wait waits for its own buffer, and for no other.",
        ),
        Slip(
            _first(while_received=frozenset(("read",))),
            "only reads",
            "While a buffer is being received, every call but a wait is too early.",
        ),
        Slip(
            _first(while_received=frozenset(("read", "write"))),
            "transfers forgotten",
            "While a buffer is being received, every call but a wait is too early: sends, too.",
        ),
        Slip(
            _first(cause=True),
            "the transfer",
            "That is the call that started the transfer. Wanted is the touch that comes too early.",
        ),
    ),
    hints={
        **{"reads of sent": 3, "sends forgotten": 3, "receives forgotten": 2, "waits for all": 1},
        **{"only reads": 3, "transfers forgotten": 3, "the transfer": 1, "nothing": 1, "value": 3},
        **{"forbidden": 2, "error": 1, "other": 1},
    },
)
