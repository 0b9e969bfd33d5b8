"""What a pull request does to the baselines: a bar that is moved must be seen to move."""

from collections.abc import Sequence
from dataclasses import dataclass

from ci_perf.model import metrics
from ci_perf.model.comparison import Comparison
from ci_perf.model.summary import Numbers
from ci_perf.report import escape, headline, markdown, units, words
from ci_perf.report.escape import Markdown, Words

_MAX_ROWS = 40
_MAX_PATH_CHARS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """One baseline file that a pull request adds, changes or removes; foreign data.

    ``before`` and ``after`` are headlines, empty where there is no such file. ``trouble`` says why
    they are not known.
    """

    path: str
    before: Numbers
    after: Numbers
    trouble: str = ""


def note(edits: Sequence[Edit], own: Comparison | None, *, is_judged_by_base: bool) -> Markdown:
    """Say below the headline that the baselines are changed, and what they would say themselves.

    ``own`` is the same run by the baselines of the pull request.
    """
    if not edits:
        return Markdown("")
    counted = f"{len(edits):,} baseline{'s' if len(edits) > 1 else ''}"
    said = [
        Words(
            f"> ✏️ This pull request changes {counted}: a reviewer decides whether that is meant. "
        ),
        *_judged_by(own, is_judged_by_base=is_judged_by_base),
    ]
    return markdown.phrase(tuple(said))


def folded(edits: Sequence[Edit]) -> Markdown:
    """Show old and new headlines, folded; only as many rows as people read."""
    rows = [row for edit in edits for row in _rows(edit)]
    if not rows:
        return Markdown("")
    lines = [
        "<details><summary>Baselines that this pull request changes: old → new</summary>",
        "",
        "| Baseline | Metric | Base branch | This pull request | Change |",
        "|---|---|---:|---:|---:|",
        *(f"| {' | '.join(row)} |" for row in rows[:_MAX_ROWS]),
        "",
    ]
    if len(rows) > _MAX_ROWS:
        lines += [f"{_MAX_ROWS} of {len(rows):,} rows shown; the diff has all.", ""]
    return Markdown("\n".join([*lines, "</details>", ""]))


def _judged_by(own: Comparison | None, *, is_judged_by_base: bool) -> words.Phrase:
    if not is_judged_by_base:
        return (Words("The verdict is by the baselines of the job that measured."),)
    if own is None:
        return (Words("The verdict is by those of the base branch."),)
    return (
        Words("The verdict is by those of the base branch; by its own it would be: "),
        *headline.of(own),
        Words("."),
    )


def _rows(edit: Edit) -> list[tuple[str, ...]]:
    path = escape.code(edit.path, limit=_MAX_PATH_CHARS)
    if edit.trouble:
        return [(path, escape.sentence(edit.trouble), "", "", "")]
    names = sorted(edit.before.keys() | edit.after.keys())
    moved = [name for name in names if edit.before.get(name) != edit.after.get(name)]
    return [(path, *_cells(name, edit)) for name in moved] or [
        (path, "the same headline; other sessions", "", "", "")
    ]


def _cells(name: str, edit: Edit) -> tuple[str, ...]:
    metric = metrics.BY_NAME.get(name)
    unit = metric.unit if metric else None
    old, new = (
        units.value(side[name], unit) if name in side else units.NOTHING
        for side in (edit.before, edit.after)
    )
    title = metric.title if metric else escape.code(name)
    return (title, old, new, _change(edit.before.get(name), edit.after.get(name)))


def _change(before: float | None, after: float | None) -> str:
    return units.percent(after / before - 1) if before and after is not None else ""
