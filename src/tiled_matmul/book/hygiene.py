"""The rules for stored notebooks and for the pages around them, which `notebooks check` applies.

All rules apply to a chapter, which is a notebook in chapters/. For any other notebook only those
rules apply that do not depend on the book.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tiled_matmul import ROOT
from tiled_matmul.book import markers
from tiled_matmul.book.cards import names_asked_for
from tiled_matmul.book.cells import (
    FOLDED,
    KERNELSPEC,
    LANGUAGE,
    SETUP_TAGS,
    figure_name,
    figure_outputs,
    is_folded,
    is_kernel,
    is_setup,
    is_stray_kernel,
    kernel_source,
    setup_source,
    shown_source,
    wants_fold,
)
from tiled_matmul.book.citations import RAW_ROLE
from tiled_matmul.book.files import (
    NotebookError,
    chapters,
    is_appendix,
    notebook_text,
    parse_notebook,
    read_text,
    repository,
    toc_files,
)
from tiled_matmul.book.generated import ladder_markdown, readme_with_ladder, stamp_fault, title
from tiled_matmul.book.length import kernel_lines
from tiled_matmul.book.prose import typed_in_code, typed_numbers
from tiled_matmul.measure.claims import MIME as CLAIM

SUMMARY = re.compile(r"<summary>(.*?)</summary>", re.DOTALL)
MARKUP = re.compile(r"\*\*|`|(?<![\w·])\*\w|\]\(")
MAX_LINES, MAX_FOLDED_LINES = 12, 30
MIN_PREDICTIONS = 3
MIN_FIGURES = 3
TAGS = frozenset(
    {"hide-cell", "hide-input", "hide-output", "lesson", "nbval-ignore-output", "remove-cell"}
    | {"remove-input"}
)
# With "accelerator" and "colab", Colab opens a chapter on a GPU machine.
METADATA = frozenset({"accelerator", "colab", "kernelspec", "language_info", "tiled_matmul"})
# The types that the book's pages can show, and the type of claims.
MIME_TYPES = frozenset({"text/html", "text/markdown", "text/plain", CLAIM})
ABSOLUTE = re.compile(
    r"(?<![\w./\\-])/(?:home|root|tmp|Users|Volumes|content|data|mnt|opt|srv|usr|var|work|workspace"
    r"|private)/[\w.-]+|\bfile:///\w+"
    r"|\b[A-Za-z]:[\\/](?:Users|Windows|Program|Temp)\b|\b[Cc]:\\\w"
)
SVG = re.compile(r"<svg\b[^>]*>")
IMG = re.compile(r"<img\b[^>]*>")
MARKDOWN_IMAGE = re.compile(r"!\[\s*\]\(")
LABELLED = re.compile(r"\baria-label\s*=\s*[\"']\s*[^\"'\s]|\baria-hidden\s*=\s*[\"']true")
ALT = re.compile(r"\balt\s*=\s*[\"']\s*[^\"'\s]")
# A chapter imports from these packages only, so that moving a module changes no chapter.
IMPORTED = re.compile(r"^\s*(?:from|import) +tiled_matmul(?:\.(\w+))?", re.MULTILINE)
DOORS = ("page", "ladder", "plots", "models", "torch")
PROSE_PAGES = ("intro.md", "glossary.md", "README.md")


@dataclass(frozen=True)
class Fault:
    """One fault: its place ("FILE", or "FILE: cell 3") and a message of one line."""

    place: str
    message: str

    def __str__(self) -> str:
        return f"{self.place}: {self.message}"


def check(paths: Iterable[Path] | None = None, root: Path = ROOT) -> list[Fault]:
    """Return every fault of the notebooks at `paths`, or of the whole book if `paths` is None."""
    if paths is not None:
        return [problem for path in paths for problem in check_notebook(Path(path), root)]
    try:
        listed = chapters(root)
    except (NotebookError, ValueError) as error:
        return [Fault("_toc.yml", str(error))]
    everything = sorted({*listed, *(root / "chapters").glob("*.ipynb")})
    problems = [problem for path in everything for problem in check_notebook(path, root)]
    problems += [
        Fault(str(path.relative_to(root)), "a chapter lies in chapters/ itself")
        for path in sorted((root / "chapters").glob("*/**/*.ipynb"))
        if ".ipynb_checkpoints" not in path.parts
    ]
    problems += [fault for path in _exercises(root) for fault in check_markers(path, root)]
    problems += [*_across_chapters(everything, root), *check_pages(root), *check_records(root)]
    return problems


def _exercises(root: Path) -> list[Path]:
    """Return the notebooks of exercises and of solutions."""
    folder = root / "exercises"
    return sorted([*folder.glob("[0-9]*.ipynb"), *folder.glob("solutions/[0-9]*.ipynb")])


def check_markers(path: Path, root: Path = ROOT) -> list[Fault]:
    """Return the faults of a notebook's markers for nbval, the one rule for exercises here."""
    name = str(path.relative_to(root))
    try:
        cells = parse_notebook(read_text(path), name).cells
    except NotebookError as error:
        return [Fault(name, str(error).removeprefix(f"{path}: ").removeprefix(f"{name}: "))]
    found = [(n, text) for n, cell in enumerate(cells, start=1) for text in markers.faults(cell)]
    found += markers.unrun(cells)
    return [Fault(f"{name}: cell {number}", text) for number, text in found]


def check_notebook(path: Path, root: Path = ROOT) -> list[Fault]:
    """Return every fault of one notebook. A file that is not a notebook counts as one fault."""
    name = path.resolve()
    name = name.relative_to(root.resolve()) if name.is_relative_to(root.resolve()) else path
    try:
        text = read_text(path)
        notebook = parse_notebook(text, name)
    except NotebookError as error:
        return [Fault(str(name), str(error).removeprefix(f"{path}: ").removeprefix(f"{name}: "))]
    is_chapter = path.resolve().parent == (root / "chapters").resolve()
    faults = list(_whole(notebook, text, root))
    if is_chapter:
        faults += [("", message) for message in _chapter(notebook, path, root)]
    has_run = any(cell.get("execution_count") for cell in notebook.cells)
    if not has_run:
        faults.append(("", "never run; `notebooks run` stores its outputs"))
    count = 0
    for index, cell in enumerate(notebook.cells, start=1):
        where = f"cell {index}"
        faults += [(where, message) for message in markers.faults(cell)]
        if cell.cell_type == "code":
            count += 1
            faults += [(where, message) for message in _code_cell(cell, root)]
            if has_run:
                faults += [(where, message) for message in _outputs(cell, count, root)]
        elif cell.cell_type == "markdown":
            faults += [(where, message) for message in _markdown(cell.source)]
        else:
            faults.append((where, "a raw cell; only Markdown and code cells are allowed"))
    return [Fault(f"{name}: {where}" if where else str(name), text) for where, text in faults]


def _whole(notebook: Any, text: str, root: Path) -> Iterator[tuple[str, str]]:
    if text != notebook_text(notebook):
        yield "", "not formatted as nbformat writes it; `notebooks sync` does that"
    if notebook.metadata.get("kernelspec") != KERNELSPEC:
        kernelspec = notebook.metadata.get("kernelspec")
        yield "", f"kernelspec is {kernelspec}, wanted {KERNELSPEC}; `notebooks sync` does that"
    if notebook.metadata.get("language_info") != LANGUAGE:
        yield "", f"language_info must be {LANGUAGE}; `notebooks sync` does that"
    for key in sorted(set(notebook.metadata) - METADATA):
        yield "", f"unknown metadata {key!r}; known are {', '.join(sorted(METADATA))}"
    seen: set[str] = set()
    for index, cell in enumerate(notebook.cells, start=1):
        if cell.id in seen:
            yield f"cell {index}", f"cell id {cell.id!r} is already taken"
        seen.add(cell.id)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    if not code or not is_setup(code[0]):
        yield "", "the first code cell is not the set-up cell; `notebooks sync` puts it there"
    elif code[0].source != setup_source(root):
        yield "", "the set-up cell was edited or is out of date; `notebooks sync` renews it"
    elif code[0].metadata.get("tags") != SETUP_TAGS:
        yield "", f"the set-up cell's tags must be {SETUP_TAGS}; `notebooks sync` sets them"
    if sum(is_setup(cell) for cell in code) > 1:
        yield "", "more than one set-up cell"


def _chapter(notebook: Any, path: Path, root: Path) -> Iterator[str]:
    if path.resolve() not in {listed.resolve() for listed in chapters(root)}:
        yield "not in _toc.yml"
    if not notebook.cells or notebook.cells[0].cell_type != "markdown" or not title(notebook):
        yield "must open with a Markdown cell that has a '# ' heading"
    fault = stamp_fault(notebook)
    if fault:
        yield fault
    sources = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    predictions = len(re.findall(r"<details\b", sources))
    if predictions < MIN_PREDICTIONS and not is_appendix(path):
        yield f"{predictions} folded predictions (<details>), wanted at least {MIN_PREDICTIONS}"
    code = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "code")
    for room in sorted({match[1] or "" for match in IMPORTED.finditer(code)} - {*DOORS}):
        doors = ", ".join(f"tiled_matmul.{door}" for door in DOORS)
        yield f"imports tiled_matmul{'.' * bool(room)}{room}; a chapter imports from {doors}"
    figures = sum(
        cell.cell_type == "code" and "figure" in cell.metadata.get("mystnb", {})
        for cell in notebook.cells
    )
    if figures < MIN_FIGURES and not is_appendix(path):
        yield f"{figures} figures (metadata mystnb.figure), wanted at least {MIN_FIGURES}"


def _code_cell(cell: Any, root: Path) -> Iterator[str]:
    lines = cell.source.splitlines()
    if wants_fold(cell) != is_folded(cell):
        must = "be folded" if wants_fold(cell) else "be open"
        yield f"must {must} in JupyterLab, as in the book; `notebooks sync` does that"
    if not cell.source.strip():
        yield "empty"
    if is_kernel(cell):
        try:
            if cell.source != kernel_source(lines[0], root):
                yield f"differs from the source it names ({lines[0]}); edit that, then sync"
        except ValueError as error:
            yield str(error)
    elif is_stray_kernel(cell):
        yield "a kernel's marker must be '# kernel: …', and the cell's first line"
    tags = cell.metadata.get("tags", [])
    most = MAX_FOLDED_LINES if FOLDED & set(tags) else MAX_LINES
    own = len(lines) - kernel_lines(cell.source)
    if own > most and not (is_kernel(cell) or is_setup(cell) or _imports_only(cell.source)):
        yield f"{own} lines, at most {most} (kernels and a cell of imports excepted)"
    for tag in sorted(set(tags) - TAGS - markers.like_tags(tags)):
        yield f"unknown tag {tag!r}; known are {', '.join(sorted(TAGS))}"
    match = ABSOLUTE.search(cell.source)
    if match:
        yield f"absolute path {match[0]!r}"
    for words in typed_in_code(cell.source):
        yield f"measured number typed in a sentence: {words!r}; put in what was measured"
    yield from names_asked_for(cell.source)
    figure = cell.metadata.get("mystnb", {}).get("figure")
    if figure is not None:
        yield from (f"caption: {fault}" for fault in _prose(str(figure.get("caption", ""))))
        if not str(figure.get("name", "")).startswith("fig-") or not figure.get("caption"):
            yield f"mystnb.figure needs a name 'fig-…' and a caption, got {dict(figure)}"


def _outputs(cell: Any, count: int, root: Path) -> Iterator[str]:
    if cell.execution_count != count:
        yield f"execution count {cell.execution_count}, wanted {count}: run the notebook in order"
    silent = not any(_text(out).strip() for out in cell.outputs)
    if markers.is_checked(cell.source) and silent:
        yield "NBVAL_CHECK_OUTPUT, but there is no text output to compare"
    try:
        source = shown_source(cell.source, root)
    except (OSError, ValueError) as error:
        yield f"shows a source that does not exist: {error}"
    else:
        if source is not None and source not in {_text(out).strip() for out in cell.outputs}:
            yield "shows an older source than the ladder's; run it again"
    name = figure_name(cell.source)
    if name:
        try:
            if [output.get("data") for output in cell.outputs] != [figure_outputs(name)]:
                yield f"its still picture is not that of {name!r} now; `notebooks sync` renews it"
        except ValueError as error:
            yield str(error)
        return
    figure = cell.metadata.get("mystnb", {}).get("figure")
    pictures = 0
    for output in cell.outputs:
        yield from _output(output)
        pictures += _is_picture(output)
    if figure is not None and pictures != 1:
        yield f"mystnb.figure, and {pictures} pictures in its outputs, wanted 1"
    if figure is None and pictures:
        yield "a picture without metadata mystnb.figure, so without number and caption"


def _text(output: Any) -> str:
    if output.output_type == "stream":
        return output.text if output.name == "stdout" else ""
    return output.get("data", {}).get("text/plain", "")


def _is_picture(output: Any) -> bool:
    return bool(SVG.search(output.get("data", {}).get("text/html", "")))


def _output(output: Any) -> Iterator[str]:
    if output.output_type == "error":
        yield f"error output: {output.ename}: {output.evalue.splitlines()[0:1]}"
        return
    if output.output_type == "stream" and output.name == "stderr":
        yield f"output on stderr: {(output.text.strip() or '(blank)').splitlines()[0][:100]!r}"
    texts = [output.text] if output.output_type == "stream" else _strings(output.data)
    for text in texts:
        match = ABSOLUTE.search(text)
        if match:
            yield f"absolute path {match[0]!r} in its output"
    data = output.get("data", {})
    for mime in sorted(set(data) - MIME_TYPES):
        yield f"output of type {mime}; the book shows {', '.join(sorted(MIME_TYPES))}"
    page = data.get("text/html", "")
    if any(not LABELLED.search(tag[0]) for tag in SVG.finditer(page)):
        yield "an <svg> without aria-label: say in words what it shows"
    if any(not ALT.search(tag[0]) for tag in IMG.finditer(page)):
        yield "an <img> without alt text"


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item)


def _prose(text: str) -> Iterator[str]:
    for line, words in typed_numbers(text):
        yield f"line {line}: measured number typed in prose: {words!r}; let a cell print it"
    match = ABSOLUTE.search(text)
    if match:
        yield f"absolute path {match[0]!r}"


def _markdown(source: str) -> Iterator[str]:
    if not source.strip():
        yield "empty"
    yield from _prose(source)
    for role in RAW_ROLE.findall(source):
        yield f"{role} shows as it is in JupyterLab; `notebooks sync` makes links of citations"
    if MARKDOWN_IMAGE.search(source) or any(not ALT.search(m[0]) for m in IMG.finditer(source)):
        yield "an image without alt text"
    if source.count("<details") != source.count("</details>"):
        yield "<details> and </details> do not pair up"
    if any(MARKUP.search(summary) for summary in SUMMARY.findall(source)):
        yield "Markdown inside <summary> is not rendered; use <b>, <i> and <code>"


def _imports_only(source: str) -> bool:
    try:
        statements = ast.parse(source).body
    except SyntaxError:
        return False
    return all(isinstance(each, (ast.Import, ast.ImportFrom)) for each in statements)


def _across_chapters(paths: Iterable[Path], root: Path) -> Iterator[Fault]:
    """Yield the faults between chapters: names of figures that occur in two of them."""
    names: dict[str, Path] = {}
    for path in paths:
        try:
            notebook = parse_notebook(read_text(path), path)
        except NotebookError:
            continue
        for cell in notebook.cells:
            name = cell.metadata.get("mystnb", {}).get("figure", {}).get("name")
            if name in names:
                place = str(path.relative_to(root))
                yield Fault(place, f"figure {name!r} is also in {names[name].name}")
            elif name:
                names[name] = path


def check_pages(root: Path = ROOT) -> Iterator[Fault]:
    """Yield the faults of the pages around the chapters: the table of contents, prose, README."""
    pages = dict.fromkeys(PROSE_PAGES)
    for name in toc_files(root):
        suffixes = ("", ".md", ".ipynb")
        files = [f"{name}{suffix}" for suffix in suffixes if (root / f"{name}{suffix}").is_file()]
        if not files:
            yield Fault("_toc.yml", f"there is no page {name}")
        pages.update(dict.fromkeys(page for page in files if page.endswith(".md")))
    for name in pages:
        path = root / name
        if not path.is_file():
            yield Fault(name, "no such file")
            continue
        try:
            text = read_text(path)
        except NotebookError as error:
            yield Fault(name, str(error).removeprefix(f"{path}: "))
            continue
        if name == "README.md":
            try:
                fresh = refreshed_readme(root)
            except ValueError as error:
                yield Fault(name, str(error))
                continue
            if text != fresh:
                yield Fault(name, "its ladder is not that of results/h200.json; run sync")
            text = readme_with_ladder(text, "")
        for line, words in typed_numbers(text):
            yield Fault(f"{name}:{line}", f"measured number typed in prose: {words!r}")


def check_records(root: Path = ROOT) -> Iterator[Fault]:
    """Yield a Fault for records whose code is another now, and for files of results that are wrong.

    Jobs that `results/outdated.txt` lists may be out of date, and nothing else may stand there.
    """
    from tiled_matmul.measure import suites

    try:
        found = {each.line: each for each in suites.stale(root)}
        listed = suites.outdated(root)
    except ValueError as error:
        yield Fault("results", str(error))
        return
    for line in sorted(found.keys() - listed):
        yield Fault(*str(found[line]).split(": ", 1))
    for line in sorted(listed - found.keys()):
        yield Fault(suites.OUTDATED, f"{line!r} is not out of date: take the line away")


def refreshed_readme(root: Path = ROOT) -> str:
    """Return README.md's text with the ladder generated from results/h200.json.

    Raises ValueError if the results cannot be read or lack a rung, or if README.md lacks the
    ladder's markers.
    """
    from tiled_matmul.ladder import LADDER
    from tiled_matmul.measure import results

    block, faults = ladder_markdown(results.load(root / "results" / "h200.json"), LADDER)
    if faults:
        raise ValueError("; ".join(faults))
    return readme_with_ladder(read_text(root / "README.md"), block)


def notes(root: Path = ROOT) -> list[str]:
    """Return notes for the maintainer that are not faults."""
    if not repository(root):
        return [
            "note: _config.yml names no repository.url, so on Colab these notebooks cannot fetch "
            "the course; notebooks in a built book hold the address of that build"
        ]
    return []
