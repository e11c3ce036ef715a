"""Select where kernels run, and make Numba's CUDA and Triton ready for that place.

The first import of `numba.cuda` or `triton` makes the choice, wherever it stands: `find_spec`
comes before Python's own finders (`tiled_matmul/__init__.py`). If one was imported before the
course, importing the course makes it. So the order of imports does not matter, and no module has to
select before it imports one of the two.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import wraps
from importlib.machinery import ModuleSpec
from types import ModuleType

from tiled_matmul.machine import backend

_ready = False


def select() -> backend.Backend:
    """Return this process's back end; what was imported before the first call is made ready.

    Raises BackendError as `machine.backend.select` does.
    """
    global _ready
    chosen = backend.select()
    if not _ready:
        for library in filter(sys.modules.get, backend.SWITCHES):
            _make_ready(library, chosen)
        _ready = True
    return chosen


def find_spec(
    name: str, path: Sequence[str] | None, target: ModuleType | None, own: object
) -> ModuleSpec | None:
    """Return where `numba.cuda` or `triton` is, so that its import selects the back end first.

    `own` is the finder that asks; it asks the others here. To find a library selects nothing.
    """
    others = [finder for finder in sys.meta_path if finder is not own]
    asked = [finder.find_spec for finder in others if hasattr(finder, "find_spec")]
    spec = next(filter(None, (find(name, path, target) for find in asked)), None)
    if spec is None or spec.loader is None:
        return spec
    execute = spec.loader.exec_module
    if hasattr(execute, "__wrapped__"):  # numba-cuda's finder asks all others, this one too
        return spec

    @wraps(execute)
    def exec_module(module: ModuleType) -> None:
        chosen = backend.select()
        execute(module)
        _make_ready(name, chosen)

    spec.loader.exec_module = exec_module
    return spec


def _make_ready(library: str, chosen: backend.Backend) -> None:
    """Let a library, which has been imported, do its part on the chosen back end."""
    if chosen.name == "simulator" and library == "numba.cuda":
        from tiled_matmul.microscope.cuda import host

        host.install()
    elif chosen.name == "simulator":
        from tiled_matmul.microscope.triton import host

        host.install()
    elif chosen.name == "compiler" and library == "numba.cuda":
        backend.let_device_functions_compile()
