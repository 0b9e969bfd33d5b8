import tomllib

import pytest

from ci_perf.model import metrics
from ci_perf.model.comparison import Verdict
from ci_perf.model.suite import LARGEST_MARGIN
from ci_perf.report import advice, remarks
from ci_perf.report.escape import Command
from tests.comparisons import a_comparison, a_remedy, a_side, an_interleaved
from tests.unit.report.parts import undecided

IN_TURNS = "ci-perf check loader --suite standard --against "


def steps(*rows, **more):
    comparison = a_comparison(*rows, verdict=Verdict.INCONCLUSIVE, **more)
    return ["".join(phrase) for phrase in advice.next_steps(comparison)]


@pytest.mark.parametrize(
    "code", ["spread", "two_modes", "too_few_sessions", "canary_moved", "a_later_code"]
)
def test_what_history_cannot_decide_is_decided_by_launches_in_turns(code):
    (step,) = steps(undecided(code=code))

    assert "loader" in step
    assert f"{IN_TURNS}main" in step
    assert "--budget" not in step


def test_too_few_pairs_ask_for_the_time_that_the_rest_takes():
    (step,) = steps(
        undecided(pairs=9, remedy=a_remedy(13)),
        interleaved=an_interleaved(ref="release/2", budget_s=1200.0, stopped="budget"),
    )

    assert "loader step time (about 13 pairs would decide)" in step
    assert f"{IN_TURNS}release/2 --budget 40m" in step


def test_what_got_no_pair_at_all_asks_for_time_as_well():
    (step,) = steps(undecided(), interleaved=an_interleaved(stopped="budget"))

    assert step.endswith(f"{IN_TURNS}main --budget 40m")


def test_where_pairs_would_not_help_a_quieter_machine_or_a_wider_margin_does():
    (step,) = steps(
        undecided(pairs=18, remedy=a_remedy()),
        undecided("conv", pairs=18, remedy=a_remedy(margin=0.2)),
        interleaved=an_interleaved(),
    )

    assert "loader step time (pairs differ by 15 %, 4 % would decide, or a margin of 12 %)" in step
    assert step.endswith("under `[limits]`: step_time_s = { margin = 0.2 }")


def test_a_margin_that_suite_toml_would_refuse_is_not_advised():
    row = undecided(pairs=18, remedy=a_remedy(margin=25.0))
    (step,) = steps(row, interleaved=an_interleaved())

    assert step.endswith("Use a quieter machine.")
    assert "margin" not in remarks.of(row)


@pytest.mark.parametrize("margin", [0.0123, 0.1163, 1.5, LARGEST_MARGIN])
def test_the_margin_to_write_down_is_wide_enough_and_toml(margin):
    comparison = a_comparison(undecided(pairs=18, remedy=a_remedy(margin=margin)))
    (line,) = [
        part
        for phrase in advice.next_steps(comparison)
        for part in phrase
        if isinstance(part, Command)
    ]

    written = tomllib.loads(line)["step_time_s"]["margin"]
    assert margin <= written <= 1.1 * margin


def test_launches_with_two_speeds_ask_for_what_they_choose():
    (step,) = steps(
        undecided(code="two_modes", pairs=18, remedy=a_remedy()), interleaved=an_interleaved()
    )

    assert "now fast, now slow: loader. Find out what they choose" in step


def test_a_base_that_could_not_be_launched_says_why_and_what_it_may_lack():
    (step,) = steps(
        undecided(code="base_failed", note="ImportError: kernels"), interleaved=an_interleaved()
    )

    assert "loader step time (ImportError: kernels)" in step
    assert "is in run.json, under paired." in step
    assert 'setup = { command = "…" }' in step


def test_a_base_that_stopped_running_is_no_question_of_its_setup():
    row = undecided(code="base_failed", note="Segfault", pairs=2, remedy=a_remedy(9))
    (step,) = steps(row, interleaved=an_interleaved())

    assert "loader step time (not any more, after 2 pairs: Segfault)" in step
    assert "setup" not in step
    assert remarks.of(row) == (
        "inconclusive: the base could not be launched beside it any more, after 2 pairs"
    )


def test_clocks_that_differ_are_to_be_fixed():
    (step,) = steps(undecided(code="clocks_moved", pairs=9), interleaved=an_interleaved())

    assert "in cycles the change does not show: loader. Fix the clocks" in step


def test_ranges_that_overlap_are_the_doing_of_the_workload():
    (step,) = steps(undecided(code="ranges_overlap", metric=metrics.PEAK_ALLOCATED))

    assert "loader peak allocated. Make the workload do the same work" in step


def test_each_cure_is_said_once_for_all_whom_it_helps():
    assert len(steps(undecided("a"), undecided("b"), undecided("c", code="two_modes"))) == 2


def test_the_command_names_the_folder_of_the_baselines_that_were_read():
    (step,) = steps(undecided(), base=a_side(label="perf/nvidia-h200/standard"))

    assert step.endswith("--against main --baselines perf")


def test_a_longer_history_is_kept_in_the_folder_that_was_read():
    row = undecided(code="too_few_sessions")
    (step,) = steps(row, base=a_side(label="perf/nvidia-h200/standard"))

    assert step.endswith("ci-perf accept run.json --baselines perf --append")


def test_a_ref_cannot_start_another_command():
    (step,) = steps(undecided(), interleaved=an_interleaved(ref="x; rm -rf ~", stopped="budget"))

    assert "--against 'x; rm -rf ~' --budget" in step
