"""Finds measured numbers that somebody typed.

A measured number belongs to the machine that measured it, so a cell prints it or a build generates
it. What is allowed in prose: a number inside code, a number with a citation or a link in its
sentence (a data sheet's figure), and a number derived on the spot ("33/5 = 6.6 times slower").
"""

from __future__ import annotations

import re
from collections.abc import Iterator

NUMBER = r"(?<![\w.,])\d[\d.,]*(?:[eE][+-]?\d+)?"
WORDS = r"\b(?:two|three|four|five|six|seven|eight|nine|ten|twenty|fifty|a hundred|a thousand)"
SPACE = r"(?:\s|&nbsp;|\\,|~)*"
COMPARISON = r"(?:faster|slower|quicker|as\s+fast|as\s+slow|as\s+quick|the\s+speed|speed-?ups?\b)"
UNIT = (
    r"(?:(?:ms|µs|μs|us|ns|secs?|seconds?|milliseconds?|microseconds?|nanoseconds?)\b"
    r"|[kMGTP]?(?:FLOP/s|flop/s|FLOPS)\b|[kMGTP](?:FLOPs|flops)\b|[kMGT]i?B/s"
    rf"|(?:×|x|times|-fold){SPACE}{COMPARISON}"
    rf"|(?:%|percent){SPACE}(?:of\s+)?(?:the\s+)?"
    r"(?:cuBLAS|BLAS|NumPy|numpy|MKL|OpenBLAS|torch|PyTorch|peak|roof|bandwidth|faster|slower))"
)
MEASURED = re.compile(
    rf"(?:{NUMBER}{SPACE}{UNIT}|{NUMBER}(?:\s|&nbsp;|\\,|~)+s\b|(?<![\w.,])\d+\.\d+s\b"
    rf"|{WORDS}\s+times\s+{COMPARISON}|\b(?:twice|half)\s+(?:as\s+fast|as\s+slow|the\s+speed)\b)"
)
CODE = re.compile(r"(`{3,}|~{3,}).*?(?:\1|\Z)|(?<!`)(`+)(?!`).+?(?<!`)\2(?!`)", re.DOTALL)
CITED = re.compile(r"\{cite|\]\(\s*<?https?://")
DERIVED = re.compile(r"[=≈]\s*\$?\s*$")
SENTENCE_END = re.compile(
    r"(?<=[.!?])\s+(?=[\"'(*$A-Z0-9{\[])|\n\s*\n|\n(?=\s*(?:[-*|#]|\d+\.)\s?)"
)


def typed_numbers(markdown: str) -> Iterator[tuple[int, str]]:
    """Yield (line number from 1, the words) for each measured number typed in `markdown`."""

    def blank(match: re.Match) -> str:
        return re.sub(r"[^\n]", "\N{REPLACEMENT CHARACTER}", match[0])

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
