"""Names of metrics: ours, and the user's own."""

import pytest

from ci_perf.model import metrics
from ci_perf.model.metrics import Better, Kind, Unit


def test_an_own_metric_says_by_its_name_what_it_is():
    metric = metrics.metric_of(metrics.name_own("rate", "tokens"))

    assert metric == metrics.Metric(
        name="rate.tokens",
        title="tokens",
        unit=Unit.PER_SECOND,
        kind=Kind.TIME,
        better=Better.HIGHER,
    )


@pytest.mark.parametrize("name", metrics.BY_NAME)
def test_a_metric_of_ours_is_none_of_the_user(name):
    assert metrics.find_metric(name) is metrics.BY_NAME[name]
    assert metrics.find_own([name]) == ()


@pytest.mark.parametrize(
    "name", ["time", "time.", "clock.x", ".x", "validity.x", "time.<b>", "time.a b"]
)
def test_another_name_is_no_metric(name):
    assert metrics.find_metric(name) is None
    with pytest.raises(KeyError):
        metrics.metric_of(name)
    with pytest.raises(ValueError, match=r"expected a name like 'time\.ttft'"):
        metrics.check_own(name, 1.0)


def test_exact_numbers_have_the_digits_that_a_baseline_keeps():
    numbers = {"score.f1": 0.123456789, "count.calls": 12345678.0, "time.x": 0.123456789}

    assert metrics.round_own(numbers) == {**numbers, "score.f1": 0.123457}
