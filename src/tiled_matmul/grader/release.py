"""A copy of the course for learners: what git tracks, without answers, hidden cases and tests."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

from tiled_matmul import ROOT
from tiled_matmul.files import replace_text
from tiled_matmul.grader.folders import SEALED, TEACHERS, folders
from tiled_matmul.grader.sealed import seal

LEFT_OUT = re.compile(
    r"(?:exercises/solutions|tests(?!/notebooks)|\.ci|\.github)/.*"
    rf"|exercises/source/.*/(?:{'|'.join(map(re.escape, TEACHERS))})"
)
"""What a learner's copy lacks. The settings in tests/notebooks stay: chapters are checked there."""


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
    names = [name for name in done.stdout.split("\0") if name and not LEFT_OUT.fullmatch(name)]
    names = [name for name in names if (root / name).is_file()]
    on_numbers = {
        one.path.relative_to(root): one
        for one in folders(source=root / "exercises" / "source")
        if one.exercise.kind == "values" and str(one.path.relative_to(root) / "judge.py") in names
    }
    left_out = {str(path / "judge.py") for path in on_numbers}
    names = [name for name in names if name not in left_out]
    for path, one in on_numbers.items():
        text = json.dumps(seal(one.exercise), indent=1, ensure_ascii=False)
        (folder / path).mkdir(parents=True)
        replace_text(folder / path / SEALED, f"{text}\n")
    for name in names:
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(root / name, target)
    return names + [str(path / SEALED) for path in on_numbers]
