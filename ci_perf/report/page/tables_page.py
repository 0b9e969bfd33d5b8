"""Sentences and tables as one page of HTML, in the style of the page of a comparison.

A sentence right before a table is its heading.
"""

from ci_perf.report.page import styled
from ci_perf.report.tables import Listing, Page, Table


def render(page: Page, *, tone: str) -> str:
    """Return the page; `tone`, that of its first sentence, is "worse", "better" or "same"."""
    first, *rest = page
    parts: list[dict[str, object]] = []
    for part, following in zip(rest, [*rest[1:], None], strict=True):
        if isinstance(part, Table):
            parts.append({"kind": "table", "table": part})
        elif isinstance(part, Listing):
            parts.append({"kind": "listing", "text": part.text})
        else:
            kind = "heading" if isinstance(following, Table) else "sentence"
            parts.append({"kind": kind, "phrase": part})
    return styled("tables.html.jinja", headline=first, parts=parts, tone=tone)
