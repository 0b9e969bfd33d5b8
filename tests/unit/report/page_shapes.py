"""Comparisons with their runs and baselines, one per kind of page."""

import msgspec

from ci_perf.judging import summarise
from ci_perf.model import metrics
from ci_perf.model.comparison import Verdict
from tests.comparisons import a_change, a_comparison, a_head, a_numerics
from tests.histories import a_pair, in_turns
from tests.runs import a_gpu_evidence, a_measured, a_run, an_evidence, some_canaries
from tests.unit.report import shapes, shapes_in_turns


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


def _alone(shape):
    def alone():
        return shape(), None, None

    alone.__name__ = shape.__name__
    return alone


ALL = (
    with_a_run,
    thirty_workloads,
    *map(
        _alone,
        (
            shapes.regressed,
            shapes.unchanged,
            shapes.improved,
            shapes.failed,
            shapes.all_new,
            shapes.nothing,
            shapes.inconclusive,
            shapes.invalid,
            shapes.hostile,
            shapes.numerics_changed,
            shapes_in_turns.explained,
        ),
    ),
)
