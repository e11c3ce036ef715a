"""What the notebooks call: the set-up, tables, sentences with computed numbers, source listings."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tiled_matmul.kit import backend
from tiled_matmul.kit.changes import body, changed_lines
from tiled_matmul.machine import device
from tiled_matmul.machine.device import Peak
from tiled_matmul.measure import peaks
from tiled_matmul.microscope.table import Table, table
from tiled_matmul.microscope.written import function_of

REFERENCE = "H200"


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


def peak_rates() -> Peak:
    """Return the peak rates of this machine's GPU; without one those of the reference GPU."""
    if backend.select().on_gpu:
        return peaks.current()
    return device.PEAKS[REFERENCE]


def say(markdown: str) -> Text:
    """Return a sentence to be shown as text: the last expression of a cell."""
    return Text(markdown)


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
    return Source(inspect.getsource(function_of(function)))


class Changes(Source):
    """Lines that differ between two functions: "-" before those that go, "+" before new ones."""

    def _repr_html_(self) -> str:
        from pygments import highlight
        from pygments.formatters import HtmlFormatter
        from pygments.lexers import DiffLexer

        return highlight(self.code, DiffLexer(), HtmlFormatter())


def changes(before: Callable, after: Callable) -> Changes:
    """Return what differs between the sources of two functions or kernels, their `def`s left out.

    A line with a number of dots stands for lines that both have.
    """
    return Changes("\n".join(changed_lines(body(before), body(after))) or "nothing differs")
