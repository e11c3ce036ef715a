"""Citations are links in notebooks and citations in the book, and each way loses nothing."""

import json

import pytest

from tiled_matmul import ROOT
from tiled_matmul.book.citations import RAW_ROLE, SOURCES, as_citations, as_links, sources


@pytest.mark.parametrize("key", sources(ROOT / SOURCES))
def test_a_citation_becomes_a_link_and_a_citation_again(key):
    text = f"So it is {{cite:p}}`{key}`. And [a link](../glossary.md#tile), `{{cite}}` [(no)](x)."
    linked = as_links(text)
    assert f'"cite:{key}")' in linked and not RAW_ROLE.search(linked)
    assert as_links(linked) == linked and as_citations(linked) == text
    in_notebook = json.dumps({"source": [linked]}, ensure_ascii=False)
    assert json.loads(as_citations(in_notebook)) == {"source": [text]}
    label, address = sources(ROOT / SOURCES)[key]
    assert address.startswith(("http", "../references.bib")) and len(label) < 80 and label in linked


def test_several_keys_and_an_unknown_one():
    linked = as_links("{cite:p}`goto2008,boehm2022`")
    assert as_citations(linked) == "{cite:p}`goto2008` {cite:p}`boehm2022`"
    assert linked.startswith("[(Goto and van de Geijn 2008)](https://doi.org/")
    with pytest.raises(ValueError, match="'nobody1999' is not in references.bib"):
        as_links("{cite:p}`nobody1999`")
