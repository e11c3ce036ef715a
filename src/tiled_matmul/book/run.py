"""Run notebooks and store their outputs with a stamp of the machine, the versions and the code."""

from __future__ import annotations

import copy
import json
import re
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tiled_matmul import ROOT
from tiled_matmul.book.cells import code_hash, synchronise
from tiled_matmul.book.files import (
    NotebookError,
    notebook_text,
    parse_notebook,
    read_text,
)
from tiled_matmul.book.generated import PACKAGES, stamp_fault
from tiled_matmul.book.markers import IGNORE, is_checked
from tiled_matmul.files import replace_text

CELL_TIMEOUT = 900
PLACE_OF_TIMES = re.compile(r"On an? (?:GPU|H100)\b")  # what a cell of times says without a GPU
# Run in the notebook's own kernel after its last cell, so that the stamp describes that process.
QUESTION = "from tiled_matmul.book.run import this_machine as _m; print(_m())"


class RunError(RuntimeError):
    """A cell failed; the message names the notebook and the cell and quotes the error."""


def this_machine() -> str:
    """Return JSON: gpu, driver, cpu and versions of the calling process's machine."""
    from tiled_matmul.measure.provenance import this_process

    return json.dumps(this_process(PACKAGES[1:]))


def run(
    path: Path,
    *,
    root: Path = ROOT,
    timeout: int = CELL_TIMEOUT,
    on_progress: Callable[[int, int], None] = lambda cell, cells: None,
) -> list[str]:
    """Refresh, run and stamp the notebook at `path`; return notes about its outputs.

    The cells run in the notebook's folder, in the kernel "python3" of this Python, for at most
    `timeout` seconds each. `on_progress(i, n)` is called before code cell i of n. After the last
    cell the file is replaced. Raises RunError if a cell fails, and NotebookError if the file is not
    a notebook; the file is then unchanged.
    """
    before = read_text(path)
    notebook = parse_notebook(before, path, upgrade=True)
    synchronise(notebook, path, root)
    machine, seconds = _execute(notebook, path, timeout, on_progress)
    notebook.metadata.setdefault("tiled_matmul", {})["stamp"] = {
        **machine,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "seconds": round(seconds, 1),
        "code_hash": code_hash(notebook),
    }
    _replace(path, before, notebook)
    return list(_notes(_code(notebook), path, machine))


def refresh(
    path: Path,
    *,
    timeout: int = CELL_TIMEOUT,
    on_progress: Callable[[int, int], None] = lambda cell, cells: None,
) -> tuple[list[int], list[int]]:
    """Run the notebook at `path` and store what must be the same everywhere.

    These are the outputs that strict nbval compares: after another measurement, tables and
    sentences that are made of records. All else stays as it was, the stamp too, so this needs no
    GPU. An output with warnings or errors of this machine is not stored, nor one that says where a
    GPU's times would stand if they stand there: such a cell lacks the tag. Returns the numbers,
    from 1 on, of the cells with new outputs, and of those that differ and were not stored. Raises
    RunError if a cell fails or if the stamp does not fit the code, and NotebookError if the file is
    not a notebook; the file is then unchanged.
    """
    before = read_text(path)
    notebook = parse_notebook(before, path, upgrade=True)
    if fault := stamp_fault(notebook):
        raise RunError(f"{path}: {fault}")
    again = copy.deepcopy(notebook)
    _execute(again, path, timeout, on_progress)
    changed, left = [], []
    for index, cell in _code(notebook):
        made = again.cells[index].outputs
        compared = is_checked(cell.source) or IGNORE not in cell.metadata.get("tags", [])
        if not compared or _comparable(cell.outputs) == _comparable(made):
            continue
        if any(output.get("name") == "stderr" for output in made) or (
            PLACE_OF_TIMES.search(str(made)) and not PLACE_OF_TIMES.search(str(cell.outputs))
        ):
            left.append(index + 1)
            continue
        for output in made:
            if "execution_count" in output:
                output.execution_count = cell.execution_count
        cell.outputs = made
        changed.append(index + 1)
    if changed:
        _replace(path, before, notebook)
    return changed, left


def _comparable(outputs: list) -> list:
    """Return outputs without their numbers of execution."""
    return [{name: part for name, part in x.items() if name != "execution_count"} for x in outputs]


def _code(notebook: Any) -> list[tuple[int, Any]]:
    return [(i, cell) for i, cell in enumerate(notebook.cells) if cell.cell_type == "code"]


def _replace(path: Path, before: str, notebook: Any) -> None:
    if read_text(path) != before:
        raise RunError(f"{path}: the file was changed during the run; its outputs were dropped")
    replace_text(path, notebook_text(notebook))


def _execute(
    notebook: Any, path: Path, timeout: int, on_progress: Callable[[int, int], None]
) -> tuple[dict, float]:
    """Run the cells of a notebook; return what `this_machine` says there, and the seconds."""
    from nbclient.exceptions import CellControlSignal, CellTimeoutError, DeadKernelError
    from nbformat.v4 import new_code_cell

    code = _code(notebook)
    for _, cell in code:
        cell.outputs, cell.execution_count = [], None
        cell.metadata.pop("execution", None)
    client = client_of(notebook, path, timeout)
    began = time.monotonic()
    question = new_code_cell(QUESTION)
    index = len(notebook.cells)
    with client.setup_kernel():
        try:
            for number, (index, cell) in enumerate(code, start=1):
                on_progress(number, len(code))
                client.execute_cell(cell, index, execution_count=number)
            seconds = time.monotonic() - began
            # nbclient runs only cells of the notebook, so this one is added and removed again.
            notebook.cells.append(question)
            client.execute_cell(question, len(notebook.cells) - 1, store_history=False)
            notebook.cells.pop()
        except CellTimeoutError:
            raise RunError(f"{path}: cell {index + 1}: still running after {timeout} s") from None
        except DeadKernelError:
            raise RunError(f"{path}: cell {index + 1}: the kernel died") from None
        except CellControlSignal as error:
            raise RunError(f"{path}: cell {index + 1}: {brief(error)}") from None
    text = "".join(o.text for o in question.outputs if o.get("name") == "stdout")
    return json.loads(text), seconds


def client_of(notebook: Any, path: Path, timeout: int) -> Any:
    """Return a client that runs a notebook in its own folder, with the kernel of this Python."""
    from nbclient import NotebookClient

    return NotebookClient(
        notebook,
        timeout=timeout,
        kernel_name="python3",
        resources={"metadata": {"path": str(path.resolve().parent)}},
        record_timing=False,
        store_widget_state=False,
        coalesce_streams=True,
        # The kernel's own warnings would be mixed with the progress.
        extra_arguments=["--log-level=ERROR"],
    )


def brief(error: Any) -> str:
    """Return the error's name and the first lines of its message."""
    name, message = getattr(error, "ename", type(error).__name__), getattr(error, "evalue", error)
    lines = str(message).strip().splitlines() or [""]
    return "\n    ".join([f"{name}: {lines[0]}", *lines[1:6]])


def _notes(code: list, path: Path, machine: dict):
    if not machine["gpu"]:
        yield f"{path}: ran without a GPU, so its outputs are not for the book"
    for index, cell in code:
        for output in cell.outputs:
            if output.output_type == "stream" and output.name == "stderr":
                first = (output.text.strip() or "(blank)").splitlines()[0]
                yield f"{path}: cell {index + 1} wrote to stderr: {first[:120]}"


def sync(path: Path, root: Path = ROOT) -> bool:
    """Refresh the generated cells of the notebook at `path`; return whether the file changed.

    Raises NotebookError if it is not a notebook, or for a kernel cell whose source is missing.
    """
    before = read_text(path)
    notebook = parse_notebook(before, path, upgrade=True)
    synchronise(notebook, path, root)
    after = notebook_text(notebook)
    if after == before:
        return False
    try:
        parse_notebook(after, path)
    except NotebookError as error:
        raise NotebookError(f"{error} (after the refresh; the file was left as it was)") from None
    replace_text(path, after)
    return True
