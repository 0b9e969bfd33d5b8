"""What GitHub is told beside the report: titles."""

from collections.abc import Sequence

from ci_perf.model.comparison import Comparison
from ci_perf.report import headline, tables
from ci_perf.report.escape import Words, clean
from ci_perf.report.headline import HeadlineWord
from ci_perf.report.sentences import say
from ci_perf.report.sheet import make_sheet

_WORST_FIRST = (HeadlineWord.FAIL, HeadlineWord.NO_ANSWER, HeadlineWord.PASS)
_MAX_NAME_CHARS = 50


def summarise_machines(named: Sequence[tuple[str, Comparison]]) -> str:
    """Say in one line what the comparisons of several machines say together; empty for one."""
    if len(named) < 2:
        return ""
    words = {name: headline.choose_word(make_sheet(comparison)) for name, comparison in named}
    worst = min(words.values(), key=_WORST_FIRST.index)
    names = [(clean(name, limit=_MAX_NAME_CHARS),) for name in words if words[name] is worst]
    pauses = sorted(headline.introduce_pause(comparison) for _, comparison in named)
    # The gate is on if one machine of them has no pause.
    title = Words(f"{pauses[0]}{headline.ICON[worst]} {worst.value}")
    return tables.join_markdown([say("machines", title=title, names=names, every=len(words)), ()])


def write_title(comparison: Comparison, *, base: str = "", max_chars: int = 255) -> str:
    """Say the verdict, and for which branch it holds, in one line of plain text."""
    verdict = headline.render(comparison)
    ending = f" · for {clean(base, limit=_MAX_NAME_CHARS)}" if base else ""
    room = max_chars - len(ending)
    return (verdict if len(verdict) <= room else f"{verdict[: room - 1]}…") + ending
