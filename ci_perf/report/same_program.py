"""What a report says of workloads that were not launched or need not be, and why others were."""

from ci_perf.model.comparison import Code, Comparison, Uncompared
from ci_perf.model.program import SameProgram, Touched, TouchedWorkloads
from ci_perf.report import units
from ci_perf.report.escape import Sentence, Words
from ci_perf.report.phrases import Phrase
from ci_perf.report.tables import Page, Table

# More reasons than this are counted.
_MAX_TOUCHED = 20
_OF_SAME_PROGRAM = {Code.SAME_PROGRAM, Code.UNPROVEN_PROGRAM}
_WHY = (
    "every function that ran and every file that was read, in a launch that recorded them, is the "
    "same in both commits, and so are the software and the settings. The same program on the same "
    "data does the same work, so there is no change to measure (`--all` measures it all the same)."
)


def agreed(same: SameProgram) -> str:
    """Say in what both sides agree: "214 functions of 31 files and 2 data files are the same"."""
    return f"{_counted(same)} the same"


def remark(same: SameProgram) -> str:
    """Say why a workload has no numbers."""
    if same.is_proven:
        return f"not launched: {agreed(same)}"
    return (
        f"not launched, because {_counted(same)} said to be the same; the base branch has no "
        "record that proves it: measure it with `--all`"
    )


def _counted(same: SameProgram) -> str:
    """Count what was compared, with its verb. Without a function, only whole files were."""
    if not same.functions:
        files = same.files + same.data_files
        return f"{units.numbered(files, 'file')} {'is' if files == 1 else 'are'}"
    functions = units.numbered(same.functions, "function")
    sources = f"{functions} of {units.numbered(same.files, 'file')}"
    if same.data_files:
        return f"{sources} and {units.numbered(same.data_files, 'data file')} are"
    return f"{sources} {'is' if same.functions == 1 else 'are'}"


def notice(comparison: Comparison) -> Phrase:
    """Explain rows that have no numbers, in two sentences; nothing where there is no such row."""
    proven = sum(row.code is Code.SAME_PROGRAM for row in comparison.rows)
    if not proven:
        return ()
    workloads = len({row.workload for row in comparison.rows})
    counted = f"{proven:,} of {units.numbered(workloads, 'workload')}"
    verb = "was" if proven == 1 else "were"
    return (Words(f"ℹ️ Same program: {counted} {verb} not launched, because {_WHY}"),)  # noqa: RUF001  an icon, not an i


def notes(comparison: Comparison) -> list[Phrase]:
    """Say why workloads were launched, where sameness was asked for."""
    reasons = [answer for answer in comparison.touched if answer.code != "asked"]
    said = [_reason(answer) for answer in reasons[:_MAX_TOUCHED]]
    more = len(reasons) - len(said)
    return [*said, (Words(f"{more:,} further workloads were measured."),)] if more else said


def is_of_same_program(row: object) -> bool:
    """Whether a row is of a workload that was not launched."""
    return isinstance(row, Uncompared) and row.code in _OF_SAME_PROGRAM


def _reason(answer: Touched) -> Phrase:
    return (answer.workload, Words(" was measured: "), Sentence(answer.detail))


def touched_page(workloads: TouchedWorkloads) -> Page:
    """List every workload: why it is measured, or in what both sides agree."""
    answers: list[SameProgram | Touched] = [*workloads.touched, *workloads.same]
    title: Phrase = (
        Words(f"{len(workloads.touched)} of {units.numbered(len(answers), 'workload')} of "),
        workloads.suite,
        Words(" would be measured against "),
        workloads.base[:12],
    )
    table = Table(
        heading=("workload", "check", "why"),
        rows=[*map(_touched_row, answers)],
        left=("check", "why"),
    )
    if not answers:
        return (title,)
    if any(answer.code == "not_recorded" for answer in workloads.touched):
        return (title, table, _how_to_record(workloads.base))
    return (title, table)


def _how_to_record(base: str) -> Phrase:
    return (
        Words("Not recorded: "),
        f"ci-perf check --against {base[:12]}",
        Words(" records it on this machine. To share records, commit what "),
        "ci-perf run",
        Words(" and "),
        "ci-perf accept",
        Words(" write on the default branch."),
    )


def _touched_row(answer: SameProgram | Touched) -> tuple[str, str, str]:
    if isinstance(answer, SameProgram):
        return answer.workload, Words("same program"), Words(agreed(answer))
    word = "not recorded" if answer.code == "not_recorded" else "measured"
    return answer.workload, Words(word), Sentence(answer.detail)
