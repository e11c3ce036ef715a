"""A claim about performance, where it comes from, and whether this machine reproduces it.

A notebook cell that ends on `claim(...)` shows the verdict, one that ends on `claims_table(...)`
those of several claims. Claims are also stored in the cell's output under a MIME type of their own,
from which the book's page of claims is built with the reference GPU's verdicts.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import asdict, dataclass

MIME = "application/vnd.tiled-matmul.claim+json"
VERDICTS = {True: "holds here", False: "does not hold here", None: "not judged here"}
STYLES = {True: "holds", False: "fails", None: "open"}


@dataclass(frozen=True)
class Claim:
    """`holds` is None if this machine cannot judge the claim, such as timing in the simulators."""

    text: str
    source: str
    holds: bool | None
    evidence: str

    @property
    def verdict(self) -> str:
        return VERDICTS[self.holds]

    def __repr__(self) -> str:
        return f"Claim: {self.text} ({self.source})\n{self.verdict}: {self.evidence}"

    def _repr_mimebundle_(self, **_: object) -> dict:
        page = (
            f'<div class="claim claim-{STYLES[self.holds]}">'
            f"<p><strong>Claim.</strong> {html.escape(self.text)} "
            f"<em>({html.escape(self.source)})</em></p>"
            f'<p><span class="verdict">{self.verdict}</span> {html.escape(self.evidence)}</p></div>'
        )
        return {"text/plain": repr(self), "text/html": page, MIME: asdict(self)}


@dataclass(frozen=True)
class Claims:
    """Claims from one source, in one table."""

    claims: tuple[Claim, ...]

    def __repr__(self) -> str:
        return "\n".join(map(repr, self.claims))

    def _repr_mimebundle_(self, **_: object) -> dict:
        rows = "".join(
            f'<tr><td><span class="verdict verdict-{STYLES[each.holds]}">{each.verdict}</span></td>'
            f'<td style="text-align:left">{html.escape(each.text)}</td>'
            f'<td style="text-align:left">{html.escape(each.evidence)}</td></tr>'
            for each in self.claims
        )
        page = (
            f"<p>Claims of <em>{html.escape(self.claims[0].source)}</em>:</p>"
            '<div class="scroll tiled-claims"><table><thead><tr><th>verdict</th>'
            '<th style="text-align:left">claim</th><th style="text-align:left">evidence</th></tr>'
            f"</thead><tbody>{rows}</tbody></table></div>"
        )
        return {"text/plain": repr(self), "text/html": page, MIME: [*map(asdict, self.claims)]}


def claim(text: str, *, source: str, holds: bool | None, evidence: str) -> Claim:
    """Return a claim with this machine's verdict, to be the last expression of a cell.

    `evidence` is a text with the measured or counted number behind the verdict. Raises TypeError if
    `holds` is not True, False or None, and ValueError if a text is empty.
    """
    if holds is not None and not isinstance(holds, bool):
        raise TypeError(f"holds must be True, False or None, got {holds!r}")
    for name, value in (("text", text), ("source", source), ("evidence", evidence)):
        if not value.strip():
            raise ValueError(f"{name} must not be empty")
    return Claim(text, source, holds, evidence)


def claims_table(claims: Sequence[Claim]) -> Claims:
    """Return one table of claims from the same source, to be the last expression of a cell.

    Raises ValueError if there is no claim, or if the sources differ.
    """
    sources = sorted({each.source for each in claims})
    if len(sources) != 1:
        raise ValueError(f"a table of claims has one source, got {', '.join(sources) or 'none'}")
    return Claims(tuple(claims))
