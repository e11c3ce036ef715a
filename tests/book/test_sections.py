"""The index of the search page, and the library that searches it."""

import hashlib
import json
import re

import pytest

from tiled_matmul.book.sections import JS, index, sections, write_search

# Of the files of minisearch 7.2.0 on npm: js/README.md says which.
HASHES = {
    "minisearch.js": "03c27931eb603af1d3358579e9885eafdb6a2f5fa9929557b3e77d7e99d06d03",
    "minisearch.LICENSE.txt": "70d37354d6395629fb99edb28cb37a5d356ffa24a48cd02a5def5b83a300a899",
}
LISTING = '<div class="highlight-{}"><div class="highlight"><pre><span></span>{}</pre></div></div>'
FOLD = """<details class="admonition hide above-input"><summary>
<p class="collapsed admonition-title">code</p><p class="expanded admonition-title">fold</p>
</summary>{}</details>"""


def page(*parts):
    return f'<nav><h1>No</h1></nav><article class="bd-article">{"".join(parts)}</article><p>No</p>'


def section(place, title, *parts):
    link = f'<a class="headerlink" href="#{place}">#</a>'
    return f'<section id="{place}"><h2>{title}{link}</h2>{"".join(parts)}</section>'


def read(*parts):
    return [tuple(vars(one).values()) for one in sections(page(*parts))]


def test_the_library_is_what_npm_has_and_its_licence_is_beside_it():
    for name, digest in HASHES.items():
        assert hashlib.sha256((JS / name).read_bytes()).hexdigest() == digest
    assert "`minisearch` 7.2.0" in (JS / "README.md").read_text()
    assert "Permission is hereby granted" in (JS / "minisearch.LICENSE.txt").read_text()


def test_a_section_has_what_stands_below_its_own_heading():
    inner = section("b", '<span class="section-number">1.1. </span>Inner', "<p>two</p>")
    assert read(section("a", "Outer", "<p>one</p>", inner, "<p>three</p>")) == [
        ("a", "Outer", "one three", "", "", ""),
        ("b", "1.1. Inner", "two", "", "", ""),
    ]


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<p>A <b>bold</b>er word</p><p>and<br>more</p>", "A bolder word and more"),
        ("<ul><li>one<li>two</ul><table><tr><td>3<td>4</table>", "one two 3 4"),
        ('<p>the <code><span class="pre">a</span> <span>@ b</span></code>.</p>', "the `a @ b`."),
        ("<p>a ` b</p>", "a ' b"),
        ("<p>x</p><svg><text>y</text></svg><style>p {}</style><script>z()</script>", "x"),
        ("<p>2 &lt; 3 &amp; &#x66;</p>", "2 < 3 & f"),
        ("<h4>Second</h4>", "Second"),
        (LISTING.format("myst-ansi", "printed"), "printed"),
        ("<details><summary>Predict.</summary><p>32</p></details>", "Predict. 32"),
    ],
)
def test_text(html, text):
    assert read(section("a", "A", html)) == [("a", "A", text, "", "", "")]


def test_code_keeps_its_lines_and_folded_code_its_words_once_without_imports():
    visible = LISTING.format("python", "def <b>f</b>(x):\n\n    return tl.dot(x)  \n")
    folded = LISTING.format(
        "python",
        "from a import (\n    hidden,\n)\nimport hidden2\nfor y in f(tl.dot):\n    g_h(y, g_h, 1)",
    )
    ((*_, text, code, words, _),) = read(section("a", "A", visible, FOLD.format(folded)))
    assert (text, code, words) == ("", "def f(x):\n    return tl.dot(x)", "g_h")


def test_stressed_words_are_listed_too():
    (found,) = read(section("a", "A", "<p>Called an <em>L2 swizzle</em>, or <em>SM</em>.</p>"))
    assert found == ("a", "A", "Called an L2 swizzle, or SM.", "", "", "L2 swizzle SM")


def test_of_a_solution_the_index_has_what_its_exercise_has_not(tmp_path):
    def write(name, *parts):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(page(*parts))

    task = "<p>The <em>task</em></p>"
    drawn = FOLD.format(LISTING.format("python", "draw()"))
    for name, line in {"exercises": "...", "exercises/solutions": "return 2"}.items():
        code = LISTING.format("python", f"def f():\n    {line}")
        write(f"{name}/01.html", section("a", "A", task, code, drawn))
    write("glossary.html", section("warp", "warp"))
    write("chapters/01.html", section("one", "One"))
    write("chapters/a1.html", section("two", "Two"))
    names = ["glossary", "exercises/solutions/01", "exercises/01", "chapters/01", "chapters/a1"]
    made = index(tmp_path, names)
    assert [(one["page"], one["kind"]) for one in made] == [
        ("chapters/01.html", "chapter"),
        ("chapters/a1.html", "other"),
        ("exercises/01.html", "other"),
        ("exercises/solutions/01.html", "solution"),
        ("glossary.html", "glossary"),
    ]
    assert made[2]["sections"] == [["a", "A", "The task", "def f():\n    ...", "draw", "task"]]
    assert made[3]["sections"] == [["a", "A", "", "    return 2", "", ""]]
    # A learner's copy has no solutions, and the index is a script.
    write_search(tmp_path, ["exercises/01", "glossary"])
    script = (tmp_path / "_static/search/sections.js").read_text()
    assert json.loads(re.fullmatch(r"const BOOK = (.*);\n", script)[1]) == made[2::2]
    assert {path.name for path in (tmp_path / "_static/search").iterdir()} == {
        *HASHES,
        "search.js",
        "sections.js",
    }
