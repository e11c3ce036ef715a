"""Find measured numbers that were typed instead of computed.

A measured number belongs to the machine that measured it, so a cell prints it or a build generates
it. Prose may hold a number inside code, a number in a sentence with a citation or a link (such as a
figure from a datasheet), and a number derived on the spot ("33/5 = 6.6 times slower"). Sentences in
code, in a call of `say` or in the evidence of a claim, count as prose.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

NUMBER = r"(?<![\w.,])\d[\d.,]*(?:[eE][+-]?\d+)?"
WORDS = r"\b(?:two|three|four|five|six|seven|eight|nine|ten|twenty|fifty|a hundred|a thousand)"
SPACE = r"(?:\s|&nbsp;|\\[, ]|[~*_-]|\\(?:mathrm|text)\{|</?\w+>)*"
COMPARISON = r"(?:faster|slower|quicker|as\s+fast|as\s+slow|as\s+quick|the\s+speed|speed-?ups?\b)"
UNIT = (
    r"(?:(?:ms|msec|µs|μs|us|ns|secs?|seconds?|milliseconds?|microseconds?|nanoseconds?)\b"
    r"|[kMGTP]?(?:FLOP/s|flop/s|FLOPS)\b|[kMGTP](?:FLOPs|flops)\b|[kMGT]i?B/s"
    rf"|(?:×|x|times|-fold){SPACE}{COMPARISON}"
    rf"|(?:%|per\s?cent){SPACE}(?:of\s+)?(?:the\s+)?"
    r"(?:cuBLAS|BLAS|NumPy|numpy|MKL|OpenBLAS|torch|PyTorch|peak|roof|bandwidth|faster|slower))"
)
MEASURED = re.compile(
    rf"(?:{NUMBER}{SPACE}{UNIT}|{NUMBER}(?:\s|&nbsp;|\\,|~)+s\b|(?<![\w.,])\d+\.\d+s\b"
    rf"|{WORDS}\s+times\s+{COMPARISON}|\b(?:twice|half)\s+(?:as\s+fast|as\s+slow|the\s+speed)\b)"
)
CODE = re.compile(r"(`{3,}|~{3,}).*?(?:\1|\Z)|(?<!`)(`+)(?!`).+?(?<!`)\2(?!`)", re.DOTALL)
# A fenced directive such as {note} holds prose, except for these kinds.
DIRECTIVE = re.compile(
    r"^ *(`{3,}|~{3,})\{(?!code|math|eval)[^}\n]*\}([^\n]*\n.*?)^ *\1[ \t]*$",
    re.DOTALL | re.MULTILINE,
)
CITED = re.compile(r"\{cite|\]\(\s*<?https?://")
DERIVED = re.compile(r"(?:=|[\d)}%$²³]\s*≈)\s*\$?\s*$")
SENTENCE_END = re.compile(
    r"(?<=[.!?])\s+(?=[\"'(*$A-Z0-9{\[])|\n\s*\n|\n(?=\s*(?:[-*|#]|\d+\.)\s?)"
)


def typed_numbers(markdown: str) -> Iterator[tuple[int, str]]:
    """Yield (line number from 1, the text) for each measured number typed in `markdown`."""

    def blank(match: re.Match) -> str:
        return re.sub(r"[^\n]", "\N{REPLACEMENT CHARACTER}", match[0])

    while markdown != (opened := DIRECTIVE.sub(r"\2", markdown)):
        markdown = opened
    text = CODE.sub(blank, markdown)
    start = 0
    for end in [*(match.start() for match in SENTENCE_END.finditer(text)), len(text)]:
        sentence = text[start:end]
        if not CITED.search(sentence):
            for match in MEASURED.finditer(sentence):
                if not DERIVED.search(sentence[: match.start()]):
                    line = text.count("\n", 0, start + match.start()) + 1
                    yield line, " ".join(match[0].split())
        start = end


def typed_in_code(source: str) -> Iterator[str]:
    """Yield the text of each measured number typed in a call of `say` or in `evidence=`."""
    try:
        calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    except SyntaxError:
        return
    for call in calls:
        name = getattr(call.func, "id", getattr(call.func, "attr", ""))
        shown = call.args if name == "say" else []
        shown = [*shown, *(word.value for word in call.keywords if word.arg == "evidence")]
        for node in (node for argument in shown for node in ast.walk(argument)):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield from (words for _, words in typed_numbers(node.value))
