#!/usr/bin/env bash
# Package: nbval 0.11.0, ipykernel 7.4.0
# Date: 2026-11-27
# Behaviour: Strict nbval does not compare PNG outputs: a stored picture may be another one. An SVG
#     is compared.
# Guess: --nbval compares every output of every cell.
# Seen:
#     a stored PNG that differs: 1 passed
#     a stored SVG that differs: 1 failed

source "$(dirname "$0")/lib.sh"
install nbval nbval==0.11.0 ipykernel==7.4.0
judge "$(run nbval <<'END'
import base64
import re
import struct
import subprocess
import sys
import zlib

import nbformat
from nbformat.v4 import new_code_cell, new_notebook, new_output


def png(grey):
    """Return a picture of one pixel."""
    parts = [(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0))]
    parts += [(b"IDAT", zlib.compress(bytes([0, grey]))), (b"IEND", b"")]
    made = b"\x89PNG\r\n\x1a\n"
    for kind, data in parts:
        made += struct.pack(">I", len(data)) + kind + data
        made += struct.pack(">I", zlib.crc32(kind + data))
    return base64.b64encode(made).decode()


svg = '<svg xmlns="http://www.w3.org/2000/svg"><circle r="{}"/></svg>'
for name, kind, made, stored in (
    ("PNG", "image/png", png(0), png(255)),
    ("SVG", "image/svg+xml", svg.format(1), svg.format(2)),
):
    output = new_output("display_data", {kind: stored})
    cell = new_code_cell(f"display({{{kind!r}: {made!r}}}, raw=True)", execution_count=1)
    cell.outputs = [output]
    notebook = new_notebook(cells=[cell])
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3"}
    nbformat.write(notebook, "example.ipynb")
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--nbval", "example.ipynb"]
    said = subprocess.run(command, capture_output=True, text=True).stdout
    print(f"a stored {name} that differs: {re.search(r'1 (?:passed|failed)', said)[0]}")
END
)"
