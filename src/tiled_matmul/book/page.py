"""The functions that notebooks call: set-up, tables, computed sentences, source listings."""

from __future__ import annotations

import ast
import html
import inspect
import re
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tiled_matmul.kit import backend
from tiled_matmul.kit.changes import body, changed_lines
from tiled_matmul.ladder import ABROAD, TWINS, twin_of
from tiled_matmul.languages import TRITON
from tiled_matmul.machine import device
from tiled_matmul.machine.device import Peak
from tiled_matmul.measure import abroad, peaks
from tiled_matmul.microscope.table import Table, table
from tiled_matmul.microscope.written import function_of
from tiled_matmul.problem import Problem, as_layout

REFERENCE = "H200"


@dataclass(frozen=True)
class Machine:
    """The machine that runs this notebook: `gpu` says whether it has a GPU, `name` names that."""

    gpu: bool
    name: str

    @property
    def device(self) -> str:
        """The device for a kernel's torch tensors: "cuda", or "cpu" for the simulators."""
        return "cuda" if self.gpu else "cpu"

    def pick(self, *, gpu: Any, simulator: Any) -> Any:
        """Return `gpu` on a GPU, and `simulator`, such as a smaller size, in the simulators."""
        return gpu if self.gpu else simulator


def setup() -> Machine:
    """Choose the back end, print the machine's name, and return the machine.

    Raises BackendError as `backend.select`.
    """
    chosen = backend.select()
    if chosen.on_gpu:
        major, minor = chosen.gpu.capability
        print(f"GPU: {chosen.gpu.name}, compute capability {major}.{minor}. Kernels run on it.")
        return Machine(True, chosen.gpu.name)
    print(f"No GPU is used: {chosen.reason}.")
    if chosen.name == "simulator":
        print("GPU kernels run in simulators here: right, slow, and without a clock.")
    else:
        print("Kernels are compiled here. Of launches, only those of the course's CUDA rungs work.")
    if TRITON.missing():
        print(f"{TRITON.missing()}.")
    return Machine(False, "simulators")


class Text:
    """Markdown that a cell computes, so that its numbers are those of this machine."""

    def __init__(self, markdown: str) -> None:
        self.markdown = markdown

    def __repr__(self) -> str:
        return self.markdown

    def _repr_markdown_(self) -> str:
        return self.markdown


def peak_rates() -> Peak:
    """Return the peak rates of this machine's GPU, or without one those of the reference GPU."""
    if backend.select().on_gpu:
        return peaks.current()
    return device.PEAKS[REFERENCE]


def say(markdown: str) -> Text:
    """Return Markdown that a notebook shows as text if it is the last expression of a cell."""
    return Text(markdown)


def whole_numbers(m: int, n: int, k: int, dtype: str = "float32", layout: str = "nn") -> tuple:
    """Return a (M, K) and b (K, N) of small whole numbers, whose product has no rounding errors.

    They are torch tensors on this notebook's device, stored as `layout` says: "nn", "nt", "tn" or
    "tt", with "t" for a matrix stored column by column. Raises ValueError as `Problem`.
    """
    device = "cuda" if backend.select().on_gpu else "cpu"
    a, b = Problem(m, n, k, dtype).inputs(kind="integers", device="cpu")
    return as_layout(a.to(device), b.to(device), layout)


def traced(
    matmul: Callable,
    m: int,
    n: int | None = None,
    k: int | None = None,
    dtype: str = "float32",
    layout: str = "nn",
    blocks: Sequence[tuple[int, int]] | None = None,
    **options: Any,
) -> Any:
    """Return the trace of one product of whole numbers: of all its blocks, or of `blocks` only.

    `matmul` is that of a rung in CUDA; `options` are passed on to it. Without N and K the product
    is M × M × M.
    """
    from tiled_matmul.microscope.cuda import watch

    with watch(blocks=blocks) as traces:
        matmul(*whole_numbers(m, n or m, k or m, dtype, layout), **options)
    return traces[0]


def ladder_table(records: Sequence[Any]) -> Table:
    """Return the ladder as measured: one line a record, as `bench` or `measure` returns them.

    Rungs that `measure` left out come last, with the reason.
    """
    from tiled_matmul.plots.rates import share_text

    left_out = getattr(records, "left_out", {}).items()
    blank = {"shape": "", "time (ms)": "", "GFLOP/s": ""}
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
        + [{"rung": name, **blank, "against the library": reason} for name, reason in left_out]
    )


class Listing:
    """Code, highlighted as `lexer` ("python" or "diff") if the front end shows HTML."""

    def __init__(self, code: str, lexer: str = "python") -> None:
        self.code = code
        self.lexer = lexer

    def __repr__(self) -> str:
        return self.code

    def _repr_html_(self) -> str:
        from pygments import highlight
        from pygments.formatters import HtmlFormatter
        from pygments.lexers import get_lexer_by_name

        return highlight(self.code, get_lexer_by_name(self.lexer), HtmlFormatter())


def first_lines(code: str, *parts: str) -> Listing:
    """Return for each of `parts` the first line of compiled code that contains it.

    Long lists of registers are shortened, notes on source lines are removed, and lines are wrapped
    to fit the page. Raises ValueError if no line contains a part.
    """
    shown = []
    for part in parts:
        line = next((line for line in code.splitlines() if part in line), None)
        if line is None:
            raise ValueError(f"no line contains {part!r}")
        line = re.sub(r" loc\(#\w+\)$|^/\*\w+\*/|//.*", "", line.strip())
        line = re.sub(r"\{(%\w+)(?:, ?%\w+){8,}, ?(%\w+)\}", r"{\1, …, \2}", line)
        line = " ".join(line.split())
        shown += textwrap.wrap(line, 84, subsequent_indent="    ", break_on_hyphens=False)
    return Listing("\n".join(shown), "text")


def show_source(function: Callable, part: str | None = None) -> Listing:
    """Return the source of a function or kernel, including its decorators.

    With `part`, only the statements whose first line begins with that text, whole and with the
    indentation removed. Raises ValueError if there is none.
    """
    source = textwrap.dedent(inspect.getsource(function_of(function)))
    source = re.sub(r"  # noqa: \w+$", "", source, flags=re.M)  # for a linter, not for readers
    if part is None:
        return Listing(source)
    lines = source.splitlines()
    found = [
        (node.lineno - 1, node.end_lineno)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.stmt) and lines[node.lineno - 1].strip().startswith(part)
    ]
    if not found:
        raise ValueError(f"no statement of {function_of(function).__name__} begins with {part!r}")
    shown = [textwrap.dedent("\n".join(lines[first:last])) for first, last in sorted(found)]
    return Listing("\n".join(shown))


class Folded(Listing):
    """Code that a reader unfolds, under a `title`."""

    def __init__(self, code: str, lexer: str, title: str) -> None:
        super().__init__(code, lexer)
        self.title = title

    def _repr_html_(self) -> str:
        summary = f"<summary>{html.escape(self.title)}</summary>"
        return f"<details>{summary}\n{super()._repr_html_()}</details>"


def show_twin(rung: str) -> Folded:
    """Return the kernel of a rung, such as "cuda_coalesced", in CUDA C++: folded.

    It is read and not compiled, so it needs no NVRTC. Raises ValueError for a rung without a twin.
    """
    twin = twin_of(rung)
    if twin is None:
        names = ", ".join(each.rung.name for each in TWINS)
        raise ValueError(f"{rung!r} has no twin in CUDA C++; these have: {names}")
    return Folded(twin.text.rstrip(), "cuda", f"The same kernel in {twin.language.title}")


def show_abroad(name: str) -> Listing:
    """Return a rung's kernel in another language: its file without the text at the top.

    Raises ValueError for a rung in a language of the course's own.
    """
    known = {each.name: each for each in ABROAD}
    if name not in known:
        raise ValueError(f"{name!r} is in no other language; these are: {', '.join(known)}")
    source = known[name].home.SOURCE
    text = re.sub(r'\A""".*?"""\n+', "", source.read_text(encoding="utf-8"), flags=re.S)
    text = text.partition("\ndef main():")[0].rstrip()
    return Listing(text, "mojo" if source.suffix == ".mojo" else "python")


def show_written(file: str) -> Listing:
    """Return the kernel in Triton that another language wrote, such as "helion_tile-128-256-64".

    Its comments are left out, and lines are wrapped to fit the page. Raises ValueError for a
    product that no such text lies beside.
    """
    path = abroad.PRODUCTS / f"{file}.triton.txt"
    if not path.is_file():
        raise ValueError(f"no text in Triton lies beside a product {file!r}")
    text = path.read_text(encoding="utf-8")
    kernel = text[text.index("@triton.jit") :].partition("\n\ndef ")[0]
    shown = []
    for line in kernel.splitlines():
        if line.strip() and not line.strip().startswith("#"):
            indent = " " * (len(line) - len(line.lstrip()) + 8)
            shown += textwrap.wrap(line, 88, subsequent_indent=indent, break_on_hyphens=False)
    return Listing("\n".join(shown))


def source_size(function: Callable) -> tuple[int, int]:
    """Return the lines of a function or kernel without comments, and its number of operators."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function_of(function))))
    operators = (ast.BinOp, ast.Compare, ast.BoolOp)
    count = sum(isinstance(node, operators) for node in ast.walk(tree))
    return len(ast.unparse(tree).splitlines()), count


def changes(before: Callable, after: Callable, indents: bool = True) -> Listing:
    """Return the diff of the bodies of two functions or kernels.

    Removed lines begin with "-", added lines with "+". "..." stands for lines that both have; not
    with `indents`, also where they differ in indentation or in a comment only.
    """
    key = str if indents else lambda line: line.partition("  # ")[0].strip()
    bodies = (body(each) for each in (before, after))
    if not indents:
        bodies = ([line.removeprefix("    ") for line in lines] for lines in bodies)
    shown = changed_lines(*bodies, key)
    return Listing("\n".join(shown) or "nothing differs", "diff")
