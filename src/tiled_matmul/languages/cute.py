"""CuTe DSL: CUTLASS's layouts, copies and multiplications, written in Python, as products.

A host function makes the tensor maps and launches the kernel. Of its arguments the machine code
keeps what `makers/make_cute.py` describes; here the course makes the maps and launches.
"""

from __future__ import annotations

from tiled_matmul.languages.abroad import CubinLanguage

CUTE = CubinLanguage(
    name="cute", title="CuTe DSL", package="nvidia-cutlass-dsl", target="sm_90a", graphs=True
)
