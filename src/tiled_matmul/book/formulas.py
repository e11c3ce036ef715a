"""Render the book's formulas as MathML while it is built: a page then needs no script for them."""

from __future__ import annotations

import re
from html import escape
from xml.etree import ElementTree

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.math import get_node_equation_number

LOGGER = logging.getLogger(__name__)
# {,} between digits: TeX's way to write 49,152.
GROUPED = re.compile(r"(?<=\d)</mn><mrow><mo>&#x0002C;</mo></mrow><mn>(?=\d)")
BRACE = re.compile(r"(?<!\\)[{}]")
PARTS = {"frac": 2, "sub": 2, "sup": 2, "over": 2, "under": 2, "subsup": 3, "underover": 3}
UNKNOWN = re.compile(r"\\[A-Za-z]+")


def parts_of(tag: str) -> int:
    """Return how many parts a MathML element needs, such as 2 for the one of a fraction."""
    return PARTS.get(tag.rpartition("}m")[2], 0)


def mathml(formula: str, display: str = "inline") -> str:
    """Return a formula in TeX as a `<math>` element; `display` is "inline" or "block".

    Raises ValueError for what it cannot convert.
    """
    try:
        made = convert(formula, display=display)
    except Exception as error:  # the library's own, IndexError and others
        raise ValueError(f"cannot convert {formula!r}: {error!r}") from error
    if unknown := UNKNOWN.search(made):
        raise ValueError(f"cannot convert {formula!r}: {unknown[0]} is not known")
    braces = BRACE.findall(formula)
    short = [e.tag for e in ElementTree.fromstring(made).iter() if len(e) < parts_of(e.tag)]
    if short or braces.count("{") != braces.count("}"):
        raise ValueError(f"cannot convert {formula!r}: a part of it is missing")
    return GROUPED.sub(",", made)


def _body(node: nodes.Element, display: str) -> str:
    try:
        return mathml(node.astext().strip(), display)
    except ValueError as error:
        LOGGER.warning("%s", error, location=node, type="tiled_matmul")
        return f"<code>{escape(node.astext())}</code>"


def visit_math(translator, node: nodes.math) -> None:
    translator.body.append(f'<span class="math">{_body(node, "inline")}</span>')
    raise nodes.SkipNode


def visit_displaymath(translator, node: nodes.math_block) -> None:
    translator.body.append(translator.starttag(node, "div", CLASS="math"))
    if node["number"]:
        number = get_node_equation_number(translator, node)
        translator.body.append(f'<span class="eqno">({number})')
        translator.add_permalink_ref(node, "Link to this equation")
        translator.body.append("</span>")
    translator.body.append(f"{_body(node, 'block')}</div>\n")
    raise nodes.SkipNode


def setup(app: Sphinx) -> None:
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_displaymath, None))
