"""Reading and spelling notebooks, and the book's two settings files."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from tiled_matmul import ROOT

CONFIG = "_config.yml"
TOC = "_toc.yml"
ADDRESS_OVERRIDE = "BOOK_REPOSITORY"
# A remote's URL on a forge: https://, ssh://, or git@HOST:OWNER/NAME, with or without an account.
FORGE = re.compile(
    r"(?:(?:https?|ssh|git)://)?(?:[^@/\s]+@)?(github\.com|gitlab\.com)(?::\d+)?[:/]([\w.-]+/[\w.-]+?)"
    r"(?:\.git)?/?"
)


class NotebookError(ValueError):
    """A notebook is not usable; the message is one line that names the file and the fault."""


def load_nbformat() -> Any:
    """Return nbformat, without the grammar of web addresses, which takes longer than all the rest.

    jsonschema leaves out their check where that package is missing; notebooks have none to check.
    """
    if "jsonschema" not in sys.modules:
        sys.modules["rfc3987_syntax"] = None
        import_module("nbformat")
        del sys.modules["rfc3987_syntax"]
    return import_module("nbformat")


def read_text(path: Path) -> str:
    """Return the file's text. Raises NotebookError if it is missing, a folder or not UTF-8."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise NotebookError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise NotebookError(f"{path}: not UTF-8 at byte {error.start}") from None


def parse_notebook(text: str, name: Path | str, *, upgrade: bool = False):
    """Return the notebook in `text` as an nbformat node; error messages call it `name`.

    With `upgrade`, an older minor version, as Colab saves it, is converted to 4.5. Raises
    NotebookError for a text that is not a valid notebook of version 4.5.
    """
    nbformat = load_nbformat()
    from nbformat.v4.rwbase import rejoin_lines
    from nbformat.validator import iter_validate

    try:
        data = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise NotebookError(f"{name}: not a notebook: not JSON: {error}") from None
    if not isinstance(data, dict) or "cells" not in data or "nbformat" not in data:
        raise NotebookError(f'{name}: not a notebook: no "cells" or no "nbformat" in it')
    version = (data["nbformat"], data.get("nbformat_minor"))
    old = upgrade and version in [(4, minor) for minor in range(5)]
    if not old and version != (4, 5) or any(type(part) is not int for part in version):
        raise NotebookError(f"{name}: notebook format {version[0]}.{version[1]}, wanted 4.5")

    def validate(data: dict) -> None:
        for error in iter_validate(data):
            place = "/".join(str(step) for step in getattr(error, "path", ())) or "top level"
            reason = error.message.split("\n")[0][:120]
            raise NotebookError(f"{name}: not a valid notebook: {place}: {reason}")

    validate(data)
    if old:
        data = nbformat.v4.upgrade(nbformat.from_dict(data), from_minor=version[1])
        validate(data)
    notebook = rejoin_lines(nbformat.from_dict(data))
    _check_metadata(notebook, name)
    return notebook


def _no_constant(word: str) -> None:
    raise ValueError(f"{word} is not a JSON number")


def _check_metadata(notebook, name: Path | str) -> None:
    """Raise NotebookError if metadata that nbformat does not know is not an object."""
    entries = [("metadata/tiled_matmul", notebook.metadata.get("tiled_matmul", {}))]
    for index, cell in enumerate(notebook.cells):
        book = cell.metadata.get("mystnb", {})
        entries.append((f"cells/{index}/metadata/mystnb", book))
        figure = book.get("figure", {}) if isinstance(book, dict) else {}
        entries.append((f"cells/{index}/metadata/mystnb/figure", figure))
    for place, value in entries:
        if not isinstance(value, dict):
            raise NotebookError(f"{name}: not a valid notebook: {place}: {value!r} is no object")


def notebook_text(notebook) -> str:
    """Return the text of a notebook as the course stores it."""
    return load_nbformat().v4.writes(notebook).rstrip("\n") + "\n"


def repository(root: Path = ROOT) -> str:
    """Return the address that notebooks hold: `repository.url` in _config.yml, or "".

    Raises ValueError if it is not https://HOST/OWNER/NAME.
    """
    config = _settings(root / CONFIG)
    place = config.get("repository")
    url = place.get("url") if isinstance(place, dict) else None
    return "" if url is None else checked_address(str(url), f"{CONFIG}: url")


def built_for(root: Path = ROOT) -> str:
    """Return the address for a build of the book, or "" without one.

    It is BOOK_REPOSITORY from the environment, else the address in _config.yml, else git's remote
    `origin` if that is on GitHub or GitLab. Raises ValueError for an address of another form.
    """
    override = os.environ.get(ADDRESS_OVERRIDE)
    if override:
        return checked_address(override, ADDRESS_OVERRIDE)
    return repository(root) or _origin(root)


def _origin(root: Path) -> str:
    command = ["git", "-C", str(root), "config", "--get", "remote.origin.url"]
    # A repository that merely encloses the course's folder does not count.
    environment = os.environ | {"GIT_CEILING_DIRECTORIES": str(root.resolve().parent)}
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
    except OSError:
        return ""
    match = FORGE.fullmatch(done.stdout.strip())
    return f"https://{match[1]}/{match[2]}" if match else ""


def checked_address(url: str, where: str) -> str:
    """Return `url` without a closing slash or .git. Raises ValueError quoting any other form."""
    url = url.rstrip("/").removesuffix(".git")
    if not re.fullmatch(r"https://[\w.:-]+/[\w.-]+/[\w.-]+", url):
        raise ValueError(f"{where}: {url!r} is not an address like https://github.com/OWNER/NAME")
    return url


def _settings(path: Path) -> dict:
    """Return a settings file's content. Raises NotebookError unless it is a mapping."""
    import yaml

    try:
        settings = yaml.safe_load(read_text(path))
    except yaml.YAMLError as error:
        raise NotebookError(f"{path.name}: not YAML: {' '.join(str(error).split())}") from None
    if not isinstance(settings, dict):
        raise NotebookError(f"{path.name}: must hold a mapping, it holds {settings!r}")
    return settings


def toc_files(root: Path = ROOT) -> list[str]:
    """Return the files that _toc.yml names, in reading order, as written there."""

    def walk(node: Any) -> Iterator[str]:
        if isinstance(node, dict):
            if "file" in node:
                yield node["file"]
            for key in ("parts", "chapters", "sections", "subtrees", "entries"):
                yield from walk(node.get(key))
        elif isinstance(node, list):
            for item in node:
                yield from walk(item)

    toc = _settings(root / TOC)
    if "root" not in toc:
        raise NotebookError(f"{TOC}: no root page in it")
    names = [toc["root"], *walk(toc)]
    for name in names:
        if not isinstance(name, str):
            raise NotebookError(f"{TOC}: {name!r} is not a file name")
    return names


def chapters(root: Path = ROOT) -> list[Path]:
    """Return the notebooks of the chapters and appendices in reading order."""
    names = [name.removesuffix(".ipynb") for name in toc_files(root)]
    return [root / f"{name}.ipynb" for name in names if name.startswith("chapters/")]


def is_appendix(path: Path) -> bool:
    """Return whether a notebook is an appendix: "a1_power_and_clocks" is, "01_three_loops" not."""
    return path.stem.startswith("a")
