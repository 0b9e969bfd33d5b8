"""What a pull request is told beside its report: what not to trust, edited baselines, replies."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ci_perf.model import metrics
from ci_perf.model.comparison import Comparison
from ci_perf.model.summary import Numbers
from ci_perf.report import accept_help, escape, headline, markdown, units
from ci_perf.report.accept_help import Accepted, AcceptHint
from ci_perf.report.escape import Command, Markdown, Sentence, Words
from ci_perf.report.phrases import Phrase

_MAX_ROWS = 40
_MAX_PATH_CHARS = 200
_MAX_HELD = 5
_MAX_REPLY_LINES = 60


def other_commit(measured: str, head: str) -> Phrase:
    """Say that the numbers are not of the commit at the head."""
    return (
        Words("These numbers are for commit "),
        measured[:12],
        Words(", but the head is "),
        head[:12],
        Words("."),
    )


def changed_files() -> Phrase:
    """Say that the numbers are of no commit at all."""
    return (Words("These numbers are for a checkout with uncommitted changes, not for a commit."),)


def foreign_base(commit: str) -> Phrase:
    """Say that the pairs of the run are ignored."""
    return (
        Words("The pairs of this run are ignored: they were launched against "),
        commit[:12],
        Words(", which is not a commit of the branch that judges."),
    )


def other_branch(base: str, judging: str) -> Phrase:
    """Say that the pull request targets another branch than the one whose baselines judge it."""
    return (
        Words("The pull request targets the branch "),
        base,
        Words(", but is judged by the branch "),
        judging,
        Words(": by its baselines, and only by pairs against its commits."),
    )


def unproven(workloads: int) -> Phrase:
    """Say that numbers look worse, and that no trusted pairs prove or clear them."""
    several = "s look" if workloads > 1 else " looks"
    return (
        Words(
            f"{workloads:,} workload{several} slower, and no trusted pairs show whether this "
            "change is the cause, so there is no verdict."
        ),
    )


def not_comparable(workloads: int) -> Phrase:
    """Say that a fork cannot replace the baselines that judge it by its own pairs."""
    several = "s" if workloads > 1 else ""
    return (
        Words(
            f"{workloads:,} workload{several} could not be compared with the baselines, so there "
            "is no verdict: pairs from a fork do not replace a baseline."
        ),
    )


def held(workloads: Sequence[str]) -> Phrase:
    """Say that running again does not take a regression back."""
    shown = workloads[:_MAX_HELD]
    names = [part for name in shown for part in (Words(", "), name)][1:]
    return (
        Words("An earlier run of these very commits proved a regression of "),
        *names,
        Words(" and others" if len(workloads) > len(shown) else ""),
        Words(". It stands until the pairs of both runs together clear it."),
    )


def not_reported(reason: str) -> Phrase:
    """Say what could not be reported."""
    return (Words("Not reported: "), Sentence(reason))


def trust_note(notes: Iterable[Phrase]) -> Markdown:
    """Show all notes below the headline."""
    lines = [f"> ⚠️ {markdown.phrase(note)}" for note in notes]
    return Markdown("\n\n".join(lines))


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineEdit:
    """One baseline file that a pull request adds, changes or removes; foreign data.

    ``before`` and ``after`` are headlines, empty where there is no such file. ``problem`` says why
    they are not known.
    """

    path: str
    before: Numbers
    after: Numbers
    problem: str = ""


def baseline_note(
    edits: Sequence[BaselineEdit], own: Comparison | None, *, is_judged_by_base: bool
) -> Markdown:
    """Say below the headline that baselines are edited, and the verdict of the edited ones.

    ``own`` is the same run by the baselines of the pull request.
    """
    if not edits:
        return Markdown("")
    counted = f"{len(edits):,} baseline{'s' if len(edits) > 1 else ''}"
    said = [
        Words(
            f"> ✏️ This pull request changes {counted}: a reviewer decides whether this is meant. "
        ),
        *_judged_by(own, is_judged_by_base=is_judged_by_base),
    ]
    return markdown.phrase(tuple(said))


def baseline_table(edits: Sequence[BaselineEdit]) -> Markdown:
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


def _judged_by(own: Comparison | None, *, is_judged_by_base: bool) -> Phrase:
    if not is_judged_by_base:
        return (Words("The verdict uses the baselines of the job that measured."),)
    if own is None:
        return (Words("The verdict uses those of the base branch."),)
    return (
        Words("The verdict uses those of the base branch; with its own it would be: "),
        *headline.of(own),
        Words("."),
    )


def _rows(edit: BaselineEdit) -> list[tuple[str, ...]]:
    path = escape.code(edit.path, limit=_MAX_PATH_CHARS)
    if edit.problem:
        return [(path, escape.sentence(edit.problem), "", "", "")]
    names = sorted(edit.before.keys() | edit.after.keys())
    moved = [name for name in names if edit.before.get(name) != edit.after.get(name)]
    return [(path, *_cells(name, edit)) for name in moved] or [
        (path, "same headline, other sessions", "", "", "")
    ]


def _cells(name: str, edit: BaselineEdit) -> tuple[str, ...]:
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


# --- replies to a comment that asks to accept


def reply_refused(login: str, reason: str, hint: AcceptHint | None) -> str:
    """Say why nothing was done, and what can be done instead where there is another way."""
    said = markdown.phrase(
        (Words("Not accepted for "), login, Words(": "), Sentence(reason), Words("."))
    )
    if hint is None:
        return f"{said}\n"
    by_hand = escape.fence(accept_help.commands(hint), info="sh")
    where = "To accept the numbers by hand, on the branch of the pull request:"
    return f"{said}\n\n{where}\n\n{by_hand}\n"


def reply_unchanged(login: str) -> str:
    """Say that there was nothing to do."""
    return markdown.phrase(
        (
            Words("Nothing to accept for "),
            login,
            Words(": every baseline already has the measured numbers."),
        )
    )


def reply_accepted_before(login: str, sha: str) -> str:
    """Say that it was done before; the reply to that was lost."""
    return markdown.phrase(
        (Words("Already accepted for "), login, Words(", in commit "), sha[:12], Words("."))
    )


def reply_accepted(login: str, sha: str, files: Iterable[Accepted]) -> str:
    """Say what was committed, and what happens next."""
    said = markdown.phrase(
        (
            Words("Accepted for "),
            login,
            Words(", in commit "),
            sha[:12],
            Words(" on top of the measured commit."),
        )
    )
    listed = accept_help.result(files).splitlines()
    shown = listed[:_MAX_REPLY_LINES] + (["…"] if len(listed) > _MAX_REPLY_LINES else [])
    next_ = markdown.phrase(
        (
            Words(
                "GitHub starts no workflow for a commit made with the token of a job. If no check "
                "starts, close and reopen the pull request, or push an empty commit: "
            ),
            Command("git commit --allow-empty -m 'Run the checks'"),
            Words("."),
        )
    )
    return f"{said}\n\n{escape.fence(chr(10).join(shown), info='text')}\n\n{next_}\n"
