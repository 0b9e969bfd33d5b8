"""What the base has: each of it has a judged row, or the job is not green. Judges no number.

A workload is expected if the suite of the base has it, and a metric of it if all launches of the
base report it. What the head has decides neither.
"""

from collections.abc import Collection, Mapping

from ci_perf.judging import metric_values
from ci_perf.model import metrics
from ci_perf.model.metrics import Kind
from ci_perf.model.suite import Limits, find_limit
from ci_perf.model.summary import Numbers, Summary

Expected = Mapping[str, Numbers]
"""By workload, what all launches of the base report: one number for each metric with a limit."""

# What children hold may be unseen, and a profile of the GPU refused: then nobody lost the metric.
MAY_BE_UNKNOWN = (metrics.HOST_RSS_PEAK, *metrics.OF_PROFILE)


def find_expected(head: Summary, limits: Limits, names: Collection[str]) -> Expected:
    """Return what the base of the head has: its workloads are `names`, and those of the run.

    No metric is expected without launches of the base, or where this change is accepted.
    """
    how = head.interleaved
    launches = {each.workload: [base for base, _ in each.list_pairs()] for each in head.subjects}
    expected: dict[str, Numbers] = {}
    for name in {*names, *(how.expected if how else ())}:
        of_base, of_workload = launches.get(name, []), limits.of(name)
        accepted = how.accepted.get(name, ()) if how else ()
        expected[name] = {
            metric: number
            for metric, number in _find_shared(of_base).items()
            if find_limit(of_workload, metric) and metric not in accepted
        }
    return expected


def _find_shared(launches: Collection[Numbers]) -> Numbers:
    """Return what all launches report; a count that is always zero is nothing to miss."""
    shared = {}
    for name in set.intersection(*map(set, launches)) if launches else ():
        metric, values = metrics.find_metric(name), [launch[name] for launch in launches]
        is_nothing = metric and metric.kind is Kind.COUNT and not any(values)
        if metric and metric not in MAY_BE_UNKNOWN and not is_nothing:
            shared[name] = metric_values.centre(metric.kind, [values])
    return shared
