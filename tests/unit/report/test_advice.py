from ci_perf.model.comparison import Verdict
from ci_perf.report import advice
from tests.comparisons import a_change, a_comparison


def steps(*rows):
    return ["".join(phrase) for phrase in advice.next_steps(a_comparison(*rows))]


def test_an_inconclusive_row_is_to_be_measured_again_with_more_processes():
    (step,) = steps(a_change("loader", Verdict.INCONCLUSIVE, code="spread"), a_change("mlp"))

    assert "`" not in step
    assert "ci-perf check loader --suite standard --processes 10" in step


def test_a_row_that_is_surely_not_worse_asks_nothing_of_anybody():
    assert steps(a_change("loader", Verdict.INCONCLUSIVE, code="not_worse")) == []


def test_a_regression_can_be_fixed_or_accepted_with_a_reason():
    (step,) = steps(a_change("bert.dtype=bf16", Verdict.REGRESSED, ratio=1.2))

    assert "ci-perf accept run.json --workload bert.dtype=bf16 --reason" in step
