#!/usr/bin/env bash
# Package: marimo 0.25.2
# Date: 2026-11-27
# Behaviour: `marimo convert` renames a variable that several cells assign. In a loop that adds to a
#     variable of an earlier cell, it renames the left side only, so the sum becomes its last term.
#     `marimo check` finds nothing.
# Guess: The converted notebook prints what the notebook printed, or the conversion says why not.
# Seen:
#     total_1 = total + k
#     the notebook prints 10, the converted one prints 4
#     marimo check: exit code 0

source "$(dirname "$0")/lib.sh"
install marimo marimo==0.25.2
judge "$(run marimo <<'END'
import json
import subprocess
import sys

sources = ["total = 0", "for k in range(5):\n    total += k", "print(total)"]
cells = [
    {"cell_type": "code", "id": f"c{i}", "metadata": {}, "source": source, "outputs": []}
    | {"execution_count": None}
    for i, source in enumerate(sources)
]
notebook = {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cells}
with open("example.ipynb", "w") as file:
    json.dump(notebook, file)
options = {"capture_output": True, "text": True}
subprocess.run(["marimo", "convert", "example.ipynb", "-o", "example.py"], check=True, **options)
with open("example.py") as file:
    print(next(line.strip() for line in file if "total + k" in line or "+= k" in line))
whole = subprocess.run([sys.executable, "-c", "\n".join(sources)], **options).stdout.strip()
converted = subprocess.run([sys.executable, "example.py"], **options).stdout.strip()
print(f"the notebook prints {whole}, the converted one prints {converted}")
code = subprocess.run(["marimo", "check", "example.py"], **options).returncode
print(f"marimo check: exit code {code}")
END
)"
