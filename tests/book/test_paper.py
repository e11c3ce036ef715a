"""The printed book's one page: order, links, hints, and what stays on the screen."""

import pytest
from bs4 import BeautifulSoup

from tiled_matmul.book.paper import Page, compose, pages

NAV = """<nav class="bd-links"><a class="reference" href="#">Home</a>
<p class="caption">Loops</p><a class="reference" href="ch/one.html">1. One</a>
<p class="caption">Practice</p><a class="reference" href="exercises/one.html">Exercises: one</a>
<a class="reference" href="exercises/solutions/one.html">Solutions: one</a>
<a class="reference" href="teaching.html">For teachers</a></nav>"""
HINT = "<details><summary>Hint 1</summary><p>Think.</p></details>"
EXERCISE = f"""<section id="{{0}}"><h1>{{0}}</h1><p>After the chapter.</p>
<section id="first"><h2>01.1</h2><p>The task.</p><div class="cell"><pre>{{1}}</pre></div>
{HINT}</section></section>"""
BUILT = {
    "home.html": '<section id="home"><h1>Home</h1><a href="ch/one.html#sums">sums</a></section>',
    "ch/one.html": """<section id="one"><h1>1. One</h1>
<details class="hide"><summary>code</summary><pre>import os</pre></details>
<section id="sums"><h2><span class="section-number">1.1. </span>Sums</h2>
<a href="../home.html">home</a><a href="../genindex.html">index</a><a href="https://a.b/">web</a>
<svg viewBox="0 0 1 1"><defs><path id="p"/></defs><use xlink:href="#p" clip-path="url(#p)"/></svg>
<details><summary><b>Predict.</b> Two?</summary><p>Yes, two.</p></details></section></section>""",
    "exercises/one.html": EXERCISE.format("exercises-one", "pass"),
    "exercises/solutions/one.html": EXERCISE.format("solutions-one", "return 42"),
    "teaching.html": '<section id="for-teachers"><h1>For teachers</h1></section>',
}


@pytest.fixture
def root(tmp_path):
    config = "title: 'Small: a book'\nauthor: A & B\ncopyright: '2026'\n"
    (tmp_path / "_config.yml").write_text(config)
    html = tmp_path / "_build" / "html"
    for name, text in BUILT.items():
        path = html / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f'{NAV}<article class="bd-article">{text}</article>')
    (html / "index.html").write_text('<meta http-equiv="Refresh" content="0; url=home.html"/>')
    (html / "_static").mkdir()
    (html / "_static" / "favicon.svg").write_text("<svg></svg>")
    return tmp_path


def printed(root, *left_out):
    order = [page for page in pages(root / "_build" / "html") if page.path not in left_out]
    return BeautifulSoup(compose(root, order), "html.parser")


def test_pages_come_in_the_order_of_the_book_with_the_solutions_last(root):
    found = [(page.path, page.part) for page in pages(root / "_build" / "html")]
    assert found == [
        ("home.html", ""),
        ("ch/one.html", "Loops"),
        ("exercises/one.html", "Practice"),
        ("teaching.html", "Practice"),
        ("exercises/solutions/one.html", "Solutions"),
    ]


def test_contents_name_parts_pages_and_sections_of_numbered_pages(root):
    entries = printed(root).select("#contents a")
    assert [(entry["href"], entry.span.get_text()) for entry in entries[:4]] == [
        ("#home", "Home"),
        ("#part-loops", "Loops"),
        ("#ch-one", "1. One"),
        ("#ch-one--sums", "1.1. Sums"),
    ]
    assert all(
        entry["href"] == f"#{entry.select_one('[data-page]')['data-page']}" for entry in entries
    )


def test_links_lead_to_places_in_the_page(root):
    book = printed(root)
    assert [a["href"] for a in book.select("#home a")] == ["#ch-one--sums"]
    assert [a["href"] for a in book.select("#ch-one a")] == ["#home", "https://a.b/"]
    assert "index" in book.select_one("#ch-one").get_text()
    drawn = book.select_one("use")
    assert (drawn["xlink:href"], drawn["clip-path"]) == ("#ch-one--p", "url(#ch-one--p)")


def test_a_link_to_no_place_is_an_error(root):
    path = root / "_build" / "html" / "home.html"
    path.write_text(path.read_text().replace("#sums", "#none"))
    with pytest.raises(ValueError, match="lead nowhere: ch-one--none$"):
        printed(root)


def test_answers_are_open_and_folded_code_is_gone(root):
    chapter = printed(root).select_one("#ch-one")
    assert "import os" not in chapter.get_text()
    assert chapter.find("details") is None
    assert chapter.select_one(".opened").get_text() == "Predict. Two?Yes, two."
    assert [tag.name for tag in chapter.find_all(["h1", "h2", "h3"])] == ["h2", "h3"]


def test_hints_and_answers_stand_at_the_end_alone(root):
    book = printed(root)
    task, answer = book.select("#exercises-one--first, #exercises-solutions-one--first")
    assert task.get_text(" ", strip=True) == "01.1 The task. pass Hints and an answer: page"
    assert task.a["href"] == f"#{answer['id']}"
    assert answer.get_text(" ", strip=True) == "01.1 The exercise: page Hint 1 Think. return 42"
    assert answer.a["href"] == f"#{task['id']}"


def test_without_solutions_exercises_keep_their_hints(root):
    book = printed(root, "exercises/solutions/one.html")
    text = book.select_one("#exercises-one").get_text(" ", strip=True)
    assert text.endswith("The task. pass Hint 1 Think.")


def test_titles_are_quoted_in_running_heads(root):
    quoted = Page("home.html", r'The "best" \ way', "")
    page = Page("ch/one.html", "1. One", "Loops")
    assert r'@top-right { content: "The \"best\" \\ way"; }' in compose(root, [quoted, page])
