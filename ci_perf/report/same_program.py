"""What a report says of workloads that were not launched or need not be, and why others were."""

from collections.abc import Iterable, Iterator

from ci_perf.model.comparison import Change, Code, Comparison, Uncompared, Verdict
from ci_perf.model.program import SameProgram, Touched, TouchedWorkloads
from ci_perf.report import units
from ci_perf.report.escape import Phrase, Sentence, Words
from ci_perf.report.tables import Page, Table

# More reasons than this are counted.
_MAX_TOUCHED = 20
_CODES = {Code.SAME_PROGRAM, Code.UNPROVEN_PROGRAM}
_MOVED = {Verdict.REGRESSED, Verdict.LIKELY_SLOWER, Verdict.IMPROVED}
_WHY = (
    "every file that it imports, reads, lists or looks for is the same in both commits, but for "
    "comments, and so are {what}. The same program on the same data does the same work, so there "
    "is no change to measure (`--all` measures it all the same)."
)
_NOT_ASKED = (
    "Nothing was launched, and no machine was asked. Its driver, packages and variables are "
    "believed to be as in its session of {time}."
)


def render_remark(same: SameProgram) -> str:
    """Say why a workload has no numbers."""
    if same.is_proven:
        return f"not launched: {_render_count(same)} the same"
    return (
        f"not launched, because {_render_count(same)} said to be the same; the base branch has no "
        "record that proves it: measure it with `--all`"
    )


def _render_count(same: SameProgram) -> str:
    return f"{units.render_count(same.files, 'file')} {'is' if same.files == 1 else 'are'}"


def render_notice(comparison: Comparison) -> Phrase:
    """Explain rows that have no numbers, in two sentences; nothing where there is no such row."""
    proven = sum(row.code is Code.SAME_PROGRAM for row in comparison.rows)
    if not proven:
        return ()
    workloads = len({row.workload for row in comparison.rows})
    counted = f"{proven:,} of {units.render_count(workloads, 'workload')}"
    verb = "was" if proven == 1 else "were"
    same = (row.same for row in comparison.rows if isinstance(row, Uncompared) and row.same)
    asked = _find_believed(same)
    why = _WHY.format(what="the settings" if asked else "the software and the settings")
    return (
        Words(f"ℹ️ Same program: {counted} {verb} not launched, because {why}"),  # noqa: RUF001  an icon, not an i
        Words(f" {asked}" if asked else ""),
    )


def _find_believed(same: Iterable[SameProgram]) -> str:
    """Say which session of a machine is believed, the oldest one; "" where machines were asked."""
    times = [each.believed for each in same if each.believed]
    return _NOT_ASKED.format(time=min(times)) if times else ""


def render_notes(comparison: Comparison) -> list[Phrase]:
    """Say why workloads were launched, where sameness was asked for."""
    reasons = [answer for answer in comparison.touched if answer.code != "asked"]
    said: list[Phrase] = [
        (answer.workload, Words(" was measured: "), Sentence(answer.detail))
        for answer in reasons[:_MAX_TOUCHED]
    ]
    more = len(reasons) - len(said)
    return [*said, (Words(f"{more:,} further workloads were measured."),)] if more else said


def list_differences(comparison: Comparison) -> Iterator[Phrase]:
    """Say in which file a workload that moved differs, once each; no launch is needed to know."""
    moved = {
        row.workload for row in comparison.rows if isinstance(row, Change) and row.verdict in _MOVED
    }
    for answer in comparison.touched:
        if answer.code == "differs" and answer.workload in moved:
            yield (answer.workload, Words(" runs other code: "), Sentence(answer.detail))


def is_same_program(row: object) -> bool:
    """Whether a row is of a workload that was not launched."""
    return isinstance(row, Uncompared) and row.code in _CODES


def build_touched_page(workloads: TouchedWorkloads) -> Page:
    """List every workload: why it is measured, or in what both sides agree."""
    answers: list[SameProgram | Touched] = [*workloads.touched, *workloads.same]
    title: Phrase = (
        Words(f"{len(workloads.touched)} of {units.render_count(len(answers), 'workload')} of "),
        workloads.suite,
        Words(" would be measured against "),
        workloads.base[:12],
    )
    table = Table(
        heading=("workload", "check", "why"),
        rows=[*map(_build_row, answers)],
        left=("check", "why"),
    )
    if not answers:
        return (title,)
    if believed := _find_believed(workloads.same):
        return (title, table, (Words(believed),))
    if all(answer.code != "not_recorded" for answer in workloads.touched):
        return (title, table)
    how_to_record: Phrase = (
        Words("Not recorded: "),
        f"ci-perf check --against {workloads.base[:12]}",
        Words(" records it on this machine. To share records, commit what "),
        "ci-perf run",
        Words(" and "),
        "ci-perf accept",
        Words(" write on the default branch."),
    )
    return (title, table, how_to_record)


def _build_row(answer: SameProgram | Touched) -> tuple[str, str, str]:
    if isinstance(answer, SameProgram):
        return answer.workload, Words("same program"), Words(f"{_render_count(answer)} the same")
    word = "not recorded" if answer.code == "not_recorded" else "measured"
    return answer.workload, Words(word), Sentence(answer.detail)
