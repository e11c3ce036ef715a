"""book/header.py: what stands below a chapter's title."""

import re

import pytest

from tiled_matmul import ROOT
from tiled_matmul.book import files
from tiled_matmul.book import header as module
from tiled_matmul.book.header import PARTS, QUESTIONS, header
from tiled_matmul.ladder import rung

TITLES = {number: (f"{number:02}_page", f"Chapter <{number}>") for number in range(1, 15)}


def test_every_chapter_lies_in_one_part_and_has_a_question():
    chapters = [number for part in PARTS for number in part.chapters]
    assert chapters == list(range(1, len(QUESTIONS) + 1))
    numbered = [path for path in files.chapters(ROOT) if path.stem[:2].isdigit()]
    assert len(set(QUESTIONS)) == len(numbered) and all(one.endswith("?") for one in QUESTIONS)


def test_a_part_begins_and_ends_with_rungs_of_its_own():
    for part in PARTS:
        for name in (part.first, part.last):
            assert rung(name).chapter in part.chapters


@pytest.mark.parametrize("number", TITLES)
def test_the_first_chapter_of_a_part_lists_them_all(number):
    made = header(number, "<h1>Title</h1>" + "<p>word</p>" * 1700 + "<pre>code</pre>" * 999, TITLES)
    assert QUESTIONS[number - 1] in made and "About 10 minutes to read." in made
    (part,) = (part for part in PARTS if number in part.chapters)
    listed = [int(n) for n in re.findall(r'href="(\d\d)_page\.html"', made)]
    assert listed == (list(part.chapters) if number == part.chapters[0] else [])
    if listed:
        assert f"Chapter &lt;{number}&gt;" in made and f'<ol start="{number}">' in made
        assert made.count('aria-current="page"') == 1


def test_a_part_without_a_record_is_an_error(monkeypatch):
    monkeypatch.setattr(module.results, "reference", list)
    with pytest.raises(ValueError, match=r"results/h200\.json has no record of loops_python"):
        header(1, "", TITLES)
