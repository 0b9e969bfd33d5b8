"""Where the time of a step goes on both sides, in sentences for the page of a run."""

from collections.abc import Iterator

from ci_perf.features.explain import limits_report
from ci_perf.features.explain.limits import find_limits
from ci_perf.model.run import Run
from ci_perf.report import units
from ci_perf.report.escape import Sentence, Words
from ci_perf.report.phrases import Phrase


def list_waits(run: Run) -> Iterator[tuple[str, list[Phrase]]]:
    """Yield the workloads that the run has profiled, each by its first pair."""
    for each in run.profiled:
        if not each.pairs:
            yield each.workload, [(Sentence(each.trouble),)]
            continue
        base, head = find_limits(each.pairs[0].base), find_limits(each.pairs[0].head)
        lines: list[Phrase] = []
        if not head.absent and base.part == head.part:
            works = Words("the GPU works" if head.part == "device" else "operators run")
            before, after = (
                {works: side.busy}
                | {
                    limits_report.reason_text(limit.reason, side.part): limit.share
                    for limit in side.limits
                }
                for side in (base, head)
            )
            for title in after | before:
                shares = [
                    units.share(side[title]) if title in side else Words("little")
                    for side in (before, after)
                ]
                lines.append((Words(f"{title}: {units.both(*shares)} of the time of a step"),))
        yield each.workload, [*lines, *limits_report.describe_limits(head)]
