"""Comparisons with their runs and baselines, one per kind of page."""

import msgspec

from ci_perf.judging import summarise
from ci_perf.model import metrics
from ci_perf.model.comparison import Verdict
from tests.comparisons import a_change, a_comparison, a_head, a_numerics
from tests.histories import a_pair, in_turns
from tests.runs import a_gpu_evidence, a_measured, a_run, an_evidence, some_canaries
from tests.unit.report import shapes


def with_a_run():
    """Two workloads with launches, pairs, canaries, readings of a GPU and committed sessions."""
    evidence = an_evidence(a_gpu_evidence())
    measured = [
        a_measured(name, 0.0100, 0.0102, 0.0101, evidence=evidence) for name in ("mlp", "conv")
    ]
    pairs = [
        msgspec.structs.replace(
            a_pair(0.010 + index / 1e4, 0.012), first="head" if index % 2 else "base"
        )
        for index in range(6)
    ]
    run = in_turns(a_run(*measured, canaries=some_canaries(after=1.1e-3)), pairs, workload="mlp")
    base = summarise.run(a_run(*measured), label="baselines")
    rows = (a_change("mlp", Verdict.REGRESSED, ratio=1.2, pairs=6), a_change("conv"), a_numerics())
    return a_comparison(*rows, head=a_head(run=run.id)), run, base


def thirty_workloads():
    """Thirty workloads with three metrics each, and names of 200 characters."""
    names = ["w" * 190 + f"{index}" for index in range(30)]
    rows = [
        a_change(name, metric=metric, ratio=1 + index / 100)
        for index, name in enumerate(names)
        for metric in (metrics.STEP_TIME, metrics.HOST_RSS_PEAK, metrics.FIRST_STEP)
    ]
    return a_comparison(*rows), None, None


def ten_regressions():
    """From just beyond the limit to eleven times as long, each workload with a run of its own."""
    ratios = (1.03, 1.04, 1.05, 1.08, 1.12, 1.2, 1.3, 1.6, 2.0, 11.0)
    rows = [a_change(f"w{at}", Verdict.REGRESSED, ratio=r) for at, r in enumerate(ratios)]
    run = a_run(*(a_measured(row.workload, *(0.0412 * row.ratio,) * 3) for row in rows))
    base = summarise.run(a_run(*(a_measured(row.workload, 0.0412) for row in rows)), label="")
    return a_comparison(*rows, a_change("still"), head=a_head(run=run.id)), run, base


def one_launch():
    """One launch, no session, no pair, and nothing that the monitor could read."""
    run = a_run(a_measured("mlp", 0.0100))
    return a_comparison(a_change("mlp", interval=None), head=a_head(run=run.id)), run, None


def many_pairs():
    """One session and one launch of the head before many pairs: three names in little room."""
    measured = a_measured("mlp", 0.0100)
    launched = [a_pair(0.010, 0.012) for _ in range(18)]
    run = in_turns(a_run(measured), launched, workload="mlp")
    row = a_change("mlp", Verdict.REGRESSED, ratio=1.2, pairs=18)
    base = summarise.run(a_run(measured), label="baselines")
    return a_comparison(row, head=a_head(run=run.id)), run, base


def _alone(shape):
    def alone():
        return shape(), None, None

    alone.__name__ = shape.__name__
    return alone


OWN = (with_a_run, thirty_workloads, ten_regressions, one_launch, many_pairs)
ALL = (*OWN, *map(_alone, shapes.THREE))
