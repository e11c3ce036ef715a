"""The climb on the first page: one idea a row."""

import pytest

from tiled_matmul import ROOT
from tiled_matmul.book.ideas import ideas_markdown
from tiled_matmul.ladder import LADDER
from tiled_matmul.measure import results
from tiled_matmul.plots.ideas import IDEAS, picture

RUNGS = {rung.name: rung for rung in LADDER}


def test_every_idea_has_a_picture_a_chapter_and_its_measured_speed():
    records = results.reference()
    markdown, faults = ideas_markdown(records, RUNGS, ROOT)
    assert faults == []
    rows = [row for row in markdown.splitlines()[2:] if "<svg" in row]
    groups = [row for row in markdown.splitlines()[2:] if "<svg" not in row]
    assert [row.split("**")[1] for row in groups] == [
        "On a CPU, float32",
        "On a GPU, float32",
        "On a GPU, float16",
    ]
    for row, idea in zip(rows, IDEAS, strict=True):
        assert row.count("<svg") == 1 and f"[{idea.text}](chapters/" in row
    best = [r for r in records if (r.rung, r.m, r.n, r.k) == ("cuda_unrolled", 4096, 4096, 4096)]
    [row] = [row for row in rows if "while multiplying" in row]
    assert f"| {100 * best[0].ratio:.3g}% |" in row


def test_a_rung_without_a_record_is_a_fault():
    records = [record for record in results.reference() if record.rung != "cuda_unrolled"]
    markdown, [fault] = ideas_markdown(records, RUNGS, ROOT)
    assert fault == "results/h200.json holds no float32 record of rung cuda_unrolled"
    assert markdown.count("<svg") == len(IDEAS) - 1


def test_ideas_climb_and_parts_stay_inside():
    chapters = [RUNGS[idea.rung].chapter for idea in IDEAS]
    assert chapters == sorted(chapters)
    with pytest.raises(ValueError, match=r"got \(3, 0, 2, 1\)"):
        picture([(3, 0, 2, 1, 0.5)], [], [], "too low")
