"""`python -m tiled_matmul languages`: compile the rungs in other languages, without a GPU."""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tiled_matmul import ROOT
from tiled_matmul.files import read_json, replace_bytes, replace_text
from tiled_matmul.languages.abroad import pinned

FOLDER = ROOT / ".venv-languages"
ON_CPU = 256, 384, 192  # M, N, K: multiples of every tile that runs there


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
    parser.add_argument(
        "--newest",
        action="store_true",
        help="as --check, with the newest version of everything that a lock names",
    )
    parser.set_defaults(run=_languages)


def _languages(args: argparse.Namespace) -> int:
    from tiled_matmul.ladder import ABROAD

    known = {each.language.name: each.language for each in ABROAD}
    for name in args.names:
        if name not in known:
            raise ValueError(f"unknown language {name!r}; there is {', '.join(known)}")
    differ = failed = 0
    for name in args.names or known:
        language = known[name]
        python = installed(name, language.lock, args.newest)
        if args.newest:
            print(*changed(language.lock, python), sep="\n", flush=True)
        for rung in ABROAD:
            if rung.language == language:
                try:
                    differ += _compiled(rung, python, args.check or args.newest)
                except RuntimeError as error:
                    print(f"{rung.name}: {error}", file=sys.stderr, flush=True)
                    failed += 1
    return 1 if failed or (args.check or args.newest) and differ else 0


def _compiled(rung: Any, python: Path, check: bool) -> int:
    """Compile the products of a rung, and return how many files differ; `check` keeps them."""
    language, differ = rung.language, 0
    for file, constants in rung.home.PRODUCTS.items():
        path = rung.source.parent / file
        files = language.files(rung.home.SOURCE, constants, python)
        differ += sum(_kept(path.with_suffix(x), content, check) for x, content in files.items())
    if language.on_cpu:
        constants = next(iter(rung.home.PRODUCTS.values()))
        error = language.error_on_cpu(rung.home.SOURCE, ON_CPU, constants, python)
        if error:
            raise RuntimeError(f"{rung.name} is wrong on the CPU, by {error}")
        print(f"{rung.name}: right on the CPU, {'×'.join(map(str, ON_CPU))}", flush=True)
    return differ


def changed(lock: Path, python: Path) -> list[str]:
    """Return a line for each package whose version in an environment is not the lock's."""
    frozen = [str(python), "-m", "pip", "freeze"]
    now = subprocess.run(frozen, capture_output=True, text=True, check=True).stdout
    versions, locked = pinned(now), pinned(lock.read_text(encoding="utf-8"))
    return [
        f"{name} {locked.get(name, 'new')} -> {versions.get(name, 'gone')}"
        for name in sorted(locked | versions)
        if locked.get(name) != versions.get(name)
    ]


def _kept(path: Path, content: bytes, check: bool) -> bool:
    """Return whether a file differs from this content, and replace it then unless `check`."""
    same = path.is_file() and path.read_bytes() == content
    print(f"{path.name}: {'as it was' if same else _difference(path, content)}", flush=True)
    if not same and not check:
        path.parent.mkdir(exist_ok=True)
        replace_bytes(path, content)
    return not same


def _difference(path: Path, content: bytes) -> str:
    """Return "differs", and of JSON each value that does."""
    if path.suffix != ".json" or not path.is_file():
        return "differs"
    before, now = read_json(path), json.loads(content)
    values = [
        f"{key} {before.get(key)} -> {now.get(key)}"
        for key in before | now
        if before.get(key) != now.get(key)
    ]
    return "; ".join(["differs", *values])


def installed(name: str, lock: Path, newest: bool = False) -> Path:
    """Return the Python of a language's environment, which holds what its lock names.

    With `newest`, that is the newest version of each, in an environment beside it. Raises
    RuntimeError with pip's last lines if that fails.
    """
    folder, wanted = FOLDER / name, lock.read_text(encoding="utf-8")
    if newest:
        folder, wanted = FOLDER / f"{name}-newest", re.sub(r"==\S+", "", wanted)
    python, done = folder / "bin" / "python", folder / "installed.lock"
    if not newest and done.is_file() and done.read_text(encoding="utf-8") == wanted:
        return python
    print(f"installing {name} in {folder}", flush=True)
    with tempfile.NamedTemporaryFile("w", suffix=".txt", encoding="utf-8") as asked:
        asked.write(wanted)
        asked.flush()
        for command in (
            [sys.executable, "-m", "venv", "--clear", str(folder)],
            [str(python), "-m", "pip", "install", "--quiet", "--requirement", asked.name],
        ):
            ran = subprocess.run(command, capture_output=True, text=True)
            if ran.returncode:
                raise RuntimeError(f"{name} cannot be installed: {ran.stderr[-1000:]}")
    replace_text(done, wanted)
    return python
