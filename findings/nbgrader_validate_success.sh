#!/usr/bin/env bash
# Package: nbgrader 0.9.5
# Date: 2026-11-27
# Behaviour: `nbgrader validate` says "Success" although an assert fails, if the assert's cell is no
#     autograded test: an ordinary cell, or one that is only locked. Its exit code is 0 either way.
# Guess: A notebook in which a cell fails is not valid, and the exit code says so.
# Seen:
#     ordinary cell: Success! exit code 0
#     locked cell: Success! exit code 0
#     autograded test: VALIDATION FAILED exit code 0

source "$(dirname "$0")/lib.sh"
install nbgrader nbgrader==0.9.5
judge "$(run nbgrader <<'END'
import re
import subprocess

import nbformat
from nbformat.v4 import new_code_cell, new_notebook


def mark(name, **values):
    """Return nbgrader's metadata of a cell."""
    kind = {"grade": False, "solution": False, "locked": False, "task": False, "schema_version": 3}
    return {"nbgrader": kind | {"grade_id": name} | values}


for name, metadata in (
    ("ordinary cell", {}),
    ("locked cell", mark("test", locked=True)),
    ("autograded test", mark("test", locked=True, grade=True, points=1)),
):
    answer = new_code_cell("def add(a, b):\n    return a - b", metadata=mark("answer", solution=True))
    test = new_code_cell("assert add(1, 2) == 3", metadata=metadata)
    notebook = new_notebook(cells=[answer, test])
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3"}
    nbformat.write(notebook, "example.ipynb")
    command = ["nbgrader", "validate", "example.ipynb"]
    done = subprocess.run(command, capture_output=True, text=True)
    found = re.search(r"Success!|VALIDATION FAILED", done.stdout + done.stderr)
    print(f"{name}: {found[0] if found else done.stdout} exit code {done.returncode}")
END
)"
