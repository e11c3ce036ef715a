"""Helion: PyTorch on tiles, which Helion writes as a program in Triton, as products.

Beside a product lies what Helion wrote, `NAME.triton.txt`. Helion asks the machine's GPU what it
can do, and without one it replaces tensor descriptors by pointers; `makers/make_helion.py` answers
for an H200. Triton compiles for sizes and strides that are multiples of 16, as it does at a launch
with such sizes. The kernel takes two more addresses, of Triton's scratch memory, which it does not
use.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tiled_matmul.languages.abroad import CubinLanguage, laid_out

WRITTEN = ".triton.txt"


class Helion(CubinLanguage):
    """Helion, which also shows its program in Triton."""

    def files(
        self, source: Path, constants: Mapping[str, Any], python: Path
    ) -> Mapping[str, bytes]:
        files = super().files(source, constants, python)
        told = json.loads(files[".json"])
        written = told.pop("triton")
        return {**files, ".json": laid_out(told).encode(), WRITTEN: written.encode()}


HELION = Helion(name="helion", title="Helion", target="sm_90a", graphs=True)
