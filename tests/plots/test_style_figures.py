"""plots/style.py: figures follow the page, stay apart, and never change by themselves."""

import re
from xml.etree import ElementTree

import pytest

from tiled_matmul.plots import style


@style.styled
def example(shift=0.0, alt="two <matrices>"):
    fig, ax = style.draw(2.0)
    style.bare(ax, 12, 6)
    style.matrix(ax, 4, 5, style.A, y=1, shade={(1, 2): 0.5}, tile=(2, 2))
    style.matrix(ax, 2, 2, style.B, x=6 + shift, y=1, shade={(0, 1): 1.0, (1, 0): 0.5})
    style.title(fig, "A finding that is long enough to need more than one line in the figure")
    return style.finish(fig, alt)


def test_the_svg_is_well_formed_named_and_follows_the_pages_colour():
    svg = example().svg
    root = ElementTree.fromstring(svg)
    assert root.get("role") == "img" and root.get("aria-label") == "two <matrices>"
    assert "currentColor" in svg and style.INK not in svg
    assert "<style" not in svg and "<metadata" not in svg and "<?xml" not in svg


def test_drawing_twice_gives_the_same_bytes():
    assert example().svg == example().svg


def test_ids_of_two_figures_never_meet_and_references_resolve():
    first, second = example().svg, example(shift=1).svg
    ids = [set(re.findall(r'\bid="([^"]+)"', svg)) for svg in (first, second)]
    assert ids[0] and not ids[0] & ids[1]
    for svg, known in zip((first, second), ids, strict=True):
        assert set(re.findall(r'(?:href="#|url\(#)([^")]+)', svg)) <= known


def test_a_figure_without_alternative_text_is_refused():
    with pytest.raises(ValueError, match="alternative text"):
        example(alt=" ")


def test_drawing_leaves_matplotlibs_settings_alone():
    import matplotlib

    before = dict(matplotlib.rcParams)
    example()
    assert dict(matplotlib.rcParams) == before
