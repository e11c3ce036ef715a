"""The climb as a table on the first page: one idea a row, with picture, lines and ratio."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tiled_matmul.book.files import chapters
from tiled_matmul.book.generated import markdown_table, significant
from tiled_matmul.measure.results import ladder_record
from tiled_matmul.plots.ideas import IDEAS, picture


def ideas_markdown(
    records: Sequence[Any], rungs: Mapping[str, Any], root: Path
) -> tuple[str, list[str]]:
    """Return (a table of IDEAS, faults). A rung without a record is a fault.

    `records` are results.Record, `rungs` maps names to ladder.Rung, `root` is the book's folder.
    Where a rung only chose other constants, the lines are those of the rung below. Without Triton
    the lines of its kernels are not counted.
    """
    rows, faults, last = [], [], None
    pages = {int(p.stem[:2]): p.stem for p in chapters(root) if p.stem[:2].isdigit()}
    for idea in IDEAS:
        rung = rungs[idea.rung]
        record = ladder_record(records, rung)
        if record is None:
            faults.append(f"results/h200.json holds no {rung.dtype} record of rung {rung.name}")
            continue
        group = (rung.device, rung.dtype)
        if group != (last and (last.device, last.dtype)):
            place = "On a CPU" if rung.device == "cpu" else "On a GPU"
            library = "NumPy's BLAS" if record.baseline == "numpy" else "cuBLAS"
            rows.append(("", f"**{place}, {rung.dtype}**", "", f"**of {library}**"))
        last = rung
        counted = rung.available and rung.kernel
        lines = counted and (_changed(rung) or _changed(rung.below))
        page = pages.get(rung.chapter)
        text = f"[{idea.text}](chapters/{page}.ipynb)" if page else idea.text
        alt = f"{idea.text}: the parts of A, B and C that one worker uses at a time"
        share = f"{significant(100 * record.ratio)}%"
        rows.append((picture(idea.a, idea.b, idea.c, alt), text, str(lines or "–"), share))
    columns = ("", "idea", "lines", "speed")
    return markdown_table(columns, rows, "  rr"), faults


def _changed(rung: Any) -> int:
    """Return how many lines of a rung's kernel the rung below does not have."""
    return sum(line.startswith("+") for line in rung.changes().splitlines())
