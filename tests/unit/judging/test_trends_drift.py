import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from ci_perf.judging import trends
from ci_perf.judging.policy import PolicyKind, default_limits
from ci_perf.judging.trends import Noise, Trend
from ci_perf.judging.variability import Variance
from ci_perf.model import metrics
from ci_perf.model.metrics import Kind
from ci_perf.model.suite import Limit, Limits
from tests.subjects import a_session, a_subject

logs = st.integers(-500, 500).map(lambda value: value / 1000)
means = st.lists(logs, min_size=trends.LEAST_SESSIONS, max_size=20)


def a_history(*sessions, workload="w", metric=metrics.STEP_TIME, epochs=()):
    """One workload; each session is the values of its launches, or a single one."""
    return a_subject(
        *(
            a_session(
                *({metric.name: s} for s in ([value] if isinstance(value, float) else value)),
                day=day,
                epochs={metric.name: epochs[day - 1]} if epochs else {},
            )
            for day, value in enumerate(sessions, 1)
        ),
        workload=workload,
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


def a_line(*means):
    found = trends.fit_line(means)
    assert found is not None
    return found


def a_trend(line, *, kind=PolicyKind.TIME, floor=0.01):
    return Trend(kind=kind, line=line, floor=floor)


def test_main_that_became_slower_by_and_by_is_told_with_how_much_and_since_when():
    (found,) = trends.find_drifted([a_history(*SLOWER)], over(0.02))

    assert (found.workload, found.metric) == ("w", "step_time_s")
    assert found.ratio == pytest.approx(1.08, rel=3e-3)
    assert (found.since, found.sessions) == ("2026-11-01T10:00:00Z", 9)


def test_above_one_is_worse_also_where_higher_is_better():
    history = a_history(*SLOWER, metric=metrics.SCALING_EFFICIENCY)

    (found,) = trends.find_drifted([history], over(0.02))

    assert found.ratio == pytest.approx(1 / 1.08, rel=3e-3)


def test_a_history_that_stays_where_it_is_has_not_drifted():
    assert trends.find_drifted([a_history(*STILL)], over(0.0)) == ()


def test_a_drift_within_the_floor_is_not_told():
    assert trends.find_drifted([a_history(*SLOWER)], over(0.1)) == ()


def test_fewer_than_four_sessions_are_no_history():
    assert trends.find_drifted([a_history(*SLOWER[:3])], over(0.0)) == ()
    assert trends.fit_line([0.0, 0.01, 0.02]) is None


def test_only_the_current_epoch_counts():
    """What was accepted is no drift."""
    history = a_history(*STILL, *SLOWER[-6:], epochs=[0] * 9 + [1] * 6)

    (found,) = trends.find_drifted([history], over(0.0))

    assert found.sessions == 6
    assert found.since == "2026-11-10T10:00:00Z"
    assert (
        trends.find_drifted([a_history(*SLOWER, *STILL[:6], epochs=[0] * 9 + [1] * 6)], over(0.0))
        == ()
    )


def test_what_nobody_asks_for_is_not_looked_at():
    assert trends.find_drifted([a_history(*SLOWER)], lambda _subject, _metric: None) == ()


def test_many_metrics_and_the_checks_of_a_month_share_the_chance_to_be_wrong():
    line = a_line(0.0, 0.003, 0.005, 0.009, 0.011, 0.016)
    alone = trends.ALPHA / trends.CHECKS
    assert alone / 41 < line.p_value() < alone

    assert trends.have_drifted([a_trend(line)]) == [True]
    others = [a_trend(a_line(*range(6)), kind=PolicyKind.ONE_OFF, floor=9.0) for _ in range(40)]
    assert trends.have_drifted([a_trend(line), *others]) == [False] * 41


def test_a_main_that_does_not_move_has_a_notice_in_one_of_20_months_of_checks():
    assert (trends.ALPHA, trends.CHECKS) == (0.05, 30)


def test_one_check_alone_may_not_spend_what_a_month_of_checks_has():
    line = a_line(0.0, 0.01, 0.012, 0.024)
    assert trends.ALPHA / trends.CHECKS < line.p_value() < trends.ALPHA

    assert trends.have_drifted([a_trend(line)]) == [False]


def test_what_sessions_differ_by_is_learned_from_the_whole_suite():
    """Five sessions show a line, but only the others show that it is no chance."""
    creep = a_history(*steps(*(1.0 + 0.008 * day for day in range(5)), spread=4e-3))
    others = [
        a_history(*steps(*[1.0] * 5, seed=n, spread=4e-3), workload=f"w{n}") for n in range(2, 12)
    ]
    assert trends.find_drifted([creep], over(0.01)) == ()

    (found,) = trends.find_drifted([creep, *others], over(0.01))
    assert found.workload == "w"


def test_a_noisy_kind_of_metric_says_nothing_of_another_kind():
    quiet = [a_trend(a_line(0.0, 1e-6, 0.0, 1e-6, 0.0)) for _ in range(5)]
    noisy = a_trend(a_line(0.0, 0.03, -0.01, 0.04, 0.02), kind=PolicyKind.TAIL, floor=0.0)

    assert trends.have_drifted([noisy, *quiet]) == [False] * 6


def test_the_largest_drift_comes_first():
    small = a_history(*steps(*(1.0 + 0.005 * day for day in range(9))), workload="small")

    found = trends.find_drifted([small, a_history(*SLOWER, workload="large")], over(0.01))

    assert [one.workload for one in found] == ["large", "small"]


def test_a_suite_asks_for_what_it_gates_each_from_its_limit_on():
    limits = Limits(default={**default_limits(), "step_time_s": Limit(relative=0.2)})
    floor = trends.find_thresholds(limits)
    history = a_history(*SLOWER)

    assert floor(history, metrics.STEP_TIME) == pytest.approx(math.log(1.2))
    assert floor(history, metrics.HOST_RSS_PEAK) is None, "it has no values"
    assert floor(a_history(*SLOWER, metric=metrics.FIRST_STEP), metrics.FIRST_STEP) is None
    assert floor(a_history(2.0, metric=metrics.GRAPH_BREAKS), metrics.GRAPH_BREAKS) == 0.0


@pytest.mark.parametrize(
    "metric", [m for m in metrics.JUDGED if m.kind in {Kind.COUNT, Kind.DEVICE_MEMORY, Kind.SHARE}]
)
def test_what_is_compared_exactly_does_not_drift(metric):
    assert trends.find_drifted([a_history(*SLOWER, metric=metric)], over(0.0)) == ()


# --- the line and its test


@given(means)
def test_line_and_p_are_those_of_an_independent_computation(values):
    found = a_line(*values)

    expected = stats.linregress(range(len(values)), values)
    assert found.rise == pytest.approx(expected.slope * (len(values) - 1), abs=1e-12)
    if found.residual.value > 1e-9:  # scipy has no p for points that lie on their line
        assert found.p_value() == pytest.approx(expected.pvalue, abs=1e-8)


@given(means, logs)
def test_the_unit_of_a_metric_and_the_direction_of_time_change_no_p(values, by):
    found = a_line(*values)
    moved, back = a_line(*(value + by for value in values)), a_line(*reversed(values))

    assert found.p_value() == pytest.approx(moved.p_value(), rel=1e-5, abs=1e-12)
    assert found.p_value() == pytest.approx(back.p_value(), rel=1e-5, abs=1e-12)
    assert found.rise == pytest.approx(-back.rise, abs=1e-12)


def test_sessions_without_any_spread_rise_or_do_not():
    assert a_line(0.0, 0.0, 0.0, 0.0).p_value() == 1.0
    assert a_line(0.0, 0.01, 0.02, 0.03).p_value() < 1e-6


def test_a_suite_that_is_noisier_makes_a_line_less_certain():
    line = a_line(0.0, 0.011, 0.019, 0.031)

    quiet, noisy = (Noise(variance=Variance(value, 8.0)) for value in (1e-6, 1e-2))
    assert line.p_value(noisy) > line.p_value(quiet)


def test_a_session_that_resembles_the_one_before_makes_a_line_less_certain():
    """The machine is now warm for some sessions, now cool for some."""
    waves = [1, 1, 1, -1, -1, -1, 1, 1, 1, -1, -1, -1]
    shaken = [1, -1, 1, 1, -1, 1, -1, -1, 1, -1, 1, -1]
    creep = [0.006 * place for place in range(12)]
    others = [[0.01 * sign for sign in signs] for signs in (waves, shaken)]
    correlated, independent = (
        a_trend(a_line(*(a + b for a, b in zip(creep, other, strict=True)))) for other in others
    )

    assert correlated.line.autocorrelation > 0.3 > independent.line.autocorrelation
    assert trends.have_drifted([correlated]) == [False]
    assert trends.have_drifted([independent]) == [True]


def test_independent_sessions_have_no_autocorrelation_in_the_mean():
    noise = random.Random(3)
    lines = [a_line(*(noise.gauss(0, 1) for _ in range(6))) for _ in range(2000)]
    weights = [line.residual.value for line in lines]
    found = sum(line.autocorrelation * w for line, w in zip(lines, weights, strict=True))

    assert found / sum(weights) == pytest.approx(0.0, abs=0.04)


def test_sessions_that_only_differ_are_called_a_drift_in_one_of_twenty_months_at_most():
    """One month is 30 checks, each with a session more; its suite has three workloads."""
    noise = random.Random(7)
    months = 60
    wrong = 0
    for _ in range(months):
        suite = [[noise.gauss(0, 0.02) for _ in range(30)] for _ in range(3)]
        wrong += any(
            any(
                trends.have_drifted(
                    [a_trend(a_line(*means[max(0, n - 20) : n]), floor=0.0) for means in suite]
                )
            )
            for n in range(trends.LEAST_SESSIONS, 31)
        )

    assert wrong <= stats.binom.isf(1e-4, months, trends.ALPHA)
