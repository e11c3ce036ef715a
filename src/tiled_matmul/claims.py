"""A claim about performance, where it comes from, and whether this machine reproduces it.

A notebook cell that ends on `claim(...)` shows the verdict. The claim also goes into the cell's
stored output under a MIME type of its own, so that the book's page of claims is made from what the
reference GPU really said.
"""

from __future__ import annotations

import html
from dataclasses import asdict, dataclass

MIME = "application/vnd.tiled-matmul.claim+json"
VERDICTS = {True: "holds here", False: "does not hold here", None: "not judged here"}


@dataclass(frozen=True)
class Claim:
    """`holds` is None where this machine cannot judge, as the simulators cannot judge time."""

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
        kind = {True: "holds", False: "fails", None: "open"}[self.holds]
        page = (
            f'<div class="claim claim-{kind}"><p><strong>Claim.</strong> {html.escape(self.text)} '
            f"<em>({html.escape(self.source)})</em></p>"
            f'<p><span class="verdict">{self.verdict}</span> {html.escape(self.evidence)}</p></div>'
        )
        return {"text/plain": repr(self), "text/html": page, MIME: asdict(self)}


def claim(text: str, *, source: str, holds: bool | None, evidence: str) -> Claim:
    """Return a claim with this machine's verdict, to be the last expression of a cell.

    `evidence` is the measured or counted number behind the verdict, in words. Raises TypeError if
    `holds` is not True, False or None, and ValueError if a text is empty.
    """
    if holds is not None and not isinstance(holds, bool):
        raise TypeError(f"holds must be True, False or None, got {holds!r}")
    for name, value in (("text", text), ("source", source), ("evidence", evidence)):
        if not value.strip():
            raise ValueError(f"{name} must not be empty")
    return Claim(text, source, holds, evidence)
