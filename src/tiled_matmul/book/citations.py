"""Citations that every reader of Markdown can read, and that the book turns into its own.

A notebook holds a citation as a link to its source, whose title names the key in references.bib:
`[(Goto and van de Geijn 2008)](https://doi.org/… "cite:goto2008")`. JupyterLab and Colab show the
link. `notebooks sync` writes it in place of an author's ``{cite:p}`goto2008` ``, and the book's
build puts that back, so its pages have numbered citations and a bibliography.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from tiled_matmul import ROOT

SOURCES = "references.bib"
ROLE = re.compile(r"\{cite:p\}`([\w, -]+)`")
# In the JSON of a notebook, quotation marks are escaped.
LINK = re.compile(r'\[\([^\]]*\)\]\(\S+ \\?"cite:([\w, -]+)\\?"\)')
# What only the book's Markdown knows: roles, directives, and the names of equations.
RAW_ROLE = re.compile(
    r"\{[\w:-]+\}`[^`]+`|^(?:```+|:::+)\{[\w-]+\}.*$|^\$\$ *\([\w-]+\)$", re.MULTILINE
)


def as_links(text: str, root: Path = ROOT) -> str:
    """Return Markdown with links in place of citations. Raises ValueError for an unknown key."""

    def linked(role: re.Match) -> str:
        known, links = sources(root / SOURCES), []
        for key in re.split(r",\s*", role[1]):
            if key not in known:
                raise ValueError(f"{key!r} is not in {SOURCES}")
            label, address = known[key]
            links.append(f'[({label})]({address} "cite:{key}")')
        return " ".join(links)

    return ROLE.sub(linked, text)


def as_citations(text: str) -> str:
    """Return Markdown, or a notebook's JSON, with citations in place of links to sources."""
    return LINK.sub(lambda link: f"{{cite:p}}`{link[1]}`", text)


@cache
def sources(file: Path) -> dict[str, tuple[str, str]]:
    """Return {key: (label, address)} of a BibTeX file; without a URL, the address is the file.

    A label is authors and year, or where one is missing the title as well.
    """
    from pybtex.database import parse_file

    found = {}
    for key, entry in parse_file(str(file)).entries.items():
        people = entry.persons.get("author") or entry.persons.get("editor") or []
        names = [_plain(" ".join([*one.prelast_names, *one.last_names])) for one in people]
        who = f"{names[0]} et al." if len(names) > 2 else " and ".join(names)
        title, year = _plain(entry.fields["title"]), entry.fields.get("year")
        said = [who, year] if who and year else [who and f"{who},", title.partition(":")[0], year]
        label = " ".join(filter(None, said))
        address = entry.fields.get("url")
        if not address and "doi" in entry.fields:
            address = f"https://doi.org/{entry.fields['doi']}"
        found[key] = label, address or f"../{file.name}"
    return found


def _plain(text: str) -> str:
    return re.sub(r"[{}\\]", "", text)
