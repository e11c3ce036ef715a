"""Print the lines of Python by room, and how many more they are than at a commit.

    python tools/size.py [COMMIT]

A line counts if it is not empty; generated notebooks do not count.
"""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# Where a room is a folder of its own below these, and where all is one.
ROOMS, WHOLE = ("src/tiled_matmul", "tests"), ("exercises/source", "tools")


def room_of(path: str) -> str | None:
    """Return the room that a file counts for, or None."""
    if not path.endswith((".py", ".txt", ".md")) or (
        path.endswith((".txt", ".md")) and not path.startswith("exercises/source")
    ):
        return None
    for folder in ROOMS:
        if path.startswith(f"{folder}/"):
            inner = path.removeprefix(f"{folder}/").split("/")
            return f"{folder}/{inner[0]}" if len(inner) > 1 else folder
    return next((folder for folder in WHOLE if path.startswith(f"{folder}/")), None)


def git(*arguments: str) -> str:
    command = ["git", "-C", str(ROOT), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def lines(text: str) -> int:
    """Return how many lines are not empty."""
    return sum(bool(line.strip()) for line in text.splitlines())


def now() -> Counter[str]:
    """Return the lines by room of the files that git knows, as they are here."""
    found: Counter[str] = Counter()
    for path in git("ls-files", "--cached", "--others", "--exclude-standard").splitlines():
        room, here = room_of(path), ROOT / path
        if room is not None and here.is_file():
            found[room] += lines(here.read_text(encoding="utf-8"))
    return found


def at(commit: str) -> Counter[str]:
    """Return the lines by room at a commit."""
    paths = [p for p in git("ls-tree", "-r", "--name-only", commit).splitlines() if room_of(p)]
    asked = "".join(f"{commit}:{path}\n" for path in paths)
    done = subprocess.run(
        ["git", "-C", str(ROOT), "cat-file", "--batch"],
        input=asked.encode(),
        check=True,
        capture_output=True,
    )
    found: Counter[str] = Counter()
    rest = done.stdout
    for path in paths:
        head, _, rest = rest.partition(b"\n")
        size = int(head.split()[-1])
        found[room_of(path)] += lines(rest[:size].decode())
        rest = rest[size + 1 :]
    return found


def main(arguments: list[str]) -> int:
    """Print the table; return the exit status."""
    commit = arguments[0] if arguments else "HEAD"
    try:
        before, after = at(commit), now()
    except subprocess.CalledProcessError as error:
        print(f"git cannot show {commit!r}: {error.stderr.strip()}", file=sys.stderr)
        return 1
    totals = {}
    for room in sorted(before.keys() | after.keys()):
        top = next(folder for folder in (*ROOMS, *WHOLE) if room.startswith(folder))
        totals.setdefault(top, []).append(room)
    print(f"lines that are not empty, and the change since {commit}")
    for top, rooms in totals.items():
        new, old = (sum(count[room] for room in rooms) for count in (after, before))
        print(f"{top:30} {new:7} {new - old:+6}")
        for room in rooms if len(rooms) > 1 else ():
            change = after[room] - before[room]
            print(f"  {room.removeprefix(top) or '/':28} {after[room]:7} {change:+6}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
