"""The command line: `python -m tiled_matmul doctor | ladder | bench | measure | trace | …`.

A usage error prints one line to standard error and exits with status 2; Ctrl-C exits with 130.
"""

from __future__ import annotations

import os
import sys

if __name__ == "__main__" and "--teacher" in sys.argv and not sys.flags.safe_path:
    # `-m` takes modules from the working folder first, and this may be the submissions' own.
    os.environ["PYTHONSAFEPATH"] = "1"
    source = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    path = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = f"{source}{os.pathsep}{path}" if path else source
    os.execv(sys.executable, [sys.executable, "-m", "tiled_matmul", *sys.argv[1:]])

import argparse
import traceback
from collections.abc import Sequence
from typing import NoReturn

from tiled_matmul.book import add_parser as add_notebooks
from tiled_matmul.commands.bench import add_parser as add_bench
from tiled_matmul.commands.doctor import add_parser as add_doctor
from tiled_matmul.commands.ladder import add_parser as add_ladder
from tiled_matmul.commands.languages import add_parser as add_languages
from tiled_matmul.commands.measure import add_parser as add_measure
from tiled_matmul.commands.trace import add_parser as add_trace
from tiled_matmul.grader.cli import add_parsers as add_grader


class _Parser(argparse.ArgumentParser):
    """An argument parser that reports an error in one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}\n")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status."""
    parser = _parser()
    args = parser.parse_args(argv)
    try:
        return args.run(args) or 0
    except KeyboardInterrupt:
        print(f"{parser.prog} {args.command}: interrupted", file=sys.stderr)
        return 130
    except Exception as error:
        if os.environ.get("TILED_MATMUL_TRACEBACK") == "1":
            traceback.print_exc()
        if not _is_expected(error):
            raise
        message = " ".join(str(error).split())
        print(f"{parser.prog} {args.command}: {message}", file=sys.stderr)
        return 2


def _is_expected(error: Exception) -> bool:
    """Return whether a user can cause this error, so that its message needs no traceback."""
    from tiled_matmul.check import MatmulError
    from tiled_matmul.machine.backend import BackendError
    from tiled_matmul.machine.device import is_out_of_memory
    from tiled_matmul.microscope.cuda.errors import KernelError

    kinds = (ValueError, TypeError, OSError, ImportError)
    kinds += (BackendError, KernelError, MatmulError)
    return isinstance(error, kinds) or is_out_of_memory(error)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="tiled_matmul", description="Tiled Matmul, an executable course.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")

    add_doctor(commands)
    add_ladder(commands)
    add_bench(commands)
    add_languages(commands)
    add_measure(commands)
    add_trace(commands)
    add_notebooks(commands)
    add_grader(commands)
    return parser


if __name__ == "__main__":
    sys.exit(main())
