"""`python -m tiled_matmul doctor`: can the course run on this machine?"""

from __future__ import annotations

import argparse
from typing import Any


def add_parser(commands: Any) -> None:
    """Add the command `doctor` to the command line."""
    parser = commands.add_parser(
        "doctor",
        help="check whether the course can run on this machine, and what is missing",
        description="The exit status is 1 if the course cannot run here.",
    )
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    parser.set_defaults(run=_doctor)


def _doctor(args: argparse.Namespace) -> int:
    from tiled_matmul.machine import doctor

    report = doctor.examine()
    print(report.as_json() if args.json else report.as_text())
    return 0 if report.ok else 1
