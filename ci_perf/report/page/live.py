"""A check that is still running, as a page: what runs now, the time left, and rows once decided."""

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from ci_perf.model.comparison import Row
from ci_perf.report import page, phrases
from ci_perf.report.escape import MAX_SENTENCE_CHARS, clean, tail

REFRESH_S = 3
_ROWS = '{% from "page_parts.html.jinja" import results with context %}{{ results() }}'


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a check is: what runs now, how much is done, how long it takes, and what was told."""

    now: str
    counted: str
    left: str
    notes: Sequence[str] = ()
    undecided: Sequence[str] = ()


def rows(decided: Sequence[Row]) -> Markup:
    """Draw rows once: a page of many takes a tenth of a second."""
    if not decided:
        return Markup("")
    text = page.environment().from_string(_ROWS).render(page.results(decided))
    return Markup(text)  # noqa: S704  the template has escaped it


def render(progress: Progress, drawn: Markup, *, follows: bool) -> str:
    """Return the page as it is now, with the rows that are drawn; whether it loads itself anew."""
    return page.styled(
        "live.html.jinja",
        follows=follows,
        refresh_s=REFRESH_S,
        now=clean(progress.now, limit=MAX_SENTENCE_CHARS),
        counted=progress.counted,
        left=progress.left,
        notes=tail("\n".join(progress.notes)),
        undecided=phrases.joined((name,) for name in progress.undecided),
        results=drawn,
    )
