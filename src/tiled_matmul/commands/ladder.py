"""`python -m tiled_matmul ladder`: the rungs, a rung's kernel, what changed from the one below."""

from __future__ import annotations

import argparse
from typing import Any


def add_parser(commands: Any) -> None:
    """Add the command `ladder` to the command line."""
    parser = commands.add_parser(
        "ladder",
        help="list the rungs, or print a rung's kernel or what changed from the rung below",
        description="Without a name: a table of the rungs. With one: the rung's kernel.",
    )
    parser.add_argument("name", nargs="?", metavar="RUNG", help="a name from the table")
    shown = parser.add_mutually_exclusive_group()
    shown.add_argument(
        "--diff",
        action="store_true",
        help="print the lines of kernel and launcher that differ from the rung below",
    )
    shown.add_argument("--file", action="store_true", help="print the rung's whole file")
    parser.set_defaults(run=_ladder)


def _ladder(args: argparse.Namespace) -> int:
    from tiled_matmul.ladder import rung

    if args.name is None:
        if args.diff or args.file:
            raise ValueError("--diff and --file need the name of a rung")
        print(_table())
        return 0
    chosen = rung(args.name)
    if args.file:
        print(chosen.source.read_text(encoding="utf-8"), end="")
    elif args.diff:
        below = chosen.below.name if chosen.below else "nothing: it is a first rung"
        print(f"# {chosen.name}, changed from {below}")
        print(chosen.changes(launcher=True))
    elif chosen.kernel is None:
        print(f"{chosen.name} has no kernel of its own: its launcher picks another rung's.")
    else:
        print(chosen.language.source(chosen.kernel), end="")
    return 0


def _table() -> Any:
    from tiled_matmul.ladder import LADDER
    from tiled_matmul.measure import results
    from tiled_matmul.microscope.table import table

    records = results.reference()
    rows = []
    for each in LADDER:
        record = results.ladder_record(records, each)
        lines = changed = ""  # not known where its language is not installed
        if each.available:
            lines = len(each.kernel_lines)
            changed = sum(line.startswith("+") for line in each.changes().splitlines())
        rows.append(
            {
                "rung": each.name,
                "chapter": each.chapter,
                "kernel (lines)": lines,
                "new or changed": changed,
                "of the library": "" if record is None else f"{record.ratio:.1%}",
                "at M×N×K": "" if record is None else f"{record.m}×{record.n}×{record.k}",
                "title": each.title,
            }
        )
    return table(rows)
