"""book/header.py: what stands below a title; and the outputs that book/sphinx.py names."""

import json
import re

import pytest
import yaml
from docutils import nodes

from tiled_matmul import ROOT
from tiled_matmul.book import files
from tiled_matmul.book import header as module
from tiled_matmul.book.header import PARTS, QUESTIONS, header, of_exercises
from tiled_matmul.book.sphinx import mend_listings, name_right_outputs
from tiled_matmul.ladder import rung

TITLES = {number: (f"{number:02}_page", f"Chapter <{number}>") for number in range(1, 19)}


def test_every_chapter_lies_in_one_part_and_has_a_question():
    chapters = [number for part in PARTS for number in part.chapters]
    assert chapters == list(range(1, len(QUESTIONS) + 1))
    numbered = [path for path in files.chapters(ROOT) if path.stem[:2].isdigit()]
    assert len(set(QUESTIONS)) == len(numbered) and all(one.endswith("?") for one in QUESTIONS)


def test_the_parts_are_those_of_the_contents():
    parts = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))["parts"]
    listed = {
        part["caption"]: [
            int(one["file"][9:11]) for one in part["chapters"] if one["file"][9:11].isdigit()
        ]
        for part in parts
    }
    assert {part.name: list(part.chapters) for part in PARTS} == {
        name: numbers for name, numbers in listed.items() if numbers
    }


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


def test_outputs_of_exercises_are_said_to_be_a_right_answers():
    def notebook(*names):
        outputs = {"run": ["a"], "check": ["b"], "picture": ["c"], "exercise": []}
        return [
            {"id": f"{name}-05-1", "metadata": {}, "outputs": outputs[name]} for name in names
        ] + [{"id": "task-05-1", "metadata": {}}]

    source = [json.dumps({"cells": notebook("picture", "exercise", "run", "check")})]
    other = list(source)
    name_right_outputs(None, "exercises/05_shared_memory", source)
    tags = [cell["metadata"].get("tags") for cell in json.loads(source[0])["cells"]]
    assert tags == [None, None, ["as-right"], ["as-right"], None]
    for page in ("exercises/solutions/05_shared_memory", "chapters/05_shared_memory", "exercises"):
        name_right_outputs(None, page, other)
    assert other == [json.dumps({"cells": notebook("picture", "exercise", "run", "check")})]


def test_a_page_of_exercises_says_where_its_notebook_is():
    assert "<code>exercises/05_banks.ipynb</code>" in of_exercises("exercises/05_banks")


def test_a_printed_matrix_is_named_and_marks_for_nbval_go():
    texts = ("[[1. 2.]\n [3. 4.]]", "# NBVAL_CHECK_OUTPUT\nprint(1)", "[1, 2]")
    page = nodes.section("", *(nodes.literal_block(text, text) for text in texts))
    mend_listings(None, page)
    assert [one["classes"] for one in page.children] == [["matrix-text"], [], []]
    assert page.children[1].astext() == "print(1)"
