"""Tables, shown as HTML or as aligned text, and counts in words."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping, Sequence
from typing import Any


class Table:
    """Rows, shown as HTML by a notebook and as aligned text elsewhere."""

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
                f'<{tag} style="{_style(cell, numeric, tag)}">{_marked(cell)}</{tag}>'
                for cell, numeric in zip(cells, self.numeric, strict=True)
            )

        body = "".join(f"<tr>{line(cells, 'td')}</tr>" for cells in self.cells)
        head = f"<thead><tr>{line(self.columns, 'th')}</tr></thead>"
        return f'<div class="scroll"><table>{head}<tbody>{body}</tbody></table></div>'


def table(rows: Sequence[Mapping[str, Any]], columns: Sequence[str] | None = None) -> Table:
    """Return a table of `rows`, which map column titles to values.

    `columns` selects and orders the columns; None takes those of the first row. Floats are shown to
    three significant digits. Raises ValueError if a row lacks a column.
    """
    return Table(rows, columns)


def plural(count: int, noun: str) -> str:
    """Return a count with its noun: "1 sector", "2 sectors", "1,024 sectors"."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _marked(cell: str) -> str:
    """Return a cell as HTML; what stands between backticks is code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(cell))


def _style(cell: str, numeric: bool, tag: str) -> str:
    # On a phone, short cells scroll instead of breaking into several lines.
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
