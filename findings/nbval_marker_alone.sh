#!/usr/bin/env bash
# Package: nbval 0.11.0, ipykernel 7.4.0
# Date: 2026-11-27
# Behaviour: nbval knows its marker only if nothing else stands on the line. With a word more, or
#     after code, it is a comment, and --nbval-lax compares nothing.
# Guess: A comment that begins with the marker is the marker, as for noqa or type: ignore.
# Seen:
#     "# NBVAL_CHECK_OUTPUT": 1 failed
#     "# NBVAL_CHECK_OUTPUT: the sum": 1 passed
#     "print(2)  # NBVAL_CHECK_OUTPUT": 1 passed

source "$(dirname "$0")/lib.sh"
install nbval nbval==0.11.0 ipykernel==7.4.0
judge "$(run nbval <<'END'
import re
import subprocess
import sys

import nbformat
from nbformat.v4 import new_code_cell, new_notebook, new_output

for line in ("# NBVAL_CHECK_OUTPUT", "# NBVAL_CHECK_OUTPUT: the sum", "print(2)  # NBVAL_CHECK_OUTPUT"):
    source = line if "print" in line else f"{line}\nprint(2)"
    stored = [new_output("stream", name="stdout", text="1\n")]  # but it prints 2
    notebook = new_notebook(cells=[new_code_cell(source, execution_count=1, outputs=stored)])
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3"}
    nbformat.write(notebook, "example.ipynb")
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--nbval-lax", "example.ipynb"]
    said = subprocess.run(command, capture_output=True, text=True).stdout
    print(f'"{line}": {re.search(r"1 (?:passed|failed)", said)[0]}')
END
)"
