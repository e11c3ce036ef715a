#!/usr/bin/env bash
# Package: nbval 0.11.0, ipykernel 7.4.0
# Date: 2026-11-27
# Behaviour: For nbval, a cell with the tag raises-exception passes if it raises nothing. The tag
#     means that it may raise.
# Guess: As with pytest.raises, a cell that no longer raises fails.
# Seen:
#     tag raises-exception, 1 / 0: 1 passed
#     tag raises-exception, 1 / 1: 1 passed
#     no tag, 1 / 0: 1 failed

source "$(dirname "$0")/lib.sh"
install nbval nbval==0.11.0 ipykernel==7.4.0
judge "$(run nbval <<'END'
import re
import subprocess
import sys

import nbformat
from nbformat.v4 import new_code_cell, new_notebook

for tags, source in ((["raises-exception"], "1 / 0"), (["raises-exception"], "1 / 1"), ([], "1 / 0")):
    cell = new_code_cell(f"x = {source}", execution_count=1, metadata={"tags": tags})
    notebook = new_notebook(cells=[cell])
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3"}
    nbformat.write(notebook, "example.ipynb")
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--nbval-lax", "example.ipynb"]
    said = subprocess.run(command, capture_output=True, text=True).stdout
    tag = f"tag {tags[0]}" if tags else "no tag"
    print(f"{tag}, {source}: {re.search(r'1 (?:passed|failed)', said)[0]}")
END
)"
