import tomllib

import pytest

from ci_perf.measuring import distrust
from ci_perf.model import metrics
from ci_perf.model.comparison import Interval, Signs, Verdict
from ci_perf.model.run import Source
from ci_perf.model.validity import Status, validity_of
from ci_perf.report import advice, remarks
from ci_perf.report.escape import Command
from tests.comparisons import a_change, a_comparison, a_remedy, a_side, an_interleaved
from tests.runs import a_reason
from tests.unit.report.parts import an_undecided

IN_TURNS = "ci-perf check loader --suite standard --against "


def steps(*rows, **more):
    comparison = a_comparison(*rows, verdict=Verdict.INCONCLUSIVE, **more)
    return ["".join(phrase) for phrase in advice.list_steps(comparison)]


@pytest.mark.parametrize("code", ["spread", "too_few_sessions", "machine_moved"])
def test_what_the_budget_did_not_reach_asks_for_time_whatever_its_history_lacks(code):
    (step,) = steps(an_undecided(code=code), interleaved=an_interleaved(stopped="budget"))

    assert step.startswith("Not decided: loader step time")
    assert step.endswith(f"{IN_TURNS}main --budget 40m")


def test_where_pairs_would_not_help_a_quieter_machine_or_a_larger_limit_does():
    (step,) = steps(
        an_undecided(pairs=18, remedy=a_remedy()),
        an_undecided("conv", pairs=18, remedy=a_remedy(limit=0.2)),
        interleaved=an_interleaved(),
    )

    assert "more pairs would not help: loader step time, conv step time." in step
    assert step.endswith("under [limits]: step_time_s = { limit = 0.2 }")


@pytest.mark.parametrize("limit", [0.21, 0.93, 25.0])
def test_a_limit_that_would_promise_nothing_is_not_advised(limit):
    row = an_undecided(pairs=18, remedy=a_remedy(limit=limit))
    (step,) = steps(row, interleaved=an_interleaved())

    assert step.endswith("Use a quieter machine.")
    assert "larger limit" not in remarks.describe(row)


@pytest.mark.parametrize("limit", [0.0123, 0.1163, 0.2])
def test_the_limit_to_write_down_is_large_enough_and_toml(limit):
    comparison = a_comparison(an_undecided(pairs=18, remedy=a_remedy(limit=limit)))
    (step,) = advice.list_steps(comparison)

    commands = [part for part in step if isinstance(part, Command)]
    written = tomllib.loads(commands[-1])["step_time_s"]["limit"]
    assert limit <= written <= 1.1 * limit


@pytest.mark.parametrize(
    ("interval", "said"),
    [
        (Interval(low=0.97, high=1.0823), "no loss above 8.3 %"),
        (Interval(low=0.97, high=11.0), "no loss above 1,000 %"),
        (Interval(low=0.9, high=0.995), "no loss"),
        (Interval(low=0.0, high=1e40), ""),
        (None, ""),
    ],
)
@pytest.mark.parametrize("code", ["spread", "too_few_pairs", "base_failed", "other_packages"])
def test_a_row_without_an_answer_says_first_which_loss_it_excludes(interval, said, code):
    first, *_ = remarks.describe(an_undecided(code=code, interval=interval)).split("; ")

    assert first == said if said else "no loss" not in first


@pytest.mark.parametrize(
    "row",
    [
        an_undecided(pairs=18, remedy=a_remedy(limit=0.1)),
        an_undecided(pairs=2, remedy=a_remedy(13)),
        an_undecided(code="two_modes", pairs=18, remedy=a_remedy()),
        an_undecided(code="too_few_pairs", pairs=1),
        an_undecided(code="machine_moved"),
    ],
    ids=lambda row: row.code,
)
@pytest.mark.parametrize("code", sorted(advice.BUSY_CODES))
def test_on_a_busy_machine_the_advice_is_about_the_machine_alone(row, code):
    validity = validity_of((a_reason(code, workload="loader", status=Status.DEGRADED),))
    (step,) = steps(row, validity=validity, interleaved=an_interleaved(stopped="budget"))

    assert step.startswith(
        "The machine was too busy for a verdict: loader. Stop the other programs on it"
    )
    assert "ci-perf check loader" in step
    for word in ("limit", "kernel", "fix", "budget"):
        assert word not in step


def test_pressure_on_another_workload_excuses_nobody():
    validity = validity_of((a_reason("host_pressure", workload="other", status=Status.DEGRADED),))
    (step,) = steps(an_undecided(), validity=validity)

    assert "too busy" not in step


def test_a_workload_never_gets_more_time_and_word_that_it_would_not_help():
    rows = [
        an_undecided(pairs=18, remedy=a_remedy()),
        an_undecided(metric=metrics.HOST_RSS_PEAK, pairs=9, remedy=a_remedy(13)),
    ]
    (step,) = steps(*rows, interleaved=an_interleaved(stopped="budget"))

    assert step.startswith(
        "Not decided: loader peak host memory. The budget ended the pairs; "
        "launch more with a larger --budget: "
    )


def test_every_code_of_pressure_is_one_that_a_run_can_have():
    assert set(distrust.STATUS) >= advice.BUSY_CODES


def test_a_base_that_stopped_running_is_no_question_of_its_setup():
    row = an_undecided(code="base_failed", note="Segfault", pairs=2, remedy=a_remedy(9))
    (step,) = steps(row, interleaved=an_interleaved())

    assert "loader step time (after 2 pairs: Segfault)" in step
    assert "setup" not in step
    assert remarks.describe(row).endswith("; the base could not be launched after 2 pairs")


def test_packages_that_both_sides_share_are_accepted_or_installed_for_each_side():
    (step,) = steps(an_undecided(code="other_packages"), interleaved=an_interleaved())

    assert "launched with the packages that are installed" in step
    assert "ci-perf accept run.json --workload loader --reason" in step
    assert "install them in setup of suite.toml with --target" in step


@pytest.mark.parametrize(
    ("code", "end"),
    [
        ("spread", "--against main --baselines perf"),
        ("too_few_sessions", "ci-perf accept run.json --baselines perf --append"),
    ],
)
def test_the_command_names_the_folder_of_the_baselines_that_were_read(code, end):
    (step,) = steps(an_undecided(code=code), base=a_side(label="perf/nvidia-h200/standard"))

    assert step.endswith(end)


def test_a_ref_cannot_start_another_command():
    (step,) = steps(an_undecided(), interleaved=an_interleaved(ref="x; rm -rf ~", stopped="budget"))

    assert "--against 'x; rm -rf ~' --budget" in step


@pytest.mark.parametrize(
    ("metric", "ratio", "is_said"),
    [
        (metrics.STEP_TIME, 1.006, True),
        (metrics.STEP_TIME, 0.996, False),
        (metrics.HOST_RSS_PEAK, 1.006, False),
    ],
)
def test_an_unchanged_time_says_that_its_workload_computes_more(metric, ratio, is_said):
    signs = Signs(direction="worse", moved=("operators", "flops"))
    row = a_change(metric=metric, ratio=ratio, signs=signs)

    said = "also worse: operators per step, FLOPs per step" in remarks.describe(row)
    assert said is is_said


@pytest.mark.parametrize(("commit", "ref"), [("ab" * 20, "ab" * 20), ("unknown", "COMMIT")])
def test_two_runs_without_baselines_are_judged_against_the_commit_of_the_first(commit, ref):
    base = a_side(label="before.json", source=Source(commit=commit, branch="main", dirty=False))
    (step,) = steps(an_undecided(), base=base)

    assert step.endswith(f"--suite standard --against {ref}")
