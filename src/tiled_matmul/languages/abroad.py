"""Languages abroad: what those whose compilers run in an environment of their own have in common.

Their kernels are texts in `ladder/abroad/`, their products lie in `ladder/abroad/products/`. Those
of Mojo are PTX; those of `CubinLanguage` are machine code, made by a script in `makers/` that the
language's own Python runs.
"""

from __future__ import annotations

import ast
import hashlib
import json
import os
import re
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tiled_matmul.languages.language import Language
from tiled_matmul.machine import backend

FOLDER = Path(__file__).parents[1] / "ladder" / "abroad"
MAKERS = Path(__file__).parent / "makers"
HOPPER = 9, 0


@dataclass(frozen=True, kw_only=True, repr=False)
class Abroad(Language):
    """A language whose kernels are text. `package` is the one in the lock that compiles them.

    With `on_cpu`, its kernels run without a GPU, see `CubinLanguage.error_on_cpu`.
    """

    package: str = ""
    on_cpu: bool = False

    @property
    def lock(self) -> Path:
        """The file of pinned requirements."""
        return FOLDER / f"{self.name}.lock"

    def compiler(self) -> str:
        """Return the compiler that products must be of, such as "mojo 1.2.0, lock 0123abcd".

        Behind its version is a digest of all versions in the lock: what assembles the code, too, is
        a part of a compiler.
        """
        (version,) = self.versions().values()
        lines = "\n".join("==".join(each) for each in self._pinned().items())
        return f"{self.name} {version}, lock {hashlib.sha256(lines.encode()).hexdigest()[:8]}"

    def versions(self) -> dict[str, str]:
        return {self.name: self._pinned()[self.package or self.name]}

    def _pinned(self) -> dict[str, str]:
        return pinned(self.lock.read_text(encoding="utf-8"))

    def launch(self, kernel: Any, *arguments: Any, **options: Any) -> None:
        from tiled_matmul.kit import products

        products.launch(kernel, *arguments, **options)

    def compiled(self, matmul: Callable, a: Any, b: Any, cc: tuple[int, int]) -> list:
        raise ValueError(
            f"products in {self.title} are compiled already; `make languages` made them"
        )

    def source(self, kernel: Any) -> str:
        return kernel

    def lines(self, kernel: Any) -> list[str]:
        return [line for line in kernel.splitlines() if line.strip()]

    def files(
        self, source: Path, constants: Mapping[str, Any], python: Path
    ) -> Mapping[str, bytes]:
        """Return the files of a product by their endings, such as ".ptx".

        `python` belongs to the language's environment. Raises RuntimeError with the compiler's log.
        """
        return {".ptx": self.made(source, constants, python).encode()}

    def made(self, source: Path, constants: Mapping[str, Any], python: Path) -> str:
        """Return the PTX of a source, with its head. Raises RuntimeError as `files` does."""
        raise RuntimeError(f"{self.title} makes no PTX")


@dataclass(frozen=True, kw_only=True, repr=False)
class CubinLanguage(Abroad):
    """A language whose products are machine code of `target`, such as "sm_90a".

    The script makers/make_NAME.py is called with a source, the path of the product without an
    ending, and CONSTANT=VALUE for each constant. Beside the product it writes how to launch it, as
    JSON (see `kit/cubins.py`).
    """

    target: str = "sm_90a"

    @property
    def maker(self) -> Path:
        """The script that compiles its kernels."""
        return MAKERS / f"make_{self.name}.py"

    def runs_here(self) -> bool:
        here = backend.select()
        return here.on_gpu and here.gpu.capability == HOPPER

    def untraced(self) -> str:
        return f"is written in {self.title}; its product is machine code, which only a GPU runs"

    def launch(self, kernel: Any, *arguments: Any, **options: Any) -> None:
        from tiled_matmul.kit import cubins

        cubins.launch(kernel, *arguments, **options)

    def files(
        self, source: Path, constants: Mapping[str, Any], python: Path
    ) -> Mapping[str, bytes]:
        from tiled_matmul.kit import products

        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "product"
            given = [f"{name}={value}" for name, value in constants.items()]
            ran = subprocess.run(
                [str(python), str(self.maker), str(source), str(out), *given],
                capture_output=True,
                text=True,
                cwd=folder,
                env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"},
            )
            code, layout = out.with_suffix(".cubin"), out.with_suffix(".json")
            if ran.returncode or not code.is_file() or not layout.is_file():
                raise RuntimeError(
                    f"{self.title} does not compile {source.name}:\n{ran.stderr[-3000:]}"
                )
            head = products.head_values(source, self.compiler(), constants, self.target)
            told = head | json.loads(layout.read_text(encoding="utf-8"))
            return {".cubin": code.read_bytes(), ".json": laid_out(told).encode()}

    def error_on_cpu(
        self, source: Path, sizes: Sequence[int], constants: Mapping[str, Any], python: Path
    ) -> float:
        """Return the largest error of a kernel's C on this machine's CPU, for whole numbers.

        `sizes` are M, N and K. Raises RuntimeError if the language does not run there.
        """
        given = [*map(str, sizes), *(f"{name}={value}" for name, value in constants.items())]
        ran = subprocess.run(
            [str(python), str(self.maker), str(source), "--run", *given],
            capture_output=True,
            text=True,
            env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"},
        )
        try:
            return float(ran.stdout)
        except ValueError:
            raise RuntimeError(
                f"{self.title} does not run {source.name} on a CPU:\n{ran.stderr[-3000:]}"
            ) from None


def pinned(text: str) -> dict[str, str]:
    """Return the version of each package that a list of requirements pins, in its order."""
    return dict(re.findall(r"^(\S+)==(\S+)$", text, re.M))


def laid_out(values: Mapping[str, Any]) -> str:
    """Return JSON with a line for each key, and for each of a list of arguments."""
    lines = []
    for key, value in values.items():
        text = json.dumps(value)
        if key == "arguments":
            text = "[\n  " + ",\n  ".join(map(json.dumps, value)) + "\n ]"
        lines.append(f" {json.dumps(key)}: {text}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def function_in(text: str, name: str) -> str:
    """Return a function of a Python text as it is written, with its decorators.

    Raises ValueError if there is none of that name at the text's outermost level.
    """
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef) and node.name == name:
            first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
            return "\n".join(text.splitlines()[first - 1 : node.end_lineno]) + "\n"
    raise ValueError(f"there is no `def {name}(` in this text")
