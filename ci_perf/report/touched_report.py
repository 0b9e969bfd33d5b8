"""What a change touches, as a table for people who plan it."""

from ci_perf.model.program import SameProgram, Touched, TouchedWorkloads
from ci_perf.report import same_program, units
from ci_perf.report.escape import Sentence, Words
from ci_perf.report.phrases import Phrase
from ci_perf.report.tables import Page, Table


def page(workloads: TouchedWorkloads) -> Page:
    """List every workload: why it is measured, or in what both sides agree."""
    answers: list[SameProgram | Touched] = [*workloads.touched, *workloads.same]
    title: Phrase = (
        Words(f"{len(workloads.touched)} of {units.numbered(len(answers), 'workload')} of "),
        workloads.suite,
        Words(" would be measured against "),
        workloads.base[:12],
    )
    table = Table(
        heading=("workload", "check", "why"), rows=[*map(_row, answers)], left=("check", "why")
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


def _row(answer: SameProgram | Touched) -> tuple[str, str, str]:
    if isinstance(answer, SameProgram):
        return answer.workload, Words("same program"), Words(same_program.agreed(answer))
    word = "not recorded" if answer.code == "not_recorded" else "measured"
    return answer.workload, Words(word), Sentence(answer.detail)
