"""Formulas become MathML while the book is built, and icons are the course's own."""

import pytest

from tiled_matmul.book.formulas import mathml
from tiled_matmul.book.lighten import lighten, without_icons


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


def test_a_built_book_loses_the_library_and_nothing_else(tmp_path):
    static = tmp_path / "_static"
    for name in ("scripts/fontawesome.js", "scripts/theme.js", "vendor/fontawesome/a.woff2"):
        (static / name).parent.mkdir(parents=True, exist_ok=True)
        (static / name).write_text("x")
    (static / "styles").mkdir()
    toggle = '<summary><span class="toctree-toggle" role="presentation"></span></summary>'
    (tmp_path / "page.html").write_text(f"<p>text</p>{toggle}")
    (static / "styles/theme.css").write_text(".fa-sun{content:'x'}p{margin:0}")
    lighten(tmp_path)
    left = {path.relative_to(static).as_posix() for path in static.rglob("*") if path.is_file()}
    assert left == {"scripts/theme.js", "styles/theme.css"}
    assert (static / "styles/theme.css").read_text() == "p{margin:0}"
    named = toggle.replace("<summary>", '<summary aria-label="Its pages">')
    assert (tmp_path / "page.html").read_text() == f"<p>text</p>{named}"
