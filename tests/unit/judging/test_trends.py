import math

import pytest

from ci_perf.judging import trends
from ci_perf.model import metrics
from tests.subjects import a_session, a_subject


def a_history(*sessions, workload="w", epochs=None):
    """One workload; each session is its step times, beside a count."""
    return a_subject(
        *(
            a_session(
                *({"step_time_s": s, "graph_breaks": 2.0} for s in session),
                day=day,
                epochs={"step_time_s": epochs[day - 1]} if epochs else {},
            )
            for day, session in enumerate(sessions, 1)
        ),
        workload=workload,
    )


def everything(_subject, _metric):
    return 0.01


def of_time(history):
    (found,) = (
        one
        for one in trends.describe([history], everything)
        if one.metric == metrics.STEP_TIME.name
    )
    return found


MOVED = a_history([1.0, 1.0], [1.1], [2.0, 2.0], [2.2], [2.2], epochs=[0, 0, 1, 1, 1])


def test_the_centre_is_that_of_the_current_epoch():
    assert of_time(MOVED).centre == pytest.approx((2.0 * 2.2 * 2.2) ** (1 / 3))


def test_the_spread_is_that_around_the_mean_of_each_epoch():
    """Squares of one half, and of a third and two of a sixth of the step, by three degrees."""
    step = math.log(1.1)

    assert of_time(MOVED).spread == pytest.approx(step * math.sqrt((1 / 2 + 2 / 3) / 3))


def test_what_the_gate_excludes_follows_the_launches_of_a_session_and_not_the_days():
    """Two launches 2 % apart: 1.4 % each, 2 % a pair; 18 of them reach half of that to a side."""
    days = [[day, 1.02 * day] for day in (1.0, 1.1, 0.9, 1.0, 1.2, 1.0, 0.8, 1.0)]
    calm = [[day, 1.002 * day] for day in (1.0, 1.1, 0.9)]

    assert of_time(a_history(*days)).excludes == pytest.approx(0.01, rel=0.2)
    assert of_time(a_history(*days[:3])).excludes > of_time(a_history(*days)).excludes
    assert of_time(a_history(*calm)).excludes < 0.002
    assert of_time(a_history([1.0], [1.1])).excludes is None


def test_one_session_has_neither_spread_nor_trend():
    found = of_time(a_history([1.0, 1.1]))

    assert (found.spread, found.trend, found.has_drifted) == (None, None, False)


def test_the_trend_is_the_climb_of_a_line_through_the_sessions():
    found = of_time(a_history(*([1.02**day + 1e-4 * (day % 2)] for day in range(7))))

    assert found.trend == pytest.approx(1.02**6, rel=1e-3)
    assert found.has_drifted


def test_what_is_compared_exactly_has_a_centre_and_no_spread():
    (_, breaks) = trends.describe([MOVED], everything)

    assert breaks.metric == "graph_breaks"
    assert (breaks.centre, breaks.spread, breaks.trend) == (2.0, None, None)


def test_only_what_is_asked_for_is_told_by_workload():
    found = trends.describe(
        [a_history([1.0], workload="b"), a_history([1.0], workload="a")],
        lambda _subject, metric: 0.01 if metric is metrics.STEP_TIME else None,
    )

    assert [(one.workload, one.metric) for one in found] == [
        ("a", "step_time_s"),
        ("b", "step_time_s"),
    ]


def of_levels(split):
    found = trends.levels(MOVED, metrics.STEP_TIME, split)
    return [(level.first, level.accepted) for level in found]


def test_an_accepted_change_begins_a_level_without_looking():
    assert of_levels(None) == [(0, True), (2, True)]
    before, after = trends.levels(MOVED, metrics.STEP_TIME, None)
    assert after.centre / before.centre == pytest.approx(
        (2.0 * 2.2 * 2.2) ** (1 / 3) / math.sqrt(1.1)
    )


def test_other_levels_are_looked_for_within_each_epoch():
    seen = []

    def split(series):
        seen.append(len(series))
        return [1] if len(series) == 3 else []

    assert of_levels(split) == [(0, True), (2, True), (3, False)]
    assert seen == [2, 3]


def test_of_an_exact_metric_every_other_number_begins_a_level():
    counts = (2, 3, 3, 2, 2, 1)
    subject = a_subject(
        *(a_session({"graph_breaks": float(n)}, day=day) for day, n in enumerate(counts, 1))
    )

    found = trends.levels(subject, metrics.GRAPH_BREAKS, None)

    assert [(level.first, level.centre) for level in found] == [(0, 2), (1, 3), (3, 2), (5, 1)]
