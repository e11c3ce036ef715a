"""`python -m tiled_matmul languages`: compile the rungs in other languages, without a GPU."""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path
from typing import Any

from tiled_matmul import ROOT
from tiled_matmul.files import replace_bytes, replace_text

FOLDER = ROOT / ".venv-languages"
ON_CPU = 70, 90, 50  # M, N, K


def add_parser(commands: Any) -> None:
    """Add the command `languages` to the command line."""
    parser = commands.add_parser(
        "languages",
        help="compile the rungs in other languages, each in an environment of its own",
        description="Installs what a language's lock names, about 1 GB each, and needs no GPU.",
    )
    parser.add_argument("names", nargs="*", metavar="LANGUAGE", help="such as mojo (all)")
    parser.add_argument(
        "--check",
        action="store_true",
        help="write nothing; the exit status is 1 if a product would differ",
    )
    parser.set_defaults(run=_languages)


def _languages(args: argparse.Namespace) -> int:
    from tiled_matmul.ladder import ABROAD

    known = {each.language.name: each.language for each in ABROAD}
    for name in args.names:
        if name not in known:
            raise ValueError(f"unknown language {name!r}; there is {', '.join(known)}")
    differ = 0
    for name in args.names or known:
        python = installed(name, known[name].lock)
        for rung in ABROAD:
            if rung.language != known[name]:
                continue
            for file, constants in rung.home.PRODUCTS.items():
                path = rung.source.parent / file
                files = known[name].files(rung.home.SOURCE, constants, python)
                for ending, content in files.items():
                    differ += _kept(path.with_suffix(ending), content, args.check)
            if getattr(known[name], "on_cpu", False):
                constants = next(iter(rung.home.PRODUCTS.values()))
                error = known[name].error_on_cpu(rung.home.SOURCE, ON_CPU, constants, python)
                if error:
                    raise RuntimeError(f"{rung.name} is wrong on the CPU, by {error}")
                print(f"{rung.name}: right on the CPU, {'×'.join(map(str, ON_CPU))}", flush=True)
    return 1 if args.check and differ else 0


def _kept(path: Path, content: bytes, check: bool) -> bool:
    """Return whether a file differs from this content, and replace it then unless `check`."""
    same = path.is_file() and path.read_bytes() == content
    print(f"{path.name}: {'as it was' if same else 'differs'}", flush=True)
    if not same and not check:
        path.parent.mkdir(exist_ok=True)
        replace_bytes(path, content)
    return not same


def installed(name: str, lock: Path) -> Path:
    """Return the Python of a language's environment, which holds what its lock names.

    Raises RuntimeError with pip's last lines if that fails.
    """
    folder, wanted = FOLDER / name, lock.read_text(encoding="utf-8")
    python, done = folder / "bin" / "python", folder / "installed.lock"
    if done.is_file() and done.read_text(encoding="utf-8") == wanted:
        return python
    print(f"installing {name} in {folder}", flush=True)
    for command in (
        [sys.executable, "-m", "venv", "--clear", str(folder)],
        [str(python), "-m", "pip", "install", "--quiet", "--requirement", str(lock)],
    ):
        ran = subprocess.run(command, capture_output=True, text=True)
        if ran.returncode:
            raise RuntimeError(f"{name} cannot be installed: {ran.stderr[-1000:]}")
    replace_text(done, wanted)
    return python
