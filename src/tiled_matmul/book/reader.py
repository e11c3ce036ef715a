"""What the book offers its reader beyond text: `js/reader.js`, its terms, and the progress page."""

from __future__ import annotations

import json
import re
from pathlib import Path

from tiled_matmul.book.files import chapters, is_appendix, parse_notebook, read_text
from tiled_matmul.book.generated import markdown_table
from tiled_matmul.book.sections import JS, sections
from tiled_matmul.files import replace_text

PREDICT = "<summary><b>Predict"
CARD = 320  # characters of a term's card; it ends with a sentence


def progress_markdown(root: Path) -> tuple[str, list[str]]:
    """Return (a table of the chapters with their numbers of predictions, faults).

    `root` is the book's folder. A reader's own columns are added by the script.
    """
    rows, faults = [], []
    for path in chapters(root):
        if is_appendix(path):
            continue
        cells = [
            c.source
            for c in parse_notebook(read_text(path), path.name).cells
            if c.cell_type == "markdown"
        ]
        title = re.search(r"^# (.+)$", "\n".join(cells), re.MULTILINE)
        if title is None:
            faults.append(f"{path.name} has no title")
            continue
        asked = sum(cell.count(PREDICT) for cell in cells)
        rows.append((f"[{title[1]}](chapters/{path.name})", str(asked)))
    return markdown_table(("chapter", "predictions"), rows, " r"), faults


def cards(glossary: str) -> dict[str, list[str]]:
    """Return {id: [term, its first sentences]} of the built glossary page."""
    found = {}
    for section in sections(glossary)[1:]:
        text = re.sub(r"\s+", " ", section.text.replace("`", "")).strip()
        ends = [m.end() for m in re.finditer(r"[.:](?= |$)", text) if m.end() <= CARD]
        shown = text[: ends[-1]] if ends else text[:CARD]
        found[section.place] = [section.title, re.sub(r"[^.]*:$", "", shown).strip() or shown]
    return found


def write_reader(html: Path) -> None:
    """Write the script and the terms into the built book in `html`."""
    folder = html / "_static" / "reader"
    folder.mkdir(parents=True, exist_ok=True)
    replace_text(folder / "reader.js", read_text(JS / "reader.js"))
    terms = json.dumps(cards(read_text(html / "glossary.html")), ensure_ascii=False, indent=0)
    replace_text(folder / "terms.js", f"globalThis.Terms = {terms};\n")
