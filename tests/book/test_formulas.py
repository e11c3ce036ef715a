"""Formulas become MathML while the book is built, and icons are the course's own."""

import pytest

from tiled_matmul.book.formulas import mathml
from tiled_matmul.book.lighten import lighten, names_in, without_icons, without_unused


def test_a_formula_becomes_one_math_element():
    made = mathml(r"\gamma_K = \frac{Ku}{1 - Ku}", "block")
    assert made.startswith("<math ") and made.endswith("</math>") and 'display="block"' in made
    assert "<mfrac>" in made and "<msub>" in made


def test_digits_grouped_by_a_braced_comma_are_one_number():
    assert "<mn>49,152</mn>" in mathml("3 = 49{,}152")
    assert "<mn>1,049,152</mn>" in mathml("1{,}049{,}152")


@pytest.mark.parametrize("formula", [r"\unheard{x}", r"\frac{1}", "x^{2", "{"])
def test_what_cannot_be_converted_is_refused_and_quoted(formula):
    with pytest.raises(ValueError) as caught:
        mathml(formula)
    assert repr(formula) in str(caught.value)


def test_rules_of_icons_alone_go():
    css = (
        ".fa-sun:before,.fa-moon:before{content:'x'}"
        "@font-face{font-family:Font Awesome\\ 6 Free;src:url(a)}"
        ".fade{opacity:0}.fa-lg,.note{margin:0}nav .fa-sun{color:red}"
        "@media print{.far{width:1em}.wide{width:2em}}"
    )
    rest = ".fade{opacity:0}.fa-lg,.note{margin:0}nav .fa-sun{color:red}"
    assert without_icons(css) == f"{rest}@media print{{.wide{{width:2em}}}}"


def test_rules_stay_if_one_selector_has_only_names_that_occur():
    css = (
        "/* a note */a{b:c}.in,.out>p{d:e}.out:hover{f:g}#top .in:not(.out){h:i}"
        '[class~="out"]{j:k}.tip-left{l:m}.tipless,.in.out{n:o}@font-face{font-family:out}'
        "@media print{.out{p:q}}@media (min-width:2em){.in{r:s}.out{t:u}}@keyframes out{to{v:w}}"
    )
    left = (
        'a{b:c}.in{d:e}#top .in:not(.out){h:i}[class~="out"]{j:k}.tip-left{l:m}'
        "@font-face{font-family:out}@media (min-width:2em){.in{r:s}}@keyframes out{to{v:w}}"
    )
    assert without_unused(css, {"in", "top", "tip-"}) == left
    assert without_unused(left, {"in", "top", "tip-"}) == left


def test_names_stand_in_pages_and_in_scripts(tmp_path):
    (tmp_path / "deep").mkdir()
    page = "<p class='one two' id=\"three\">four</p><script>set(`five-${x}`)</script>"
    (tmp_path / "deep/page.html").write_text(page)
    (tmp_path / "a.js").write_text('element.classList.add("six")')
    found = names_in(tmp_path)
    assert {"one", "two", "three", "five-", "six"} <= found and "four" not in found


def test_a_built_book_loses_the_library_and_nothing_else(tmp_path):
    static = tmp_path / "_static"
    for name in ("scripts/fontawesome.js", "scripts/theme.js", "vendor/fontawesome/a.woff2"):
        (static / name).parent.mkdir(parents=True, exist_ok=True)
        (static / name).write_text("x")
    (static / "styles").mkdir()
    toggle = '<summary><span class="toctree-toggle" role="presentation"></span></summary>'
    first = '<script src="_static/documentation_options.js?v=1"></script><script>let a;</script>'
    late = '<script defer src="_static/scripts/theme.js"></script>'
    scripts = f'{first}<script data-a="b" src="_static/scripts/theme.js"></script>{late}'
    (tmp_path / "page.html").write_text(f"{scripts}<p>text</p>{toggle}")
    (static / "styles/theme.css").write_text(".fa-sun{content:'x'}p{margin:0}")
    lighten(tmp_path)
    left = {path.relative_to(static).as_posix() for path in static.rglob("*") if path.is_file()}
    assert left == {"scripts/theme.js", "styles/theme.css"}
    assert (static / "styles/theme.css").read_text() == "p{margin:0}"
    named = toggle.replace("<summary>", '<summary aria-label="Its pages">')
    scripts = f'{first}<script defer data-a="b" src="_static/scripts/theme.js"></script>{late}'
    assert (tmp_path / "page.html").read_text() == f"{scripts}<p>text</p>{named}"
