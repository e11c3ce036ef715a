"""Write a lock of the newest versions that fit together: `tools/newest.py FILE`.

The ranges are those of pyproject.toml, but the upper bounds of OPEN are dropped: what lies beyond
them is to be tried. pip resolves; nothing is installed. The lock is for the machine that it was
written on, and for its Python.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# numpy keeps its bound: pip would take 2.5 where Python is new enough, as no package forbids it.
OPEN = ("numba", "numba-cuda", "torch", "triton")
EXTRAS = ("book", "test", "lab")
HEAD = """\
# The environment of `make test-newest`: requirements.lock, but with the newest versions of numba,
# numba-cuda, torch and triton that this machine's package index has. numpy stays below 2.5, as in
# pyproject.toml: numba-cuda 0.30.4 installs with numpy 2.5, and then compiles no kernel.
# `make newest-lock` resolves all of them anew.
"""


def wanted(project: dict) -> list[str]:
    """Return the requirements of a project and its EXTRAS, those of OPEN without upper bounds."""
    lines = project["dependencies"] + sum((project["optional-dependencies"][x] for x in EXTRAS), [])
    return [re.sub(r",<[\d.]+", "", x) if re.split(r"[<>=]", x)[0] in OPEN else x for x in lines]


def pins(report: dict) -> list[str]:
    """Return the lines of a lock for a report of `pip install --report`.

    A build's own mark, as in 2.13.0+cpu, is left out: the index of the next machine may have
    another build.
    """
    found = {}
    for item in report["install"]:
        name = re.sub(r"[-_.]+", "-", item["metadata"]["name"]).lower()
        found[name] = f"{name}=={item['metadata']['version'].partition('+')[0]}"
    return [found[name] for name in sorted(found)]


def resolved(requirements: list[str]) -> dict:
    """Return pip's report. Raises CalledProcessError, after pip's message, if nothing fits."""
    command = [sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed", "--quiet"]
    command += ["--report", "-", "-c", str(ROOT / "requirements-cuda.lock"), *requirements]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout)


def main(lock: Path) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    # The extra brings CUDA's compiler to a machine without a GPU.
    lines = [re.sub(r"^numba-cuda(?=[<>=])", "numba-cuda[cu13]", x) for x in wanted(project)]
    made = pins(resolved(lines))
    made = [re.sub(r"^numba-cuda(?==)", "numba-cuda[cu13]", line) for line in made]
    lock.write_text(HEAD + "\n".join(made) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
