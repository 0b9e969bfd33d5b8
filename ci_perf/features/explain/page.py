"""The answer of `ci-perf explain` as a page: per workload what changed, and what a step does."""

from collections.abc import Iterator

from ci_perf.features.explain import limits_report, report
from ci_perf.features.explain.answer import ExplainedWorkload, ExplainedWorkloads
from ci_perf.model.explanation import StepProfile
from ci_perf.report import units
from ci_perf.report.escape import Phrase, Sentence, Words
from ci_perf.report.tables import Block, Page


def build_page(explained: ExplainedWorkloads, *, operators: bool) -> Page:
    """Say it of every workload, in their order; with `operators`, list those of its step, too."""
    parts: list[Block] = [_title(explained)]
    for workload in explained.workloads:
        parts += _render_workload(workload)
        if operators and workload.profile is not None:
            parts += _operators(workload.workload, workload.profile)
    return parts


def _title(explained: ExplainedWorkloads) -> Phrase:
    number = units.render_count(len(explained.workloads), "workload")
    title: Phrase = (Words(f"{number} of "), explained.suite, Words(" explained"))
    if explained.base:
        title = (*title, Words(", against "), explained.base[:12])
    return title


def _render_workload(workload: ExplainedWorkload) -> Iterator[Block]:
    if workload.explanation is not None:
        yield from report.describe((workload.workload,), workload.explanation)
    if workload.limits is not None:
        first, *further = limits_report.describe_limits(workload.limits)
        yield (workload.workload, Words(": "), *first)
        yield from further
    if workload.trouble and workload.explanation is None:
        yield (workload.workload, Words(": "), Sentence(workload.trouble))


def _operators(workload: str, profile: StepProfile) -> Iterator[Block]:
    table = limits_report.build_operator_table(profile)
    if not table.rows:
        yield (workload, Words(": no trace of torch.profiler lists its operators"))
        return
    yield (Words("Operators of a step of "), workload, Words(", as torch.profiler has timed them:"))
    yield table
