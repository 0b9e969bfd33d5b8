"""Metrics of the user's own that a workload returns, from a real process."""

import pytest

from ci_perf.launch.local import LocalLauncher
from ci_perf.model.task import TaskFailure
from tests.launches import HEAD, result_of

SOURCE = (
    HEAD
    + """
steps = []
def step():
    steps.append(1)
def build(context):
    return Workload(step=step, metrics=lambda: {})
"""
)


def test_a_workload_returns_metrics_of_its_own_after_its_steps(task, tmp_path):
    numbers = "{'rate.tokens': 1e6, 'count.few': len(steps) < 3, 'score.f1': 0.123456789}"

    outcome = LocalLauncher(tmp_path).launch(task("it", SOURCE.format(numbers)))

    assert result_of(outcome).process.metrics == {
        "rate.tokens": 1e6,
        "count.few": 0.0,
        "score.f1": 0.123457,
    }


@pytest.mark.parametrize(
    ("numbers", "reason"),
    [
        ("{'tokens': 1.0}", "ValueError: expected a name like 'time.ttft'"),
        ("{'rate.tokens': 0.0}", "ValueError: rate.tokens: expected a number above 0"),
        ("1 / 0", "ZeroDivisionError"),
    ],
)
def test_a_number_that_says_nothing_fails_the_launch(task, tmp_path, numbers, reason):
    failure = LocalLauncher(tmp_path).launch(task("it", SOURCE.format(numbers)))

    assert isinstance(failure, TaskFailure)
    assert failure.reason.startswith(reason)
