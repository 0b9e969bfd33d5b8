"""The answer of `ci-perf explain` as a page: per workload what changed, and what a step does."""

from collections.abc import Iterator

from ci_perf.features.explain import limits_report, report
from ci_perf.features.explain.answer import ExplainedWorkload, ExplainedWorkloads
from ci_perf.report import units
from ci_perf.report.escape import Sentence, Words
from ci_perf.report.tables import Block, Page, Phrase


def build_page(explained: ExplainedWorkloads) -> Page:
    """Say it of every workload, in their order."""
    parts: list[Block] = [_title(explained)]
    for workload in explained.workloads:
        parts += _render_workload(workload)
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
