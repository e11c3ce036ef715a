"""A copy of the course for learners: without solutions, hidden cases and tests."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
from pathlib import Path

from tiled_matmul import ROOT
from tiled_matmul.files import replace_text

LEFT_OUT = ("exercises/solutions/", "tests/", ".ci/", ".github/")
ADDED = re.compile(r"exercises/(?!example\.py$).*\.py")  # what `exercises add` takes
SPECS = "src/tiled_matmul/grader/specs/"


def release(folder: Path, root: Path = ROOT) -> list[str]:
    """Copy what git tracks in `root` to `folder`, and return the names of the files.

    `folder` must be new or empty. Raises ValueError where it is not, or where `root` is no checkout
    of git; nothing is written then.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ValueError(f"{folder} is there already and not empty")
    command = ["git", "-C", str(root), "ls-files", "-z"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise ValueError(f"{root} is no checkout of git: {done.stderr.strip()}")
    names = [name for name in done.stdout.split("\0") if name and not name.startswith(LEFT_OUT)]
    names = [name for name in names if (root / name).is_file() and not ADDED.fullmatch(name)]
    for name in names:
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if name.startswith(SPECS) or name == "_toc.yml":
            text = (root / name).read_text(encoding="utf-8")
            replace_text(target, _toc(text) if name == "_toc.yml" else without_hidden(text))
        else:
            shutil.copy2(root / name, target)
    return names


def without_hidden(source: str) -> str:
    """Return a specification's source without the cases that say hidden=True.

    Raises ValueError for one that is no item of a list of its own.
    """
    data, tree = source.encode(), ast.parse(source)
    starts = [0]
    for line in data.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    items = [node for node in ast.walk(tree) if isinstance(node, ast.Starred) and _hides(node)]
    within = {call for item in items for call in ast.walk(item)}
    items += [node for node in ast.walk(tree) if node not in within and _hidden(node)]
    cuts = []
    for node in items:
        begin = starts[node.lineno - 1] + node.col_offset
        end = starts[node.end_lineno - 1] + node.end_col_offset
        comma = re.compile(rb"\s*,[ \t]*\n?").match(data, end)
        if not comma:
            raise ValueError(f"line {node.lineno}: a hidden case needs a comma behind it")
        blank = len(data[:begin]) - len(data[:begin].rstrip(b" "))
        begin -= blank if comma[0].endswith(b"\n") and data[begin - blank - 1] == 10 else 0
        cuts.append((begin, comma.end()))
    for begin, end in sorted(cuts, reverse=True):
        data = data[:begin] + data[end:]
    left = data.decode()
    ast.parse(left)
    return left


def _hides(node: ast.AST) -> bool:
    return any(map(_hidden, ast.walk(node)))


def _hidden(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and any(
        word.arg == "hidden" and isinstance(word.value, ast.Constant) and word.value.value is True
        for word in node.keywords
    )


def _toc(text: str) -> str:
    """Return the table of contents without the part of the solutions."""
    kept, skipping = [], False
    for line in text.splitlines(keepends=True):
        if line.startswith("  - caption:"):
            skipping = "Solutions" in line
        if not skipping:
            kept.append(line)
    return "".join(kept)
