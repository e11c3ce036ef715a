"""Exercises on numbers as a learner's copy has them: without the functions that compute results.

`judge.py` of such an exercise computes the right result and those of common mistakes, so it holds
the answer. A copy has `judge.json` in its place: calls that were drawn when the copy was made, and
for each a salted digest of its right result and of the result of each mistake.
"""

from __future__ import annotations

import ast
import hashlib
import json
import math
import secrets
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from tiled_matmul.grader.compare import slipped
from tiled_matmul.grader.messages import sentence
from tiled_matmul.grader.spec import Call, Case, Exercise, Limits, Rules, Speed

FORM = 1
DRAWS = 8  # calls that are drawn for each one of a grading
MOST_CALLS = 64
SHOWN = 2  # calls that show their results where all are drawn
DIGITS = 1e8  # numbers that differ relatively by less than its inverse have the same digest
NEAR = 1e-9


@dataclass(frozen=True)
class Sealed:
    """The digests of an exercise: by the text of a call's arguments, what its results are.

    `calls` holds for each call "right", "slips" and "why", the last for exercises with several
    right results; "shown" is the right result in words where a learner may see it.
    """

    calls: Mapping[str, Mapping[str, Any]]
    slips: tuple[tuple[str, str], ...]

    def verdict(self, call: Call, result: Any) -> tuple[bool, str, str, str]:
        """Return (is it right, the mistake's diagnosis, its message, the right result if shown)."""
        sealed = self.calls[repr(call.arguments)]
        salt = sealed["salt"]
        mine = set(digests(result, salt))
        shown = sealed["shown"] or ""
        if mine & set(sealed["right"]):
            return True, "", "", shown
        for number, part, found in sealed["slips"]:
            one = mine
            if part is not None:
                if not isinstance(result, list) or len(result) != len(sealed["parts"]):
                    continue
                one = set(digests(result[part], salt))
            if one & set(found):
                return False, *self.slips[number], shown
        for found, why in sealed["why"]:
            if mine & set(found):
                return False, "", why, shown
        return False, "", sealed["otherwise"] or self._which(sealed, result), shown

    def _which(self, sealed: Mapping[str, Any], result: Any) -> str:
        """Return in a sentence which of several values are wrong, "" if that says nothing."""
        if not isinstance(result, list) or not sealed["parts"]:
            return ""
        if len(result) != len(sealed["parts"]):
            return sentence("value: how many", count=len(sealed["parts"]))
        pairs = zip(result, sealed["parts"], strict=True)
        wrong = [
            str(number)
            for number, (part, right) in enumerate(pairs, 1)
            if not set(digests(part, sealed["salt"])) & set(right)
        ]
        return sentence("value: which", numbers=", ".join(wrong), count=len(result))


def digests(value: Any, salt: str) -> list[str]:
    """Return two digests of a result; those of equal results have one in common.

    Numbers that are not whole fall into intervals, of two divisions that are shifted against each
    other, so that rounding on the way does not matter.
    """
    texts = (_text(value, shift) for shift in (0.0, 0.5))
    made = (hashlib.sha256(f"{salt} {text}".encode()).hexdigest()[:32] for text in texts)
    return [f"{shift}{digest}" for shift, digest in enumerate(made)]


def _text(value: Any, shift: float) -> str:
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return json.dumps(value)
    if isinstance(value, int | float):
        return _number(value, shift)
    if isinstance(value, list | tuple):
        return f"[{','.join(_text(part, shift) for part in value)}]"
    pairs = sorted((json.dumps(str(key)), _text(part, shift)) for key, part in value.items())
    return f"{{{','.join(f'{key}:{part}' for key, part in pairs)}}}"


def _number(value: float, shift: float) -> str:
    if not math.isfinite(value):
        return repr(float(value))
    whole = round(value)
    if value == whole or abs(value - whole) <= NEAR * max(1.0, abs(value)):
        return str(whole)
    place = math.floor(math.log(abs(value)) * DIGITS + shift)
    return f"{'-' if value < 0 else ''}~{place}"


# Sealing, in a checkout with the answers.


def seal(exercise: Exercise) -> dict[str, Any]:
    """Return the exercise of the kind "values" as `judge.json` holds it, with new draws.

    Raises ValueError for one that accepts several results and does not list its `choices`.
    """
    if exercise.accepts is not None and not exercise.choices:
        raise ValueError(f"{exercise.name}: `accepts` needs `choices`, all possible results")
    calls = [
        _sealed_call(exercise, call, fixed, secrets.token_hex(8))
        for call, fixed in _calls(exercise)
    ]
    draws = sum(call.draw is not None for call in exercise.cases)
    if not any(call["always"] for call in calls):  # then two of the drawn ones are shown
        for call in calls[:SHOWN]:
            call |= {"always": True, "shown": call["hidden"]}
    calls = [{name: x for name, x in call.items() if name != "hidden"} for call in calls]
    if not draws:  # then the results of these calls are the whole answer
        calls = [call | {"shown": None} for call in calls]
    kept = {
        **{name: getattr(exercise, name) for name in ("name", "title", "points", "entry")},
        "parameters": exercise.parameters,
        "version": exercise.version,
        "limits": asdict(exercise.limits),
        "hints": dict(exercise.hints),
        "rules": {name: sorted(names) for name, names in vars(exercise.rules).items()},
        "speed": asdict(exercise.speed) if exercise.speed else None,
    }
    return {
        "form": FORM,
        "made": "by `exercises release` from judge.py, which computes what is only a digest here",
        # As Python writes them: JSON knows no tuples.
        "exercise": repr(kept),
        "given": repr(dict(exercise.given)),
        "draws": draws,
        "slips": [[slip.diagnosis, slip.message] for slip in exercise.slips],
        "calls": calls,
    }


def _calls(exercise: Exercise) -> Iterator[tuple[Call, bool]]:
    """Yield the calls that a copy has, each once, and whether it belongs to every grading."""
    cases = [case for case in exercise.cases if not case.hidden]
    seen = set()
    fixed = [(case, True) for case in cases if case.draw is None]
    if exercise.speed:
        fixed.append((Call((exercise.speed.case.m, exercise.speed.case.n)), False))
    drawing = [case for case in cases if case.draw is not None]
    drawn = [(case.drawn(secrets.randbits(32)), False) for case in drawing for _ in range(DRAWS)]
    for call, always in (*fixed, *drawn[: MOST_CALLS - len(fixed)]):
        if repr(call.arguments) not in seen:
            seen.add(repr(call.arguments))
            yield call, always


def _sealed_call(exercise: Exercise, call: Call, fixed: bool, salt: str) -> dict[str, Any]:
    wanted = _plain(exercise.answer(*call.arguments))
    several = exercise.choices and exercise.given[exercise.choices]
    right, why, otherwise = digests(wanted, salt), [], ""
    if several:
        reasons = [(one, exercise.accepts(call.arguments, _plain(one))) for one in several]
        right = [d for one, reason in reasons if not reason for d in digests(_plain(one), salt)]
        why = [[digests(_plain(one), salt), reason] for one, reason in reasons if reason]
        otherwise = exercise.accepts(call.arguments, None)
    slips = []
    for number, slip in enumerate(exercise.slips):
        made = _made(slip.answer, call.arguments)
        if made is None or (several and not exercise.accepts(call.arguments, made)):
            continue
        result = made
        if slip.part is not None:
            result = [*wanted]
            result[slip.part] = made
        if slipped(slip, call.arguments, result, wanted) and not set(digests(result, salt)) & set(
            right
        ):
            slips.append([number, slip.part, digests(made, salt)])
    return {
        "arguments": repr(call.arguments),
        "given": repr(dict(call.given)),
        "always": fixed,
        "salt": salt,
        "shown": repr(wanted) if fixed else None,
        "hidden": repr(wanted),
        "parts": [digests(part, salt) for part in wanted] if isinstance(wanted, list) else None,
        "right": right,
        "slips": slips,
        "why": why,
        "otherwise": otherwise,
    }


def _made(answer: Callable, arguments: tuple) -> Any:
    try:
        made = answer(*arguments)
    except ArithmeticError:
        return None
    return None if made is None else _plain(made)


def _plain(value: Any) -> Any:
    return json.loads(json.dumps(value))


# Opening, in a learner's copy.


def opened(text: str) -> Exercise:
    """Return the exercise that a `judge.json` describes. Raises ValueError."""
    try:
        kept = json.loads(text)
        if kept["form"] != FORM:
            raise ValueError(f"its form is {kept['form']!r}, wanted {FORM}")
        fields = ast.literal_eval(kept["exercise"])
        calls = {call["arguments"]: call for call in kept["calls"]}
        fields["limits"] = Limits(**fields["limits"])
        fields["rules"] = Rules(**{n: frozenset(names) for n, names in fields["rules"].items()})
        if fields["speed"]:
            case = Case(**fields["speed"].pop("case"))
            fields["speed"] = Speed(case=case, **fields["speed"])
        pool = [_call(call) for call in kept["calls"] if not call["always"]]
        cases = [_call(call) for call in kept["calls"] if call["always"]]
        slips = tuple((diagnosis, message) for diagnosis, message in kept["slips"])
        if kept["draws"]:
            cases += [Call(draw=_from(pool))] * kept["draws"]
        return Exercise(
            **fields,
            kind="values",
            given=ast.literal_eval(kept["given"]),
            cases=tuple(cases),
            sealed=Sealed(calls, slips),
        )
    except (KeyError, TypeError, SyntaxError, ValueError) as error:
        raise ValueError(f"no sealed exercise: {type(error).__name__}: {error}") from None


def _call(call: Mapping[str, Any]) -> Call:
    arguments, given = (ast.literal_eval(call[name]) for name in ("arguments", "given"))
    return Call(arguments, given=given)


def _from(pool: list[Call]) -> Callable[[np.random.Generator], tuple]:
    """Return what draws the arguments of one of these calls."""
    return lambda random: pool[int(random.integers(len(pool)))].arguments
