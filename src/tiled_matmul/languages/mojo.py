"""Mojo: kernels in the language of the puzzle that chapter 5 begins with, as products.

Its compiler makes PTX on a machine without a GPU, and is not needed where a product runs. What it
needs is in a virtual environment of its own, about 1 GB: `make languages`.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

from tiled_matmul.languages.abroad import Abroad

TARGET = "sm_80"  # of all code that is newer than asynchronous copies
MANGLED = re.compile(r"\.entry\s+([\w$]+)")


class Mojo(Abroad):
    """Mojo, whose kernels are text."""

    def untraced(self) -> str:
        return "is written in Mojo; tiled_matmul.microscope.ptx runs its product, from Python"

    def made(self, source: Path, constants: Mapping[str, int], python: Path) -> str:
        """Return the product's text of a source, by the compiler beside `python`.

        Its kernel is named after the source. Raises RuntimeError with the compiler's log.
        """
        from tiled_matmul.kit import products

        defined = [x for name, value in constants.items() for x in ("-D", f"{name}={value}")]
        command = [str(python.parent / "mojo"), "run", *defined, "-D", f"TARGET={TARGET}"]
        ran = subprocess.run(
            [*command, str(source)], capture_output=True, text=True, env=os.environ | {"CI": "1"}
        )
        if ran.returncode or ".entry" not in ran.stdout:
            raise RuntimeError(f"Mojo does not compile {source.name}:\n{ran.stderr[-3000:]}")
        (mangled,) = set(MANGLED.findall(ran.stdout))
        head = products.head_of(source, self.compiler(), constants, TARGET)
        return f"{head}\n{ran.stdout.strip()}\n".replace(mangled, source.stem)


MOJO = Mojo(
    name="mojo",
    title="Mojo",
    simulator="the course's interpreter of PTX",
    graphs=True,
)


def kernel_in(text: str, name: str) -> str:
    """Return a function of a file in Mojo, as it is written. Raises ValueError for none."""
    found = re.search(rf"^def {name}\(.*?(?=^\S|\Z)", text, re.M | re.S)
    if not found:
        raise ValueError(f"there is no `def {name}(` in this file in Mojo")
    return found[0].rstrip() + "\n"
