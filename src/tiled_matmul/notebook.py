"""What the notebooks call: the set-up, tables, sentences with computed numbers, source listings."""

from __future__ import annotations

import html
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tiled_matmul import backend


@dataclass(frozen=True)
class Machine:
    """The machine under this notebook. `name` is the GPU's, or says that simulators run."""

    gpu: bool
    name: str

    @property
    def device(self) -> str:
        """Where torch tensors for a kernel belong: "cuda", or "cpu" for the simulators."""
        return "cuda" if self.gpu else "cpu"

    def pick(self, *, gpu: Any, simulator: Any) -> Any:
        """Return the first on a GPU and the second in the simulators, where sizes must be small."""
        return gpu if self.gpu else simulator


def setup() -> Machine:
    """Choose the back end, say what machine this is, and return it. Raises BackendError."""
    chosen = backend.select()
    if chosen.on_gpu:
        major, minor = chosen.gpu.capability
        print(f"GPU: {chosen.gpu.name}, compute capability {major}.{minor}. Kernels run on it.")
        return Machine(True, chosen.gpu.name)
    print(f"No GPU is used: {chosen.reason}.")
    print("GPU kernels run in simulators here: right, slow, and without a clock.")
    return Machine(False, "simulators")


class Text:
    """Markdown made by a cell, so that its numbers are this machine's own."""

    def __init__(self, markdown: str) -> None:
        self.markdown = markdown

    def __repr__(self) -> str:
        return self.markdown

    def _repr_markdown_(self) -> str:
        return self.markdown


def say(markdown: str) -> Text:
    """Return a sentence to be shown as text: the last expression of a cell."""
    return Text(markdown)


class Table:
    """Rows shown as HTML where that is possible and as aligned text elsewhere."""

    def __init__(self, rows: Sequence[Mapping[str, Any]], columns: Sequence[str] | None) -> None:
        self.columns = list(columns or (rows[0] if rows else ()))
        for row in rows:
            missing = [column for column in self.columns if column not in row]
            if missing:
                raise ValueError(f"a table row lacks {missing}; it has {list(row)}")
        self.numeric = [all(_is_number(row[c]) for row in rows) for c in self.columns]
        self.cells = [[_cell(row[column]) for column in self.columns] for row in rows]

    def __repr__(self) -> str:
        lines = [self.columns, *self.cells]
        widths = [max(len(line[i]) for line in lines) for i in range(len(self.columns))]
        return "\n".join(
            "  ".join(
                text.rjust(width) if numeric else text.ljust(width)
                for text, width, numeric in zip(line, widths, self.numeric, strict=True)
            ).rstrip()
            for line in lines
        )

    def _repr_html_(self) -> str:
        def line(cells: Sequence[str], tag: str) -> str:
            return "".join(
                f'<{tag} style="{_style(cell, numeric, tag)}">{html.escape(cell)}</{tag}>'
                for cell, numeric in zip(cells, self.numeric, strict=True)
            )

        body = "".join(f"<tr>{line(cells, 'td')}</tr>" for cells in self.cells)
        head = f"<thead><tr>{line(self.columns, 'th')}</tr></thead>"
        return f'<div class="scroll"><table>{head}<tbody>{body}</tbody></table></div>'


def table(rows: Sequence[Mapping[str, Any]], columns: Sequence[str] | None = None) -> Table:
    """Return a table of `rows`, dictionaries by column title; `columns` picks and orders them.

    Floats are shown to three significant digits. Raises ValueError if a row lacks a column.
    """
    return Table(rows, columns)


def ladder_table(records: Sequence[Any]) -> Table:
    """Return the ladder as measured: one line a record, as `bench` returns them."""
    from tiled_matmul.plots.rates import share_text

    return table(
        [
            {
                "rung": record.rung,
                "shape": f"{record.m}×{record.n}×{record.k}",
                "time (ms)": record.time_ms,
                "GFLOP/s": record.tflops * 1000,
                "against the library": (
                    "the baseline" if record.rung == record.baseline else share_text(record)
                ),
            }
            for record in records
        ]
    )


class Source:
    """A function's source, highlighted where the front end can."""

    def __init__(self, code: str) -> None:
        self.code = code

    def __repr__(self) -> str:
        return self.code

    def _repr_html_(self) -> str:
        from pygments import highlight
        from pygments.formatters import HtmlFormatter
        from pygments.lexers import PythonLexer

        return highlight(self.code, PythonLexer(), HtmlFormatter())


def show_source(function: Callable) -> Source:
    """Return the source of a function or a compiled kernel, decorators included."""
    return Source(inspect.getsource(getattr(function, "py_func", function)))


def _style(cell: str, numeric: bool, tag: str) -> str:
    # On a phone, short cells had rather scroll out of sight than be broken into pieces.
    wrap = ";white-space:nowrap" if tag == "td" and len(cell) <= 24 else ""
    return f"text-align:{'right' if numeric else 'left'}{wrap}"


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.3g}" if abs(value) < 999.5 else f"{value:,.0f}"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return str(value)
