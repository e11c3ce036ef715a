"""What the makers have in common: constants, modules, and the two files that they write.

Imported by the makers beside it, which a language's own Python runs. Their names begin with
`make_`, so that none hides the package that it imports.
"""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import sass


def constants_in(given: Iterable[str]) -> dict[str, str]:
    """Return {CONSTANT: VALUE} of the arguments CONSTANT=VALUE."""
    return dict(each.split("=", 1) for each in given)


def loaded(path: str | Path) -> ModuleType:
    """Return a file's module."""
    path = Path(path)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = sys.modules[path.stem] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def loaded_with(source: str, lines: Mapping[str, tuple[str, str]], folder: str) -> ModuleType:
    """Return the module of a file in which some text was replaced; it lies in `folder` until then.

    `lines` has a pattern and what replaces it, once, for each constant. Raises ValueError for a
    constant whose pattern is not there exactly once.
    """
    text = Path(source).read_text(encoding="utf-8")
    for name, (old, new) in lines.items():
        text, found = re.subn(old, new, text, flags=re.M)
        if found != 1:
            raise ValueError(f"{Path(source).name} has no constant {name}")
    path = Path(folder, Path(source).name)
    path.write_text(text, encoding="utf-8")
    return loaded(path)


def write(out: str | Path, code: bytes, layout: Mapping[str, Any], **more: Any) -> None:
    """Write OUT.cubin, and OUT.json: how it is launched, what cuobjdump says of it, and `more`."""
    cubin = Path(f"{out}.cubin")
    cubin.write_bytes(code)
    told = {**layout, **sass.usage(cubin), **more}
    Path(f"{out}.json").write_text(json.dumps(told), encoding="utf-8")


def whole_numbers(m: int, n: int, k: int, dtype: Any) -> tuple[Any, Any]:
    """Return NumPy's a (M, K) and b (K, N) of small whole numbers."""
    import numpy as np

    draw = np.random.default_rng(0)
    return tuple(draw.integers(-4, 5, shape).astype(dtype) for shape in ((m, k), (k, n)))


def difference(c: Any, a: Any, b: Any) -> float:
    """Return the largest difference of c from a · b in float64."""
    import numpy as np

    return float(np.abs(c.astype(float) - a.astype(float) @ b.astype(float)).max())


def answer(title: str, main: Callable[..., None]) -> None:
    """Call `main` with the command line, and exit with an error's text behind a language's name."""
    try:
        main(*sys.argv[1:])
    except Exception as error:
        sys.exit(f"{title}: {type(error).__name__}: {error}"[:2000])
