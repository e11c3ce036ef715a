"""claims.py: several claims in one table. Single claims are in test_notebook.py."""

import nbformat
import pytest
from book_example import example_notebook

from tiled_matmul.book import generated as tables
from tiled_matmul.measure.claims import MIME, claim, claims_table

JUDGED = [
    claim("A < B", source="a page", holds=True, evidence="1 < 2"),
    claim("B < A", source="a page", holds=False, evidence="not 2 < 1"),
    claim("A is fast", source="a page", holds=None, evidence="no clock"),
]


def test_a_table_has_each_claim_with_its_verdict():
    bundle = claims_table(JUDGED)._repr_mimebundle_()
    page = bundle["text/html"]
    assert page.count("<tr>") == 4 and page.count("a page") == 1
    for kind, verdict in (
        ("holds", "holds here"),
        ("fails", "does not hold here"),
        ("open", "not judged here"),
    ):
        assert f'<span class="verdict verdict-{kind}">{verdict}</span>' in page
    assert "A &lt; B" in page and "not 2 &lt; 1" in page
    assert bundle["text/plain"] == "\n".join(map(repr, JUDGED))


def test_the_page_of_claims_finds_those_in_a_table():
    notebook = example_notebook()
    notebook.cells[-2].outputs[0].data = claims_table(JUDGED)._repr_mimebundle_()
    nbformat.validate(notebook)
    assert [found["holds"] for found in tables.claims_of(notebook)] == [True, False, None]
    assert tables.claims_of(notebook)[1] == {
        "text": "B < A",
        "source": "a page",
        "holds": False,
        "evidence": "not 2 < 1",
    }


def test_a_single_claim_and_a_table_store_the_same():
    bundle = claims_table(JUDGED[:1])._repr_mimebundle_()
    assert bundle[MIME] == [JUDGED[0]._repr_mimebundle_()[MIME]]


def test_no_claim_and_claims_of_two_sources_are_refused():
    with pytest.raises(ValueError, match="got none"):
        claims_table([])
    other = claim("C", source="another page", holds=True, evidence="c")
    with pytest.raises(ValueError, match="got a page, another page"):
        claims_table([*JUDGED, other])
