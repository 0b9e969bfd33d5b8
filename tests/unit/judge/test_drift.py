import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from ci_perf.judge import drift
from ci_perf.judge.drift import Thirds
from ci_perf.judge.limits import defaults
from ci_perf.model import metrics
from ci_perf.model.metrics import Kind
from ci_perf.model.suite import Limit, Limits
from ci_perf.model.summary import Sitting, Subject
from tests.runs import CPU, SOFT

logs = st.integers(-500, 500).map(lambda value: value / 1000)
# scipy warns of samples without a spread; ours have a test of their own.
samples = st.lists(logs, min_size=2, max_size=6).filter(lambda values: len(set(values)) > 1)


def a_history(*sessions, workload="w", metric=metrics.STEP_TIME, epochs=()):
    """One workload; each session is the values of its launches, or a single one."""
    return Subject(
        workload=workload,
        parameters={},
        items_per_step=1.0,
        item_unit="step",
        statistic="median",
        machine=CPU,
        sessions=tuple(
            Sitting(
                commit="a1b2c3d4",
                recorded_at=f"2026-11-{day:02}T10:00:00Z",
                soft=SOFT,
                processes=tuple(
                    {metric.name: s} for s in ([session] if isinstance(session, float) else session)
                ),
                epochs={metric.name: epochs[day - 1]} if epochs else {},
            )
            for day, session in enumerate(sessions, 1)
        ),
    )


def over(floor):
    """Ask for every noisy metric, from this size on."""
    return lambda _subject, _metric: floor


def steps(*centres, seed=1, spread=1e-3):
    """One session per centre, each of three launches."""
    noise = random.Random(seed)
    return [[centre * math.exp(noise.gauss(0, spread)) for _ in range(3)] for centre in centres]


SLOWER = steps(*(1.0 + 0.01 * day for day in range(9)))
STILL = steps(*[1.0] * 9)


def test_main_that_became_slower_by_and_by_is_told_with_how_much_and_since_when():
    (found,) = drift.find([a_history(*SLOWER)], over(0.02))

    assert (found.workload, found.metric) == ("w", "step_time_s")
    assert found.ratio == pytest.approx(1.07 / 1.01, rel=2e-3)
    assert (found.since, found.sessions) == ("2026-11-01T10:00:00Z", 9)


def test_main_that_became_faster_is_told_as_well():
    (found,) = drift.find([a_history(*reversed(SLOWER))], over(0.02))

    assert found.ratio < 1


def test_above_one_is_worse_also_where_higher_is_better():
    history = a_history(*SLOWER, metric=metrics.SCALING_EFFICIENCY)

    (found,) = drift.find([history], over(0.02))

    assert found.ratio == pytest.approx(1.01 / 1.07, rel=2e-3)


def test_a_history_that_stays_where_it_is_has_not_drifted():
    assert drift.find([a_history(*STILL)], over(0.0)) == ()


def test_a_drift_within_the_floor_is_not_told():
    assert drift.find([a_history(*SLOWER)], over(0.1)) == ()


def test_fewer_than_six_sessions_are_no_history():
    assert drift.find([a_history(*SLOWER[:5])], over(0.0)) == ()
    assert drift.thirds(SLOWER[:5]) is None


def test_only_the_current_epoch_counts():
    """What was accepted is no drift."""
    history = a_history(*STILL, *SLOWER[-6:], epochs=[0] * 9 + [1] * 6)

    (found,) = drift.find([history], over(0.0))

    assert found.sessions == 6
    assert found.since == "2026-11-10T10:00:00Z"
    assert drift.find([a_history(*SLOWER, *STILL[:6], epochs=[0] * 9 + [1] * 6)], over(0.0)) == ()


def test_what_nobody_asks_for_is_not_looked_at():
    assert drift.find([a_history(*SLOWER)], lambda _subject, _metric: None) == ()


def test_many_metrics_share_the_chance_to_be_wrong():
    uncertain = [1.0, 1.003, 1.006, 1.012, 1.015, 1.018]
    others = [a_history(*STILL, workload=f"w{number}") for number in range(40)]
    found = drift.thirds([[value] for value in uncertain])
    assert found is not None
    assert 0.05 / 41 < found.p_value() < 0.05

    assert drift.find([a_history(*uncertain)], over(0.01))
    assert drift.find([a_history(*uncertain), *others], over(0.01)) == ()


def test_the_largest_drift_comes_first():
    small = a_history(*steps(*(1.0 + 0.005 * day for day in range(9))), workload="small")

    found = drift.find([small, a_history(*SLOWER, workload="large")], over(0.01))

    assert [one.workload for one in found] == ["large", "small"]


def test_a_suite_asks_for_what_it_gates_each_from_its_limit_on():
    limits = Limits(default={**defaults(), "step_time_s": Limit(relative=0.2, margin=0.4)})
    floor = drift.gated(limits)
    history = a_history(*SLOWER)

    assert floor(history, metrics.STEP_TIME) == pytest.approx(math.log(1.2))
    assert floor(history, metrics.HOST_RSS_PEAK) is None, "it has no values"
    assert floor(a_history(*SLOWER, metric=metrics.FIRST_STEP), metrics.FIRST_STEP) is None
    assert floor(a_history(2.0, metric=metrics.GRAPH_BREAKS), metrics.GRAPH_BREAKS) == 0.0


@pytest.mark.parametrize(
    "metric", [m for m in metrics.JUDGED if m.kind in {Kind.COUNT, Kind.DEVICE_MEMORY, Kind.SHARE}]
)
def test_what_is_compared_exactly_does_not_drift(metric):
    assert drift.find([a_history(*SLOWER, metric=metric)], over(0.0)) == ()


# --- Welch's test


@given(samples, samples)
def test_p_is_that_of_an_independent_computation(oldest, newest):
    found = Thirds(oldest=oldest, newest=newest).p_value()

    assert found == pytest.approx(stats.ttest_ind(oldest, newest, equal_var=False).pvalue, abs=1e-8)


@given(samples, samples, logs)
def test_the_unit_of_a_metric_and_the_direction_of_time_change_no_p(oldest, newest, by):
    found = Thirds(oldest=oldest, newest=newest)
    moved = Thirds(oldest=[v + by for v in oldest], newest=[v + by for v in newest])
    back = Thirds(oldest=newest, newest=oldest)
    assert found.p_value() == pytest.approx(moved.p_value(), rel=1e-5)
    assert found.p_value() == back.p_value()
    assert found.difference == pytest.approx(-back.difference)


def test_sessions_without_any_spread_differ_or_do_not():
    assert Thirds(oldest=[0.0, 0.0], newest=[0.0, 0.0]).p_value() == 1.0
    assert Thirds(oldest=[0.0, 0.0], newest=[0.1, 0.1]).p_value() == 0.0


def test_sessions_that_only_differ_are_called_a_drift_in_one_of_twenty_suites_at_most():
    noise = random.Random(7)
    told = 0
    for _ in range(300):
        suite = [
            a_history(*(math.exp(noise.gauss(0, 0.02)) for _ in range(12)), workload=f"w{number}")
            for number in range(3)
        ]
        told += bool(drift.find(suite, over(0.0)))

    assert told <= stats.binom.isf(1e-4, 300, drift.ALPHA)
