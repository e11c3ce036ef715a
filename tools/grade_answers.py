"""Grade answers kept as data with several seeds; say which fail and whose status changes.

The answers are those of tests/grader/answers, or of files given here, in the same form; with
`--mistakes`, those of the exercises' mistakes.txt as well. `--kinds values,loops` and
`--exercises 05,10.1` choose some of them. A status that changes with the seed is a fault of the
cases: whoever is graded has no seed to choose.
"""

import argparse
import collections
import sys
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "grader"))

from test_grader_answers import FOLDER, read

from tiled_matmul.grader import mistakes, pool
from tiled_matmul.grader.folders import exercise, folders, without_hidden
from tiled_matmul.grader.judge import judge
from tiled_matmul.grader.spec import Call, Limits

FIRST = 7
PART = 18  # gradings that a process does before it takes other answers
STEADY = {  # statuses and diagnoses of what no number in A or B can change
    *("RACE", "BARRIER", "COMPILE", "FORBIDDEN", "NOT_YET", "TIMEOUT", "CRASH"),
    *("out of bounds", "out of bounds of c", "along K", "unmasked tail", "not read", "not stored"),
    *("error", "types", "unbound", "counts", "once", "needless", "sectors", "memory", "depth"),
    *("stored twice", "uninitialised read", "never copied", "bare", "plain", "barriers"),
    *("few conflicts", "conflicts", "no tile", "steps", "forbidden", "library", "sum in C"),
}


@dataclass(frozen=True)
class Told:
    """What an answer was told: a fault if it is another status, unstable if several."""

    name: str
    meant: tuple[str, str]
    told: collections.Counter
    message: str

    @property
    def fault(self) -> bool:
        statuses = {status for status, _ in self.told}
        return statuses != {self.meant[0]} or ((self.meant[1] or "") not in self.diagnoses)

    @property
    def diagnoses(self) -> set[str]:
        return {diagnosis for _, diagnosis in self.told} | ({""} if not self.meant[1] else set())

    @property
    def unstable(self) -> bool:
        return len({status for status, _ in self.told}) > 1


def steady(one, verdict):
    """Is a verdict the same with every seed, as no number in A or B matters, or no drawn call?"""
    fixed = {str(case) for case in one.cases if isinstance(case, Call) and case.draw is None}
    return (
        bool({verdict.status, verdict.diagnosis} & STEADY) or verdict.evidence.get("case") in fixed
    )


def chosen(arguments):
    """Return the answers as (exercise, name, status, diagnosis, source with its first line)."""
    wanted = tuple(arguments.exercises.split(",")) if arguments.exercises else ("",)
    files = arguments.files or sorted(FOLDER.glob("*.txt"))
    found = []
    for path in files:
        for answer in read(Path(path)):
            source = f"{exercise(answer.exercise).marker}\n{answer.source}"
            found.append((answer.exercise, answer.name, answer.status, answer.diagnosis, source))
    if arguments.mistakes:
        for folder in folders():
            for one in mistakes.answers(folder):
                found.append((one.exercise, f"mistake {one.name}", one.status, "", one.source))
    kinds = arguments.kinds.split(",")
    both = arguments.right == arguments.wrong
    return [
        answer
        for answer in found
        if answer[0].startswith(wanted)
        and exercise(answer[0]).kind in kinds
        and (both or arguments.right == (answer[2] == "PASS"))
        and (not arguments.names or answer[1] in arguments.names.split(","))
    ]


def graded(answers, seeds, few, seen):
    """Yield a Told for each answer; `few` seeds where no number matters.

    With `seen` only those cases that learners see.
    """
    with ExitStack() as stack:
        workers = {}
        for name, label, status, diagnosis, source in answers:
            one = without_hidden(exercise(name)) if seen else exercise(name)
            if one.kind not in workers or workers[one.kind].process.poll() is not None:
                started = pool.Worker(one.kind, Limits(), confined=False)
                workers[one.kind] = stack.enter_context(started)
            how, times = {"worker": workers[one.kind]}, seeds
            if status == "TIMEOUT":
                one = replace(one, limits=replace(one.limits, seconds=min(2, one.limits.seconds)))
                how, times = {}, 1
            told, message = collections.Counter(), ""
            for seed in range(FIRST, FIRST + seeds):
                if seed >= FIRST + times:
                    break
                if how and how["worker"].process.poll() is not None:
                    started = pool.Worker(one.kind, Limits(), confined=False)
                    workers[one.kind] = how["worker"] = stack.enter_context(started)
                verdict = judge(one, source, seed=seed, **how)
                if how and verdict.status in ("TIMEOUT", "CRASH"):  # it may still be at work
                    how["worker"].close()
                full = verdict.points == verdict.max_points
                same = full == (verdict.status == "PASS")
                told[(verdict.status if same else "HALF", verdict.diagnosis)] += 1
                if steady(one, verdict):
                    times = min(times, few)
                if verdict.status != status or not message:
                    message = verdict.message
            yield Told(f"{name} {label}", (status, diagnosis), told, message)


def in_processes(answers, jobs, *how):
    """Yield as `graded` does, with the answers dealt out to several processes."""
    if jobs == 1:
        yield from graded(answers, *how)
        return
    # Neighbours are of one kind, which a process has its nursery for.
    part = max(1, PART // how[0])
    parts = [answers[begin : begin + part] for begin in range(0, len(answers), part)]
    with ProcessPoolExecutor(jobs) as executor:
        for done in as_completed(executor.submit(listed, part, *how) for part in parts):
            yield from done.result()


def listed(answers, *how):
    return list(graded(answers, *how))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*", help="files of answers; else those of the tests")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--few", type=int, help="seeds where no number matters")
    parser.add_argument("--jobs", type=int, default=1, help="processes that grade")
    parser.add_argument("--kinds", default="values,loops,cuda,triton")
    parser.add_argument("--exercises", default="", help="beginnings of names, such as 05,10.1")
    parser.add_argument("--names", default="", help="names of answers")
    parser.add_argument("--mistakes", action="store_true", help="mistakes.txt as well")
    parser.add_argument("--wrong", action="store_true", help="wrong answers alone")
    parser.add_argument("--right", action="store_true", help="right answers alone")
    parser.add_argument("--seen", action="store_true", help="without the hidden cases")
    parser.add_argument("--all", action="store_true", help="say what every answer is told")
    arguments = parser.parse_args()
    answers, faults, unstable, count = chosen(arguments), 0, 0, collections.Counter()
    began = time.monotonic()
    how = arguments.seeds, arguments.few or arguments.seeds, arguments.seen
    for told in in_processes(answers, arguments.jobs, *how):
        count["right" if told.meant[0] == "PASS" else "wrong"] += 1
        faults += told.fault
        unstable += told.unstable
        if told.fault or told.unstable or arguments.all:
            mark = "UNSTABLE" if told.unstable else "FAULT" if told.fault else "as meant"
            words = ", ".join(f"{s} {d} ×{n}" for (s, d), n in told.told.most_common())
            print(f"{mark}: {told.name}: {words}; meant {' '.join(told.meant)}", flush=True)
            print(f"    {told.message}", flush=True)
    print(
        f"{count['right']} right, {count['wrong']} wrong, {arguments.seeds} seeds:"
        f" {faults} faults, {unstable} unstable; {time.monotonic() - began:.0f} s"
    )
    return 1 if faults or unstable else 0


if __name__ == "__main__":
    sys.exit(main())
