from ci_perf.model.comparison import Verdict
from ci_perf.report import advice
from tests.comparisons import a_change, a_comparison, a_head, a_side


def steps(*rows):
    return ["".join(phrase) for phrase in advice.next_steps(a_comparison(*rows))]


def test_an_inconclusive_row_is_to_be_measured_again_with_more_processes():
    (step,) = steps(a_change("loader", Verdict.INCONCLUSIVE, code="spread"), a_change("mlp"))

    assert "`" not in step
    assert "ci-perf check loader --suite standard --processes 10" in step


def test_a_row_that_is_surely_not_worse_asks_nothing_of_anybody():
    assert steps(a_change("loader", Verdict.INCONCLUSIVE, code="not_worse")) == []


def test_the_next_command_names_the_run_and_the_baselines_that_were_judged():
    """Another file called run.json may hold another run's numbers."""
    comparison = a_comparison(
        a_change("bert", Verdict.REGRESSED, ratio=1.2),
        head=a_head(label="my runs/b 1.json"),
        base=a_side(label="perf/nvidia-h200/standard"),
    )

    (step,) = ("".join(phrase) for phrase in advice.next_steps(comparison))

    assert "ci-perf accept 'my runs/b 1.json' --workload bert --baselines perf --reason" in step


def test_between_two_runs_there_is_no_folder_of_baselines_to_name():
    comparison = a_comparison(
        a_change("bert", Verdict.IMPROVED, ratio=0.8), base=a_side(label="a/b/base.json")
    )

    (step,) = ("".join(phrase) for phrase in advice.next_steps(comparison))

    assert "--baselines" not in step


def test_a_regression_can_be_fixed_or_accepted_with_a_reason():
    (step,) = steps(a_change("bert.dtype=bf16", Verdict.REGRESSED, ratio=1.2))

    assert "ci-perf accept run.json --workload bert.dtype=bf16 --reason" in step
