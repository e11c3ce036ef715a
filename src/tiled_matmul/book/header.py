"""What stands above a chapter or exercises: a question, what it takes, and where a part leads."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from tiled_matmul.book.generated import significant
from tiled_matmul.measure import results

WORDS_A_MINUTE = 170  # with a look at the code and the figures
MINUTES = 5  # a chapter's time is rounded to


class Part(NamedTuple):
    """A part of the book, as `_toc.yml` has it: its name and the numbers of its chapters.

    `says` tells what it is about, `needs` what its code needs; `first` and `last` are the rungs
    with whose speed it begins and ends.
    """

    name: str
    chapters: range
    says: str
    needs: str
    first: str
    last: str


PARTS = (
    Part(
        "Loops",
        range(1, 4),
        "One processor. The arithmetic stays the same to the last chapter; what changes is the "
        "order of the work, and so what the caches still hold when it is needed again.",
        "To run it you need Python on any machine; the times are those of your processor.",
        "loops_python",
        "cpu_packed",
    ),
    Part(
        "CUDA cores",
        range(4, 10),
        "A GPU and its threads, in Numba. The same tiles return, and each time one level closer to "
        "the arithmetic: in shared memory, in registers, on their way while others are multiplied.",
        "To run it you need no GPU: kernels then run in an interpreter, without times.",
        "cuda_naive",
        "cuda_best",
    ),
    Part(
        "Tensor cores",
        range(10, 19),
        "The same kernels in Triton, whose unit is a tile and not a thread. The compiler takes "
        "over the bookkeeping, and the question becomes which tiles, in which order, how large.",
        "To run it you need Linux, for Triton, and no GPU: without one there are no times.",
        "triton_block_pointers",
        "triton_best",
    ),
)
QUESTIONS = (  # what each chapter answers
    "How far is a product in three loops from what a library does?",
    "Why does the order of three loops change their speed so much?",
    "How can a part of B be used again while it is still in the cache?",
    "How do thousands of threads share one product, and what should neighbours load?",
    "How can the threads of a block load each tile once, for all of them?",
    "How do you find out which of two suspects makes a kernel slow?",
    "How often can a thread use an element that it has loaded?",
    "How can a thread multiply while its next tile is on the way?",
    "What is left between a good kernel and cuBLAS?",
    "What remains of a kernel when the compiler does the bookkeeping?",
    "Which tiles of C should be computed at the same time?",
    "Which sizes of tiles suit a shape, and how do you find them?",
    "How can a tile be copied without a thread that computes its addresses?",
    "How does a product that fills only part of a GPU keep all of it busy?",
    "What must a kernel do for a layer besides the product, and what does that save?",
    "How does a kernel of your own become a part of a PyTorch model?",
    "How do several GPUs share a product without waiting for each other?",
    "What do other languages call the same tile, and what do they decide for you?",
)


def header(number: int, body: str, titles: Mapping[int, tuple[str, str]]) -> str:
    """Return what stands below the title of chapter `number`, whose page is `body`, as HTML.

    `titles` holds (name of the file, title) of each chapter, for the list that opens a part.
    """
    (part,) = (part for part in PARTS if number in part.chapters)
    prose = re.sub(r"<(svg|style|script|pre)\b.*?</\1>|<[^>]*>", " ", body, flags=re.DOTALL)
    minutes = max(MINUTES, MINUTES * round(len(prose.split()) / WORDS_A_MINUTE / MINUTES))
    lines = [
        f'<p class="page-question">{QUESTIONS[number - 1]}</p>',
        f'<p class="page-needs">About {minutes} minutes to read. {part.needs}</p>',
    ]
    if number == part.chapters[0]:
        lines += opener(part, titles)
    return "\n".join(lines)


def of_exercises(page: str) -> str:
    """Return what stands below the title of a notebook of exercises, "exercises/05_banks"."""
    return (
        f'<p class="page-needs">This page is a notebook, <code>{page}.ipynb</code>: '
        "on a computer, <code>make lab</code> opens it. There you write and run your answers.</p>"
    )


def opener(part: Part, titles: Mapping[int, tuple[str, str]]) -> Iterator[str]:
    """Yield the lines of HTML with which a part of the book begins."""
    name = f"Part {PARTS.index(part) + 1} of {len(PARTS)}: {part.name}"
    yield f'<nav class="part-opener" aria-label="{name}">'
    yield f'<p class="part-name">{name}</p>'
    yield f"<p>{part.says} {_reach(part)}</p>"
    yield f'<ol start="{part.chapters[0]}">'
    for number in sorted(titles.keys() & set(part.chapters)):
        file, title = titles[number]
        here = ' aria-current="page"' if number == part.chapters[0] else ""
        link = f'<a href="{file}.html"{here}>{html.escape(title)}</a>'
        yield f"<li>{link}<span>{QUESTIONS[number - 1]}</span></li>"
    yield "</ol></nav>"


def _reach(part: Part) -> str:
    """Return how fast a part's first and last kernels are, from the reference GPU's records."""
    from tiled_matmul.ladder import rung

    records = results.reference()
    first, last = (results.ladder_record(records, rung(name)) for name in (part.first, part.last))
    for name, record in ((part.first, first), (part.last, last)):
        if record is None:
            raise ValueError(f"results/h200.json has no record of {name}")
    library = "NumPy" if last.baseline == "numpy" else "cuBLAS"
    climb = f"{_share(first.ratio)} to {_share(last.ratio)}"
    return f"Its kernels climb from {climb} of {library}’s speed."


def _share(ratio: float) -> str:
    return f"{significant(100 * ratio, 2 if ratio < 0.995 else 3)}%"
