"""The pages that are made from measurements, and that the built book needs no other host."""

import json
import os
import re
import subprocess
import sys
from types import SimpleNamespace

import pytest
from book_example import CHAPTER, example_book, example_notebook, records, save
from records_example import entry

from tiled_matmul import ROOT
from tiled_matmul.book import generated as tables
from tiled_matmul.book.citations import as_citations
from tiled_matmul.book.files import built_for, chapters, checked_address, toc_files
from tiled_matmul.book.offline import css_requests, outside_requests
from tiled_matmul.ladder import LADDER
from tiled_matmul.measure import claims, results
from tiled_matmul.measure import records as store
from tiled_matmul.measure.results import Record


def ladder(entries):
    return tables.ladder_markdown([Record(**entry) for entry in entries], LADDER)


def test_the_ladder_shows_each_rung_once_and_each_baseline():
    markdown, faults = ladder(records())
    assert faults == []
    for rung in LADDER:
        assert markdown.count(f"| {rung.title} |") == 1
    assert "| cuBLAS | 100% | 68.7 TFLOP/s | 2 | 4096³ |  |" in markdown
    assert "| Loops 1 in Python | 25% | 0.0655 GFLOP/s | 8 | 64³ | 1 |" in markdown
    assert "**NVIDIA H200**, float32, measured 2026-11-21 (0123abc):" in markdown


def test_a_rung_stands_beside_the_baseline_in_its_own_dtype():
    markdown, _ = ladder(records())
    tables_of = re.split(r"^\*\*.*\*\*, (\w+), measured", markdown, flags=re.MULTILINE)
    assert tables_of[1::2] == ["float32", "float32", "float16"]
    single, half = tables_of[4], tables_of[6]
    assert "| the best found | 25% |" in single and "| the best found |" not in half
    assert "| programs in groups | 25% | 137 TFLOP/s | 1 |" in half
    assert "| cuBLAS | 100% | 68.7 TFLOP/s |" in single and "| cuBLAS |" not in tables_of[2]
    assert "| cuBLAS | 100% | 550 TFLOP/s |" in half
    without = [e for e in records() if (e["rung"], e["dtype"]) != ("triton_swizzled", "float16")]
    (other,) = [dict(e, dtype="float32") for e in records() if e["rung"] == "triton_swizzled"]
    _, faults = ladder([*without, other])
    assert faults == ["results/h200.json holds no float16 record of rung triton_swizzled"]


def test_a_rung_without_a_record_is_a_fault():
    entries = [entry for entry in records() if entry["rung"] != "cuda_coalesced"]
    markdown, faults = ladder(entries)
    assert faults == ["results/h200.json holds no float32 record of rung cuda_coalesced"]
    assert "x is the column" not in markdown


def test_rungs_of_a_device_are_compared_at_one_shape():
    entries = records()
    extra = dict(next(entry for entry in entries if entry["rung"] == "njit_ijk"))
    extra |= {"m": 2048, "n": 2048, "k": 2048, "tflops": 2 * 2048**3 / extra["time_ms"] / 1e9}
    markdown, _ = ladder([*entries, extra])
    assert "| loops ijk, compiled | 25% | 33.6 GFLOP/s | 8 | 512³ | 2 |" in markdown
    assert "2048" not in markdown


@pytest.mark.parametrize(
    ("value", "wanted"),
    [(0.00012345, "0.000123"), (1234567.0, "1,230,000"), (12.34, "12.3"), (0.5, "0.5")],
)
def test_numbers_are_shown_without_exponents(value, wanted):
    assert tables.significant(value) == wanted


def test_status_and_claims_say_what_they_lack(tmp_path):
    book = example_book(tmp_path)
    assert tables.status_markdown(book)[1] == [] and tables.claims_markdown(book)[1] == []
    notebook = example_notebook()
    notebook.cells[4].source += "\nprint(3)"
    notebook.cells[-2].outputs = []
    save(notebook, book / CHAPTER)
    assert "stale stamp" in tables.status_markdown(book)[1][0]
    assert "no chapter or appendix has a claim" in tables.claims_markdown(book)[1][0]
    (book / CHAPTER).write_text("{")
    assert "not JSON" in tables.status_markdown(book)[1][0]


def test_claims_are_found_as_claims_py_writes_them():
    judged = claims.claim("A", source="B", holds=True, evidence="C")
    notebook = example_notebook()
    notebook.cells[-2].outputs[0].data = judged._repr_mimebundle_()
    assert tables.claims_of(notebook) == [
        {"text": "A", "source": "B", "holds": True, "evidence": "C"}
    ]


@pytest.mark.parametrize(
    "page",
    [
        '<script src="https://cdn.example.org/x.js"></script>',
        '<script src="//cdn.example.org/x.js"></script>',
        '<link rel="stylesheet" href="https://fonts.example.org/a.css">',
        '<link rel="preconnect" href="https://fonts.example.org">',
        '<img src="http://example.org/a.png" alt="a">',
        '<img srcset="a.png 1x, https://example.org/a.png 2x" alt="a">',
        '<iframe src="https://example.org"></iframe>',
        "<style>@import 'https://example.org/a.css';</style>",
        '<p style="background: url(https://example.org/a.png)"></p>',
        '<svg><image href="https://example.org/a.png"/></svg>',
        '<object data="https://example.org/a.svg"></object>',
        '<meta http-equiv="Refresh" content="0; url=https://example.org">',
        '<video poster="https://example.org/a.png"></video>',
    ],
)
def test_a_request_to_another_host_is_found(tmp_path, page):
    (tmp_path / "a.html").write_text(f"<html><body>{page}</body></html>")
    (found,) = outside_requests(tmp_path)
    assert found[0] == "a.html" and "example.org" in found[1]


def test_links_and_own_files_are_no_requests(tmp_path):
    (tmp_path / "a.html").write_text(
        '<a href="https://example.org">x</a><form action="https://example.org"></form>'
        '<link rel="canonical" href="https://example.org/a.html"><img src="a.png">'
        '<svg xmlns="http://www.w3.org/2000/svg"></svg><script src="_static/a.js"></script>'
        "<p>https://example.org/a.js</p>"
    )
    (tmp_path / "a.css").write_text("/* url(https://example.org) */ a{background:url(a.png)}")
    assert outside_requests(tmp_path) == []


def test_style_sheets_are_read(tmp_path):
    assert list(css_requests('@import url("https://example.org/a.css");')) == [
        "https://example.org/a.css"
    ]
    (tmp_path / "a.css").write_text("@font-face { src: url(//example.org/a.woff2) }")
    assert outside_requests(tmp_path) == [("a.css", "//example.org/a.woff2")]


@pytest.mark.parametrize("address", ["", "github.com/a/b", "https://github.com/a", "ssh://h/a/b"])
def test_an_address_has_one_form(address):
    with pytest.raises(ValueError, match="is not an address like"):
        checked_address(address, "here")
    assert checked_address("https://github.com/a/b.git", "here") == "https://github.com/a/b"


def test_every_script_below_static_is_accounted_for():
    """Jupyter Book puts each of them on every page."""
    scripts = [path.relative_to(ROOT).as_posix() for path in ROOT.glob("_static/**/*.js")]
    assert scripts == []


def test_every_citation_resolves():
    keys = set(re.findall(r"^@\w+\{(\w+),", (ROOT / "references.bib").read_text(), re.MULTILINE))
    pages = [ROOT / f"{name}.md" for name in toc_files()]
    texts = [page.read_text() for page in pages if page.exists()]
    for path in chapters():
        if path.exists():
            cells = json.loads(path.read_text())["cells"]
            texts += ["".join(c["source"]) for c in cells if c["cell_type"] == "markdown"]
    cited = {
        key
        for text in texts
        for keys in re.findall(r"\{cite[^}]*\}`([^`]+)`", as_citations(text))
        for key in re.split(r"\s*,\s*", keys)
    }
    assert cited <= keys, cited - keys


COURSE = "https://github.com/someone/course"
SEARCH = "_static/search/sections.js"


def build(book, *options, **environment):
    pytest.importorskip("jupyter_book", reason="this environment builds no book")
    program = "from jupyter_book.cli.main import main; main()"
    command = [sys.executable, "-c", program, "build", "-n", *options, str(book)]
    kept = {key: value for key, value in os.environ.items() if key != "BOOK_REPOSITORY"}
    kept["PYTHONPATH"] = str(ROOT / "src")
    return subprocess.run(command, env={**kept, **environment}, capture_output=True, text=True)


def test_a_book_in_order_builds_and_its_pages_hold_what_they_should(tmp_path):
    book = example_book(tmp_path)
    done = build(book, "-W", "--keep-going", BOOK_REPOSITORY=COURSE)
    assert done.returncode == 0, done.stdout + done.stderr
    html = book / "_build" / "html"
    chapter = (html / CHAPTER).with_suffix(".html").read_text()
    intro, status, claimed = (
        (html / f"{name}.html").read_text() for name in ("intro", "status", "claims")
    )
    for rung in LADDER:
        assert rung.title in intro
    assert "From loops to tensor cores: 2,100,000 times the rate" in intro
    assert "NVIDIA H200" in status and "580.1" in status and "1. An example" in status
    assert "does not hold" in claimed and "1 | 2" in claimed and CHAPTER[:-6] in claimed
    assert chapter.count('<figure class="align-default"') == 3 and "Fig. 1.1" in chapter
    colab = "https://colab.research.google.com/github/someone/course/blob/main/" + CHAPTER
    assert colab in chapter
    for text in (chapter, (html / "_sources" / CHAPTER).read_text()):
        assert COURSE in text
    assert f"{COURSE}/issues" in chapter and f'REPOSITORY = "{COURSE}"' in saved_setup(book)
    assert "three loops from what a library does?" in chapter and "minutes to read" in chapter
    assert "NBVAL_CHECK_OUTPUT" not in chapter and "[1 2]" in chapter
    assert "NBVAL_CHECK_OUTPUT" in (html / "_sources" / CHAPTER).read_text()
    assert "thebe.min" not in chapter and "unpkg.com" not in chapter
    assert "<math " in chapter and "MathJax" not in chapter and "cdn.jsdelivr" not in chapter
    assert "fontawesome" not in chapter and not list(html.rglob("*fontawesome*"))
    assert "Font Awesome" not in (html / "_static/styles/pydata-sphinx-theme.css").read_text()
    drawn = re.findall(r"\.(fa-[a-z-]+) \{ --icon", (ROOT / "_static/icons.css").read_text())
    used = set(re.findall(r"\bfa-(?!solid|brands|regular|lg)[a-z-]+", chapter))
    assert used and used <= set(drawn), used - set(drawn)
    styles = (html / "_static/course.css").read_text()
    assert "form.predict" in styles  # only a script makes one
    assert outside_requests(html) == []
    assert '["warp","warp","Thirty-two threads.","","",""]' in (html / SEARCH).read_text()
    assert SEARCH in (html / "search.html").read_text() and SEARCH not in intro
    assert not list(html.rglob("search[it]*.js"))  # Sphinx's own


def saved_setup(book):
    """Return the set-up cell of the chapter that a built book offers for download."""
    page = json.loads((book / "_build" / "html" / "_sources" / CHAPTER).read_text())
    return "".join(next(c["source"] for c in page["cells"] if c["cell_type"] == "code"))


@pytest.mark.parametrize(
    ("origin", "address"),
    [
        ("https://github.com/someone/course.git", COURSE),
        ("https://user:secret@github.com/someone/course", COURSE),
        ("git@github.com:someone/course.git", COURSE),
        ("ssh://git@github.com:22/someone/course.git", COURSE),
        ("git@gitlab.com:someone/course.git", "https://gitlab.com/someone/course"),
        ("/srv/git/github.com/someone/course.git", ""),
        ("https://github.com.example.org/someone/course", ""),
        ("https://example.org/github.com/someone/course", ""),
        (None, ""),
    ],
)
def test_a_build_takes_the_address_of_the_origin_on_a_forge(tmp_path, monkeypatch, origin, address):
    monkeypatch.delenv("BOOK_REPOSITORY", raising=False)
    (tmp_path / "_config.yml").write_text("repository: {branch: main}\n")
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    if origin:
        subprocess.run(["git", "-C", tmp_path, "remote", "add", "origin", origin], check=True)
    assert built_for(tmp_path) == address
    # The course's folder inside another repository: that one's origin is not the course's.
    inner = tmp_path / "inner"
    inner.mkdir()
    (inner / "_config.yml").write_text("repository: {branch: main}\n")
    assert built_for(inner) == ""
    (tmp_path / "_config.yml").write_text("repository: {url: https://gitlab.com/a/b.git}\n")
    assert built_for(tmp_path) == "https://gitlab.com/a/b"
    monkeypatch.setenv("BOOK_REPOSITORY", "https://git.example.org/c/d/")
    assert built_for(tmp_path) == "https://git.example.org/c/d"


@pytest.mark.long
def test_faults_are_named_and_without_an_address_nothing_leads_to_a_repository(tmp_path):
    """No -W, with which each warning fails a build: the request to another host fails it alone."""
    book = example_book(tmp_path)
    entries = [entry for entry in records() if entry["rung"] != "cuda_naive"]
    entries = [e for e in entries if (e["rung"], e["dtype"]) != ("cublas", "float16")]
    made = (Record(**each) for each in entries)
    results.save(book / "results" / "h200.json", made)
    notebook = example_notebook()
    notebook.cells[4].source += "\nprint(3)"
    notebook.cells[-2].outputs = []
    save(notebook, book / CHAPTER)
    with (book / "glossary.md").open("a") as page:
        page.write('\n<img src="https://example.org/a.png" alt="a">\n')
    done = build(book)
    assert done.returncode != 0
    for wanted in (
        "WARNING: tiled-ladder: results/h200.json holds no float32 record of rung cuda_naive",
        "WARNING: tiled-climb: no climb in float16 ends on its library",
        "WARNING: tiled-status: [1. An example](/chapters/01_example.ipynb): stale stamp",
        "WARNING: tiled-claims: no chapter or appendix has a claim in its stored outputs",
        "WARNING: glossary.html fetches https://example.org/a.png",
    ):
        assert wanted in done.stderr
    assert done.stderr.count("WARNING: ") == 5, done.stderr
    chapter = (book / "_build" / "html" / CHAPTER).with_suffix(".html").read_text()
    for word in ("colab.research", "source-buttons", "repository-button", "/issues/new", "/edit/"):
        assert word not in chapter
    assert 'REPOSITORY = ""' in saved_setup(book)


def test_an_unusable_address_stops_the_build(tmp_path, monkeypatch):
    errors = pytest.importorskip("sphinx.errors", reason="this environment builds no book")
    from tiled_matmul.book import sphinx

    monkeypatch.setenv("BOOK_REPOSITORY", "someone/course")
    with pytest.raises(errors.ConfigError, match="BOOK_REPOSITORY: 'someone/course' is not an add"):
        sphinx.use_address(SimpleNamespace(srcdir=example_book(tmp_path)), SimpleNamespace())


def test_counters_say_how_many_agree_and_which_do_not(tmp_path):
    stored = ROOT / "results" / "patterns" / "h200.json"
    text, faults = tables.counters_markdown(stored)
    cases = {each.case["name"]: each.values for each in store.load(stored, "patterns")}
    differing = [name for name, case in cases.items() if set(case) & {"rearranged", "unexplained"}]
    assert faults == [] and differing and all(name in text for name in differing)
    assert f"{len(cases)} launches of" in text and "NVIDIA H200" in text
    broken = tmp_path / "counters.json"
    broken.write_text('{"cases": {}}')
    assert "key 'format' is missing" in tables.counters_markdown(broken)[1][0]
    store.save(broken, "patterns", [])
    assert tables.counters_markdown(broken) == ("", ["counters.json holds no case"])


def test_the_records_say_what_is_of_earlier_code(tmp_path):
    text, faults = tables.records_markdown(ROOT)
    assert faults == [] and "| `results/h200.json` |" in text and "drawn shapes" in text
    folder = tmp_path / "results" / "host"
    folder.mkdir(parents=True)
    old, other = {"cuda_naive": "0f"}, {"date": "2026-11-22T12:00:00+00:00", "commit": "def"}
    stored = [entry({"n": 1}, {}, old, job="one"), entry({"n": 2}, {}, job="two", **other)]
    store.save(folder / "h200.json", "host", stored)
    text, faults = tables.records_markdown(tmp_path)
    assert faults == []
    assert "NVIDIA H200 | 2026-11-21 to 2026-11-22 (abc1234, def) | 2 | 1 |" in text
    store.save(folder / "h200.json", "host", [])
    assert "holds no record" in tables.records_markdown(tmp_path)[1][0]
    (folder / "h200.json").write_text("[]")
    assert "names no suite" in tables.records_markdown(tmp_path)[1][0]


def test_speed_is_read_from_the_results(tmp_path):
    text, faults = tables.speed_markdown(ROOT / "results" / "interpreter" / "h200.json")
    assert faults == [] and "128 × 128" in text and "Numba's own simulator" in text
    times = {"numba": [60.0], "launch": [1.0, 2.0, 3.0], "trace": [6.0]}
    path = tmp_path / "speed.json"
    taken = [
        entry({"way": way, "n": 64, "tile": 16}, {"seconds": seconds}, gpu="a CPU")
        for way, seconds in times.items()
    ]
    store.save(path, "interpreter", taken)
    text, _ = tables.speed_markdown(path)
    assert "| a launch | 2 | 30 |" in text and "(a CPU, 2026-11-21 (abc1234))" in text
    store.save(path, "interpreter", taken[1:])
    assert "numba" in tables.speed_markdown(path)[1][0]
    store.save(path, "interpreter", [])
    assert tables.speed_markdown(path)[1]
