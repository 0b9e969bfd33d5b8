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
    return (title, table) if answers else (title,)


def _row(answer: SameProgram | Touched) -> tuple[str, str, str]:
    if isinstance(answer, SameProgram):
        return answer.workload, Words("same program"), Words(same_program.agreed(answer))
    word = "not recorded" if answer.code == "not_recorded" else "measured"
    return answer.workload, Words(word), Sentence(answer.detail)
