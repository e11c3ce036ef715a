"""The climb as a table on the first page: one idea a row, with picture, lines and ratio."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tiled_matmul.book.files import chapters
from tiled_matmul.book.generated import ladder_record, markdown_table, significant
from tiled_matmul.plots.ideas import Part, picture


class Idea(NamedTuple):
    """A rung, its idea in a sentence, and the parts of A, B and C that one worker works on."""

    rung: str
    text: str
    a: Sequence[Part]
    b: Sequence[Part]
    c: Sequence[Part]


ROW, COLUMN, ELEMENT = (1, 0, 1, 4, 0.7), (0, 1, 4, 1, 0.7), (1, 1, 1, 1, 0.7)
TILE, NEXT, BELOW = (0, 0, 2, 2, 0.7), (0, 2, 2, 2, 0.25), (2, 0, 2, 2, 0.25)
IDEAS = (
    Idea("loops_python", "Three loops: a row of A times a column of B", [ROW], [COLUMN], [ELEMENT]),
    Idea("njit_ikj", "Swap two loops: now memory is read in order", [ELEMENT], [ROW], [ROW]),
    Idea("cpu_packed", "Work in tiles that stay in a cache, on all cores", [TILE], [TILE], [TILE]),
    Idea(
        "cuda_coalesced",
        "One GPU thread for each element; neighbours load neighbours",
        [(1, 0, 1, 1, 0.7)],
        [(0, 0, 1, 4, 0.7)],
        [(1, 0, 1, 4, 0.7)],
    ),
    Idea("cuda_shared_16", "Load each tile once for a whole block", [TILE], [TILE], [TILE]),
    Idea(
        "cuda_vectorised",
        "Give each thread 64 elements, and keep their sums in registers",
        [(0, 0, 2, 1, 0.7)],
        [(0, 0, 1, 2, 0.7)],
        [TILE],
    ),
    Idea(
        "cuda_unrolled", "Load the next tile while multiplying", [TILE, NEXT], [TILE, BELOW], [TILE]
    ),
    Idea(
        "cuda_best",
        "Let counters and a search choose the rest",
        [TILE, NEXT],
        [TILE, BELOW],
        [TILE],
    ),
    Idea(
        "triton_block_pointers_3",
        "Write the kernel in tiles, for the tensor cores",
        [(0, 0, 2, 1, 0.7)],
        [(0, 0, 1, 4, 0.7)],
        [(0, 0, 2, 4, 0.7)],
    ),
    Idea(
        "triton_swizzled",
        "Run those programs together that share data in the cache",
        [(0, 0, 3, 4, 0.25)],
        [(0, 0, 4, 3, 0.25)],
        [(0, 0, 3, 3, 0.7)],
    ),
    Idea(
        "triton_persistent",
        "Let hardware copy the tiles, and let programs stay for the next one",
        [TILE, NEXT],
        [TILE, BELOW],
        [TILE, NEXT],
    ),
    Idea("triton_best", "Choose the kernel by the shape", [TILE], [TILE], [TILE, NEXT, BELOW]),
)


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
