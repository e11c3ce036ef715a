"""Turn a notebook's cell into Python, as IPython does, without running any of its commands.

`check` in a notebook and `grade` on its file both read cells through `python`, so that both see
the same answer. Commands, such as `%timeit` and `!pip`, become calls of `get_ipython()`, as in
IPython. An answer that needs such a call is refused, and no other call runs.
"""

from __future__ import annotations

import ast
import re
from typing import NamedTuple

from IPython.core import inputtransformer2 as ipython

from tiled_matmul.grader.messages import sentence

MAX_COMMANDS = 20  # in one cell: each takes another pass over all of it
MAX_HELP = 200  # characters of an expression with a `?` behind it
RUN_BODY = ("capture", "debug", "prun", "time", "timeit")
"""IPython's cell magics that run the cell below them as Python. Others hand it to something else,
such as a shell or a file."""
CELL_MAGIC = re.compile(r"%%(\S*)")
COMMANDS = {  # what IPython makes of a command, and how a cell has it
    "system": "!{}",
    "getoutput": "!{}",
    "run_line_magic": "%{} {}",
    "show_usage": "?",
}
HELP = {"pinfo": "?", "pinfo2": "??", "psearch": "?"}


class TooMany(ValueError):
    """A cell holds too many commands to be read."""


class Python(NamedTuple):
    """A cell as Python, with as many lines.

    `magic` is "" unless the cell begins with a cell magic that does not run it as Python, such as
    `%%writefile`. Then it is that magic's name, and the lines are empty.
    """

    text: str
    magic: str = ""


def _at_its_line(kind: type) -> type:
    """Return one of IPython's transformers that leaves every line of a cell at its number."""

    class Transformer(kind):
        def transform(self, lines: list[str]) -> list[str]:
            help_line = getattr(self, "q_line", self.start_line)
            if kind is ipython.HelpEnd and (
                sum(map(len, lines[self.start_line : help_line + 1])) > MAX_HELP
            ):
                raise SyntaxError  # IPython's pattern takes too long
            new = super().transform(lines)
            after = self.start_line + 1
            return new[:after] + ["\n"] * (len(lines) - len(new)) + new[after:]

    return Transformer


class _Manager(ipython.TransformerManager):
    """IPython's transformations that keep a line's number; `python` does what the others do."""

    def __init__(self) -> None:
        super().__init__()
        self.cleanup_transforms.remove(ipython.leading_empty_lines)
        self.line_transforms.remove(ipython.cell_magic)
        self.token_transformers = [_at_its_line(kind) for kind in self.token_transformers]

    def cleaned(self, text: str) -> str:
        """Return a cell without prompts and without the indentation that all lines have."""
        lines = text.splitlines(keepends=True)
        for transform in self.cleanup_transforms:
            lines = transform(lines)
        return "".join(lines)

    def do_token_transforms(self, lines: list[str]) -> list[str]:
        for _ in range(MAX_COMMANDS + 1):
            changed, lines = self.do_one_token_transform(lines)
            if not changed:
                return lines
        raise TooMany(sentence("error: notebook commands", most=MAX_COMMANDS))


MANAGER = _Manager()


def python(cell: str) -> Python:
    """Return a cell as Python. Raises TooMany for a cell with many commands.

    Line ends of other systems and page breaks make no difference. What is no Python for IPython
    either comes back as no Python.
    """
    text = plain(cell)
    above = ""  # empty lines for what IPython takes away
    while True:
        blank = text[: len(text) - len(text.lstrip())].count("\n")
        above, text = above + "\n" * blank, "\n".join(text.split("\n")[blank:])
        text = MANAGER.cleaned(text)
        magic = CELL_MAGIC.match(text)
        if magic is None or re.match(r"%%\w+\?", text):  # which asks for help
            break
        if magic[1] not in RUN_BODY:
            return Python(above + "\n" * text.count("\n"), magic[1])
        _, newline, text = text.partition("\n")
        above += newline
    new = MANAGER.do_token_transforms([f"{line}\n" for line in text.split("\n")])
    return Python(above + "".join(new).removesuffix("\n"))


def plain(cell: str) -> str:
    """Return a cell with "\\n" at the end of each line, and without page breaks around lines.

    For Python the indentation of a line begins behind its page break.
    """
    lines = cell.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    for number, line in enumerate(lines):
        if "\f" in line:
            line = line.rstrip(" \t\f")
            before = line[: len(line) - len(line.lstrip(" \t\f"))]
            lines[number] = line[before.rfind("\f") + 1 :]
    return "\n".join(lines)


def command(node: ast.AST) -> str | None:
    """Return the command that a node stands for, as `!ls` for `get_ipython().system("ls")`.

    It is None for any other node.
    """
    match node:
        case ast.Call(
            func=ast.Attribute(value=ast.Call(func=ast.Name(id="get_ipython"))), args=args
        ) if node.func.attr in COMMANDS and all(isinstance(one, ast.Constant) for one in args):
            given = [str(one.value) for one in args] + ["", ""]
            if given[0] in HELP:
                return f"{given[1]}{HELP[given[0]]}"
            return COMMANDS[node.func.attr].format(*given).strip()
    return None


__all__ = ["MAX_COMMANDS", "Python", "TooMany", "command", "plain", "python"]
