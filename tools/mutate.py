"""Measure how strong the tests are: plant the faults of tests/mutants.txt, count those noticed.

In that list, "@ SOURCE: TESTS" names a source file and the arguments with which pytest judges it,
the likeliest killers first. The mutants of that file follow: lines with "- " in front are text that
stands in the source once, lines with "+ " replace it, and an empty line ends the mutant. "least" is
the share of all mutants that has to be killed, "#" begins a comment. The repository stays as it is:
each job works on a copy. The exit status is 1 if too few are killed, 2 if the list is wrong or a
test fails without any mutant.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import queue
import shlex
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
COPIED = ("src", "tests", "tools", "pyproject.toml")
FORK = multiprocessing.get_context("forkserver")
FORK.set_forkserver_preload(["hypothesis", "numpy", "pytest", "torch"])
FORK_LOST, ATTEMPTS = 255, 3  # multiprocessing's exit code of a child whose fork server has died
PATIENCE, MARGIN_S = 3, 60  # a run may take so many times as long as without a mutant, and more


@dataclass(frozen=True)
class Mutant:
    line: int  # of the list
    path: str
    tests: tuple[str, ...]
    old: str
    new: str

    def __str__(self) -> str:
        old, new = (" ".join(text.split()) or "(nothing)" for text in (self.old, self.new))
        return f"mutants.txt:{self.line}: {self.path}: {old}  →  {new}"

    def apply(self, source: str) -> str:
        """Return the changed source. Raises ValueError unless the old text is there once."""
        if source.count(self.old) != 1 or self.old == self.new:
            raise ValueError(f"the old text is there {source.count(self.old)} times: {self}")
        return source.replace(self.old, self.new)


def read(text: str) -> tuple[list[Mutant], float]:
    """Return the mutants of a list and the least share. Raises ValueError for an unknown line."""
    mutants, least, path, tests = [], 0.0, "", ()
    sides: dict[str, list[str]] = {"-": [], "+": []}
    for number, line in enumerate([*text.splitlines(), ""], start=1):
        if line[:2].strip() in sides:
            sides[line[0]].append(line[2:])
        elif not line.strip():
            if sides["-"]:
                old, new = map("\n".join, sides.values())
                first = number - sum(map(len, sides.values()))
                mutants.append(Mutant(first, path, tests, old, new))
            sides = {"-": [], "+": []}
        elif line.startswith("@ "):
            path, _, rest = line[2:].partition(": ")
            tests = tuple(shlex.split(rest))
        elif line.startswith("least "):
            least = float(line.split()[1])
        elif not line.startswith("#"):
            raise ValueError(f"mutants.txt:{number}: not understood: {line}")
    return mutants, least


def copy(root: Path, folder: Path) -> Path:
    """Make a copy of a repository whose sources can be changed; all else are links. Return it."""
    folder.mkdir()
    for path in root.iterdir():
        if path.name not in COPIED:
            (folder / path.name).symlink_to(path)
        elif path.is_dir():
            shutil.copytree(path, folder / path.name)
        else:
            shutil.copy2(path, folder)
    return folder


def call_pytest(folder: Path, arguments: list[str]) -> None:
    """Be pytest in a copy, in a process that has been forked with the large packages in it."""
    os.setsid()  # so that what the tests start can be ended with them
    os.chdir(folder)
    os.environ.setdefault("TILED_MATMUL_BACKEND", "simulator")
    os.environ["PYTHONPATH"] = str(folder / "src")
    sys.path.insert(0, str(folder / "src"))
    sys.dont_write_bytecode = False  # the next run in this copy compiles what has changed, no more
    with open("output.txt", "wb") as output:
        for stream in (1, 2):
            os.dup2(output.fileno(), stream)
    import pytest

    sys.exit(int(pytest.main(arguments)))


def verdict(folder: Path, tests: tuple[str, ...], limit_s: float | None = None) -> str:
    """Run tests in a copy: "killed" if one fails, "timed out" if they do not end, or "survived"."""
    arguments = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:nbval", "-p", "no:xdist", *tests]
    for _ in range(ATTEMPTS):
        process = FORK.Process(target=call_pytest, args=(folder, arguments))
        process.start()
        process.join(limit_s)
        if process.exitcode != FORK_LOST:
            break
    else:
        return "killed"  # what the tests run ended even the process that had forked them
    if process.exitcode is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.join()
        return "timed out"
    if process.exitcode > 2:  # pytest was called wrongly, or there is no such test
        output = (folder / "output.txt").read_text(errors="replace")
        raise ValueError(f"pytest {shlex.join(tests)}\n{output}")
    return "killed" if process.exitcode else "survived"


def write(path: Path, source: str) -> None:
    """Write a source, younger by a second: that is how Python knows that a .pyc is out of date."""
    time_s = int(path.stat().st_mtime) + 1
    path.write_text(source, encoding="utf-8")
    os.utime(path, (time_s, time_s))


def run(mutants: list[Mutant], root: Path, jobs: int) -> dict[Mutant, str]:
    """Return each mutant's verdict. Raises ValueError if a test fails without any mutant."""
    sources = {
        path: (root / path).read_text(encoding="utf-8") for path in {m.path for m in mutants}
    }
    changed = {mutant: mutant.apply(sources[mutant.path]) for mutant in mutants}
    for mutant, source in changed.items():
        try:
            compile(source, mutant.path, "exec")
        except SyntaxError as error:
            raise ValueError(f"the source is no longer Python ({error}): {mutant}") from error
    with tempfile.TemporaryDirectory() as temporary, ThreadPoolExecutor(jobs) as pool:
        folders: queue.Queue[Path] = queue.Queue()
        for number in range(jobs):
            folders.put(copy(root, Path(temporary, str(number))))

        @contextmanager
        def borrowed() -> Iterator[Path]:
            folder = folders.get()
            try:
                yield folder
            finally:
                folders.put(folder)

        def clean_s(tests: tuple[str, ...]) -> float:
            with borrowed() as folder:
                start = time.monotonic()
                if verdict(folder, tests) != "survived":
                    output = (folder / "output.txt").read_text(errors="replace")
                    raise ValueError(
                        f"{output}\nwithout any mutant a test fails: pytest {shlex.join(tests)}"
                    )
                return time.monotonic() - start

        def one(mutant: Mutant) -> str:
            with borrowed() as folder:
                write(folder / mutant.path, changed[mutant])
                found = verdict(folder, mutant.tests, MARGIN_S + PATIENCE * seconds[mutant.tests])
                write(folder / mutant.path, sources[mutant.path])
            if found != "killed":
                print(f"{found}: {mutant}", flush=True)
            return found

        sets = list({mutant.tests: None for mutant in mutants})
        seconds = dict(zip(sets, pool.map(clean_s, sets), strict=True))
        return dict(zip(mutants, pool.map(one, mutants), strict=True))


def main(arguments: list[str] | None = None, root: Path = ROOT) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", nargs="+", metavar="TEXT", help="those with a text in their line")
    parser.add_argument("--list", action="store_true", help="print the mutants and run nothing")
    parser.add_argument("--jobs", type=int, default=2, help="how many run at once (default: 2)")
    options = parser.parse_args(arguments)
    try:
        mutants, least = read((root / "tests" / "mutants.txt").read_text(encoding="utf-8"))
        texts = options.only or [""]
        mutants = [mutant for mutant in mutants if any(text in str(mutant) for text in texts)]
        if not mutants:
            raise ValueError(f"no mutant's line has one of {texts}")
        if options.list:
            print(*mutants, sep="\n")
            return 0
        verdicts = run(mutants, root, options.jobs)
    except (OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 2
    all_of = Counter(mutant.path for mutant in mutants)
    killed = Counter(m.path for m, found in verdicts.items() if found != "survived")
    for path, count in all_of.items():
        print(f"{killed[path]:4} of {count:3} killed: {path}")
    share = killed.total() / len(mutants)
    print(f"{killed.total():4} of {len(mutants):3} killed: {share:.1%}, least {least:.1%}")
    return 1 if share < least and not options.only else 0


if __name__ == "__main__":
    sys.exit(main())
