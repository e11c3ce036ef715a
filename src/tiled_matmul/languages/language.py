"""What a language is: the questions that the course asks of every language that rungs are in."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import metadata
from importlib.util import find_spec
from typing import Any

from tiled_matmul.kit import changes
from tiled_matmul.machine import backend


@dataclass(frozen=True, kw_only=True, repr=False)
class Language:
    """A language of rungs. What a language leaves out, its rungs cannot do, or the course cannot.

    `name` is for code, `title` for tables and messages, `device` is "cpu" or "gpu". `module` is
    imported by all of its rungs, `packages` are the distributions whose versions belong to a
    record, and `absent` is the message where the module is not installed.

    `simulator` names in words what runs its rungs without a GPU; "" if nothing does. With `graphs`,
    its launches use torch's current stream, so that a CUDA graph captures them. `sanitizers` are
    the tools of compute-sanitizer that understand its kernels. With `strided`, its rungs take
    matrices of any strides, and not row-major ones alone.
    """

    name: str
    title: str
    device: str = "gpu"
    module: str = ""
    packages: tuple[str, ...] = ()
    absent: str = ""
    simulator: str = ""
    graphs: bool = False
    sanitizers: tuple[str, ...] = ("memcheck",)
    strided: bool = False

    def __repr__(self) -> str:
        return self.name

    def missing(self) -> str:
        """Return why its rungs cannot be imported here, as a message; "" if they can."""
        if not self.module or find_spec(self.module) is not None:
            return ""
        return self.absent or f"{self.title} is not installed: pip install {self.packages[0]}"

    def need(self) -> None:
        """Raise ModuleNotFoundError if its rungs cannot be imported here."""
        if message := self.missing():
            raise ModuleNotFoundError(message, name=self.module)

    def runs_here(self) -> bool:
        """Return whether its rungs run on this process's back end."""
        if self.missing():
            return False
        return self.device == "cpu" or bool(self.simulator) or backend.select().on_gpu

    def versions(self) -> dict[str, str]:
        """Return the versions of what compiles its kernels, by package."""
        return package_versions(self.packages)

    def untraced(self) -> str:
        """Return why the command `trace` cannot trace a rung; "" if it can.

        The text follows the rung's name in a message.
        """
        return f"is written in {self.title}, which the course cannot trace"

    def trace(self, matmul: Callable, a: Any, b: Any, **options: Any) -> list:
        """Return the traces of the launches of `matmul(a, b)`, in their order.

        A trace prints itself, and has `findings` and views such as `by_line()`. `options` are
        `order` and `seed`. Raises ValueError if `untraced` says why.
        """
        raise ValueError(f"this rung {self.untraced()}")

    def launch(self, kernel: Any, *arguments: Any, **options: Any) -> None:
        """Launch a kernel as its rungs do; the arguments begin with the grid, if there is one."""
        kernel(*arguments, **options)

    def compiled(self, matmul: Callable, a: Any, b: Any, cc: tuple[int, int]) -> list:
        """Compile what `matmul(a, b)` launches for a compute capability, such as (9, 0).

        Nothing is launched, and no GPU is needed. Returns an object for each launch, with `name`,
        `cc`, `registers`, `spilled_bytes` and `shared_bytes`. The rung chooses its kernels as on
        this machine. Raises ValueError for a language that the course cannot compile.
        """
        raise ValueError(f"the course compiles no kernels in {self.title} without launching them")

    def source(self, kernel: Any) -> str:
        """Return a kernel's source as it is written."""
        return changes.source_of(kernel)

    def lines(self, kernel: Any) -> list[str]:
        """Return a kernel's lines without its docstring, with its name replaced by `kernel`."""
        return changes.to_compare(kernel)


def package_versions(packages: Iterable[str]) -> dict[str, str]:
    """Return the versions of those packages that are installed."""
    found = {}
    for package in packages:
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[package] = metadata.version(package)
    return found
