"""What GitHub is told beside the report: where it is from, findings at files, answers."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from ci_perf.model.comparison import Code, Comparison, Row, Severity, Uncompared, severity_of
from ci_perf.report import (
    accept_help,
    cells,
    comparison_page,
    headline,
    markdown,
    phrases,
    table_rows,
    tables,
)
from ci_perf.report.accept_help import Accepted, AcceptHint
from ci_perf.report.escape import Sentence, Words, clean
from ci_perf.report.headline import HeadlineWord
from ci_perf.report.phrases import Phrase
from ci_perf.report.sentences import say
from ci_perf.report.tables import Listing, Page, Paragraph

_FAILS = frozenset({Severity.FAILED, Severity.NUMERICS_CHANGED, Severity.REGRESSED})
_WARNS = frozenset({Severity.LIKELY_SLOWER, Severity.WARNING})
_WORST_FIRST = (HeadlineWord.FAIL, HeadlineWord.NO_ANSWER, HeadlineWord.PASS)
_MAX_BRANCH_CHARS = 50
_MAX_REPLY_LINES = 60


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
    """What is said in addition to the comparison: below the headline, and at the end."""

    notes: Page = ()
    end: Page = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FileNote:
    """A row that somebody should see beside the file of its workload. Plain text."""

    workload: str
    level: Literal["warning", "failure"]
    title: str
    message: str


def render_whole(
    comparison: Comparison,
    origin: Origin,
    *,
    max_bytes: int,
    extras: Extras | None = None,
    body: str = "",
) -> str:
    """Show the verdict, where it comes from, and the report below, as far as `max_bytes` allow.

    The first lines are always shown. ``body`` is what stands below them, where it is known.
    """
    extras = extras or Extras()
    fork = [say("fork")] if origin.is_fork else []
    where = say(
        "origin",
        base=clean(origin.base, limit=_MAX_BRANCH_CHARS),
        url=Words(origin.url),
        attempt=origin.attempt,
        history_url=Words(origin.history_url),
    )
    head = tables.join_markdown(
        [
            *comparison_page.introduce(comparison),
            *fork,
            *extras.notes,
            *([Paragraph(where, "small")] if where else ()),
            "",
        ]
    )
    left = max_bytes - len(head.encode())
    end = "\n" + tables.join_markdown(extras.end) if extras.end else ""
    if not body or len((body + end).encode()) > left:
        body = markdown.render_body(comparison, max_bytes=left - len(end.encode()))
    for rest in (body + end, body):
        if len(rest.encode()) <= left:
            return head + rest
    return head + tables.join_markdown([say("too_long", url=Words(origin.url))])


def summarise_machines(named: Sequence[tuple[str, Comparison]]) -> str:
    """Say in one line what the comparisons of several machines say together; empty for one."""
    if len(named) < 2:
        return ""
    words = {name: headline.choose_word(comparison) for name, comparison in named}
    worst = min(words.values(), key=_WORST_FIRST.index)
    names = [(clean(name, limit=_MAX_BRANCH_CHARS),) for name in words if words[name] is worst]
    icon, word = Words(headline.ICON[worst]), Words(worst.value)
    said = say("machines", icon=icon, word=word, names=names, every=len(words))
    return tables.join_markdown([said, ""])


def write_title(comparison: Comparison, *, base: str = "", max_chars: int = 255) -> str:
    """Say the verdict, and for which branch it holds, in one line of plain text."""
    verdict = phrases.plain(headline.summarise(comparison))
    ending = f" · for {clean(base, limit=_MAX_BRANCH_CHARS)}" if base else ""
    room = max_chars - len(ending)
    return (verdict if len(verdict) <= room else f"{verdict[: room - 1]}…") + ending


def list_file_notes(comparison: Comparison) -> list[FileNote]:
    """Name what failed, regressed or is suspected, worst first."""
    return [
        _make_file_note(row)
        for row in table_rows.worst_first(comparison.rows)
        if severity_of(row) in _FAILS | _WARNS or (row.gate and row.code is Code.UNTRUSTED)
    ]


def _make_file_note(row: Row) -> FileNote:
    words, severity = cells.describe(row), severity_of(row)
    metric, note = phrases.plain((words.metric,)), phrases.plain((Sentence(words.note),))
    remark = ": ".join(filter(None, (words.remark, note)))
    if isinstance(row, Uncompared):
        message = ": ".join(filter(None, (metric, remark)))
    else:
        moved = f"{metric}: {words.values} ({words.change}), limit {words.limit}"
        message = "; ".join(filter(None, (moved, words.evidence, remark)))
    return FileNote(
        workload=row.workload,
        level="failure" if row.gate and severity in _FAILS else "warning",
        title=f"ci_perf: {phrases.plain((row.workload,))}: {severity.value}",
        message=message,
    )


def note_trust(notes: Iterable[Phrase]) -> Page:
    """Show all notes on what is not trusted."""
    return [say("trust_note", note=note) for note in notes]


def note_edited_baselines(
    paths: Sequence[str], own: Comparison | None, *, is_judged_by_base: bool
) -> Page:
    """Name the baselines that are edited, and say the verdict of these.

    ``own`` is the same run by the baselines of the pull request.
    """
    said = say(
        "edited_baselines",
        paths=[(Sentence(path),) for path in paths],
        is_judged_by_base=is_judged_by_base,
        own=headline.summarise(own) if own else (),
    )
    return [said] if paths else []


# --- replies to a comment that asks to accept


def refuse(login: str, reason: str, hint: AcceptHint | None) -> str:
    """Say why nothing was done, and what can be done instead where there is another way."""
    page: list[tables.Block] = [say("refused", login=login, reason=Sentence(reason))]
    if hint is not None:
        page += [say("accept_by_hand"), Listing(accept_help.commands(hint), "sh")]
    return tables.join_markdown(page)


def reply_unchanged(login: str) -> str:
    """Say that there was nothing to do."""
    return tables.join_markdown([say("nothing_to_accept", login=login)])


def reply_accepted(login: str, sha: str, files: Iterable[Accepted]) -> str:
    """Say what was committed, and what happens next."""
    listed = accept_help.result(files).splitlines()
    more = ["…"] if len(listed) > _MAX_REPLY_LINES else []
    return tables.join_markdown(
        [
            say("accepted", login=login, sha=sha),
            Listing("\n".join([*listed[:_MAX_REPLY_LINES], *more])),
            say("start_the_checks"),
        ]
    )
