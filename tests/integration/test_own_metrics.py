"""Metrics of the user's own that a workload returns, from a real process."""

from ci_perf.launch.local import LocalLauncher
from tests.launches import HEAD, failure_of, result_of

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


def test_a_number_that_says_nothing_fails_the_launch(task, tmp_path):
    source = SOURCE.format("{'rate.tokens': 0.0}")

    failure = failure_of(LocalLauncher(tmp_path).launch(task("it", source)))

    assert failure.reason.startswith("ValueError: rate.tokens: expected a number above 0")
