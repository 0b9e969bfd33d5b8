"""What GitHub is told beside the whole report: headlines, findings, notes on trust, replies."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from ci_perf.model.comparison import Code, Comparison, Row, Severity, severity_of
from ci_perf.report import (
    accept_help,
    cells,
    escape,
    headline,
    markdown,
    phrases,
    table_rows,
    units,
)
from ci_perf.report.accept_help import Accepted, AcceptHint
from ci_perf.report.cells import TableRow
from ci_perf.report.escape import Command, Markdown, Sentence, Words
from ci_perf.report.headline import HeadlineWord
from ci_perf.report.phrases import Phrase

_FAILS = frozenset({Severity.FAILED, Severity.NUMERICS_CHANGED, Severity.REGRESSED})
_WARNS = frozenset({Severity.LIKELY_SLOWER, Severity.WARNING})
_MAX_BRANCH_CHARS = 50
_FROM_A_FORK = "> ⚠️ Measured by code from a fork, whose author could have made up these numbers."
_MAX_HELD = 5
_MAX_REPLY_LINES = 60
_MAX_MACHINES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where a comparison was measured. ``url`` may be empty; it is ours, or GitHub's.

    ``base`` is the branch that the head is judged for; empty where there is no pull request.
    ``history_url`` is the page of the baselines' history, where there is one.
    """

    url: str
    attempt: int
    is_fork: bool
    base: str = ""
    history_url: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Extras:
    """What is said in addition to the comparison: below the headline, and folded at the end."""

    note: Markdown
    folded: Markdown


NO_EXTRAS = Extras(note=Markdown(""), folded=Markdown(""))


@dataclass(frozen=True, slots=True, kw_only=True)
class FileNote:
    """A row that somebody should see beside the file of its workload. Plain text."""

    workload: str
    level: Literal["warning", "failure"]
    title: str
    message: str


def whole(
    comparison: Comparison,
    origin: Origin,
    *,
    max_bytes: int,
    extras: Extras = NO_EXTRAS,
    rendered: str = "",
) -> str:
    """Show the verdict, where it comes from, and the report below, as far as `max_bytes` allow.

    The first lines are always shown. ``rendered`` is the whole report, where it is known.
    """
    head = "\n\n".join([*_opening(comparison, origin, extras), ""])
    left = max_bytes - len(head.encode())
    end = f"\n{extras.folded}" if extras.folded else ""
    if not rendered or len((rendered + end).encode()) > max_bytes:
        rendered = markdown.render(comparison, max_bytes=left - len(end.encode()))
    text = rendered.removeprefix(markdown.opening(comparison)).strip() + "\n"
    for rest in (text + end, text):
        if len(rest.encode()) <= left:
            return head + rest
    where = f"[summary of its job]({origin.url})" if origin.url else "summary of its job"
    return f"{head}The whole report is too long to show here: the {where} has it.\n"


def together(named: Sequence[tuple[str, Comparison]]) -> str:
    """Say in one line what the comparisons of several machines say together; empty for one."""
    if len(named) < 2:
        return ""
    words = {name: headline.choose_word(comparison) for name, comparison in named}
    worst = min(
        words.values(), key=(HeadlineWord.ACT, HeadlineWord.UNKNOWN, HeadlineWord.PASS).index
    )
    names = [name for name, word in words.items() if word is worst]
    said = f"## {headline.ICON[worst]} {worst.value}"
    if len(names) == len(words):
        return f"{said} on all {len(words)} machines\n\n"
    listed = ", ".join(escape.code(name, limit=_MAX_BRANCH_CHARS) for name in names[:_MAX_MACHINES])
    more = f" and {len(names) - _MAX_MACHINES} more" if len(names) > _MAX_MACHINES else ""
    return f"{said} on {len(names)} of {len(words)} machines: {listed}{more}\n\n"


def title(comparison: Comparison, *, base: str = "", max_chars: int = 255) -> str:
    """Say the verdict, and for which branch it holds, in one line of plain text."""
    verdict = phrases.plain(headline.summarise(comparison))
    ending = f" · for {escape.clean(base, limit=_MAX_BRANCH_CHARS)}" if base else ""
    room = max_chars - len(ending)
    return (verdict if len(verdict) <= room else f"{verdict[: room - 1]}…") + ending


def file_notes(comparison: Comparison) -> list[FileNote]:
    """Name what failed, regressed or is suspected, worst first."""
    return [_file_note(row) for row in table_rows.worst_first(comparison.rows) if _is_shown(row)]


def _opening(comparison: Comparison, origin: Origin, extras: Extras) -> Iterable[str]:
    """Say the verdict, for which branch it holds, and which run measured."""
    yield markdown.opening(comparison)
    if origin.is_fork:
        yield _FROM_A_FORK
    if extras.note:
        yield extras.note
    base = escape.code(origin.base, limit=_MAX_BRANCH_CHARS)
    said = [f"Judged for the branch {base}."] if base else []
    if origin.url:
        again = f", attempt {origin.attempt}" if origin.attempt > 1 else ""
        said.append(f"Measured by [this run]({origin.url}){again}.")
    if origin.history_url:
        said.append(f"[History of the baselines]({origin.history_url}).")
    if said:
        yield f"<sub>{' '.join(said)}</sub>"


def _is_shown(row: Row) -> bool:
    return severity_of(row) in _FAILS | _WARNS or (row.gate and row.code is Code.UNTRUSTED)


def _file_note(row: Row) -> FileNote:
    shown = cells.shown(row)
    return FileNote(
        workload=row.workload,
        level="failure" if row.gate and shown.severity in _FAILS else "warning",
        title=f"ci_perf: {phrases.plain((shown.workload,))}: {shown.severity.value}",
        message=_message(shown),
    )


def _message(shown: TableRow) -> str:
    note = phrases.plain((Sentence(shown.note),))
    if shown.change == units.NOTHING:
        return ": ".join(filter(None, (phrases.plain((shown.metric,)), shown.remark, note)))
    values = f"{units.both(shown.base, shown.head)} ({shown.change}), limit {shown.limit}"
    said = ": ".join(filter(None, (shown.remark, note)))
    moved = f"{phrases.plain((shown.metric,))}: {values}"
    return "; ".join(filter(None, (moved, shown.evidence, said)))


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
    look = "look" if workloads > 1 else "looks"
    return (
        Words(
            f"{units.numbered(workloads, 'workload')} {look} slower, and no trusted pairs show "
            "whether this change is the cause, so there is no verdict."
        ),
    )


def not_comparable(workloads: int) -> Phrase:
    """Say that a fork cannot replace the baselines that judge it by its own pairs."""
    return (
        Words(
            f"{units.numbered(workloads, 'workload')} could not be compared with the baselines, so "
            "there is no verdict: pairs from a fork do not replace a baseline."
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


def baseline_note(
    paths: Sequence[str], own: Comparison | None, *, is_judged_by_base: bool
) -> Markdown:
    """Name below the headline the baselines that are edited, and say the verdict of these.

    ``own`` is the same run by the baselines of the pull request.
    """
    if not paths:
        return Markdown("")
    counted = units.numbered(len(paths), "baseline")
    said = [
        Words(f"> ✏️ This pull request changes {counted} ("),
        *phrases.joined((Sentence(path),) for path in paths),
        Words("): a reviewer decides whether this is meant. "),
        *_judged_by(own, is_judged_by_base=is_judged_by_base),
    ]
    return markdown.phrase(tuple(said))


def _judged_by(own: Comparison | None, *, is_judged_by_base: bool) -> Phrase:
    if not is_judged_by_base:
        return (Words("The verdict uses the baselines of the job that measured."),)
    if own is None:
        return (Words("The verdict uses those of the base branch."),)
    return (
        Words("The verdict uses those of the base branch; with its own it would be: "),
        *headline.summarise(own),
        Words("."),
    )


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
