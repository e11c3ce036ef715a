"""How much a chapter asks of its reader: words, lines of code, and how many of those teach."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tiled_matmul.book.cells import FOLDED, is_kernel, is_setup
from tiled_matmul.book.citations import as_citations
from tiled_matmul.book.files import parse_notebook, read_text
from tiled_matmul.measure.claims import MIME as CLAIM

MAX_WORDS = 5500
MIN_SHARE = 0.5
MAX_VERDICTS = 4
MAX_COLUMNS = 91  # what fits beside the margins of a page 1280 pixels wide
UNSEEN = frozenset({"hide-output", "hide-cell", "remove-output", "remove-cell"})
TEACHES = "lesson"
"""The tag of a cell whose code the text discusses, such as a formula; kernels need no tag."""
COMPILERS = re.compile(r"(?:cuda|triton|gluon)\.jit|njit|jit|unsigned|vectorize")
MARKER = re.compile(r"\s*# *NBVAL_\w+\s*")
HIGHLIGHTED = re.compile(r'class="highlight"')
NOT_PROSE = re.compile(
    r"<[^>]+>|\{[\w:]+\}`[^`]*`|\]\([^)]*\)|^ *(?:`{3,}|:{3,}|~{3,}).*$|^\|[ :|-]+\|$", re.MULTILINE
)


@dataclass(frozen=True)
class Length:
    """What stands on one page before anything is folded out. `longest` is in characters."""

    words: int
    prose: int
    lines: int
    teaching: int
    verdicts: int
    longest: int

    @property
    def share(self) -> float:
        """The share of visible lines of code that are a kernel, a diff or a formula."""
        return self.teaching / self.lines if self.lines else 1.0

    def faults(self, appendix: bool = False) -> Iterator[str]:
        """Yield a sentence for each limit that the page exceeds; an appendix may have verdicts."""
        if self.words > MAX_WORDS:
            yield f"{self.words} words with code and outputs, at most {MAX_WORDS}"
        if self.share < MIN_SHARE:
            yield (
                f"{self.teaching} of {self.lines} visible lines of code teach "
                f"({self.share:.0%}), wanted {MIN_SHARE:.0%}; fold the others"
            )
        if self.verdicts > MAX_VERDICTS and not appendix:
            yield f"{self.verdicts} verdicts, at most {MAX_VERDICTS}; others go to an appendix"
        if self.longest > MAX_COLUMNS:
            yield f"a line of code of {self.longest} characters, at most {MAX_COLUMNS} fit the page"


def length(path: Path) -> Length:
    """Return the length of a chapter. Raises NotebookError as `parse_notebook`."""
    return measured(parse_notebook(read_text(path), path))


def measured(notebook: Any) -> Length:
    """Return the length of a notebook's page, from its cells and stored outputs."""
    prose = words = verdicts = 0
    code: list[str] = []
    teaching = 0
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            prose += len(_words(NOT_PROSE.sub(" ", as_citations(cell.source))))
            continue
        tags = set(cell.metadata.get("tags", []))
        if not (is_setup(cell) or tags & FOLDED):
            lines = [line for line in cell.source.splitlines() if line.strip()]
            lines = [line for line in lines if not MARKER.fullmatch(line)]
            code += lines
            if is_kernel(cell) or TEACHES in tags:
                teaching += len(lines)
            else:
                teaching += kernel_lines(cell.source)
        caption = cell.metadata.get("mystnb", {}).get("figure", {}).get("caption", "")
        words += len(_words(caption))
        for data in (out.get("data", {}) for out in cell.outputs):
            claims = data.get(CLAIM, [])
            verdicts += len(claims) if isinstance(claims, list) else 1
        if tags & UNSEEN:
            continue
        for output in cell.outputs:
            data = output.get("data", {})
            text = output.get("text", data.get("text/plain", ""))
            if data.get("text/html", "").startswith("<details"):  # folded
                continue
            if HIGHLIGHTED.search(data.get("text/html", "")):
                shown = [line for line in text.splitlines() if line.strip()]
                code += shown
                teaching += len(shown)
            elif "<svg" not in data.get("text/html", ""):
                words += len(_words(text))
    words += prose + sum(len(_words(line)) for line in code)
    longest = max(map(len, code), default=0)
    return Length(words, prose, len(code), teaching, verdicts, longest)


def _words(text: str) -> list[str]:
    return [word for word in text.split() if re.search(r"\w", word)]


def kernel_lines(source: str) -> int:
    """Return how many lines of a cell belong to functions that Numba or Triton compiles."""
    try:
        body = ast.parse(source).body
    except SyntaxError:
        return 0
    count = 0
    for node in body:
        marks = [ast.unparse(mark) for mark in getattr(node, "decorator_list", [])]
        if any(COMPILERS.match(mark) for mark in marks):
            first = min(mark.lineno for mark in node.decorator_list)
            lines = source.splitlines()[first - 1 : node.end_lineno]
            count += sum(bool(line.strip()) for line in lines)
    return count
