"""Pairs that prove the contrary of what the history shows."""

import pytest

from ci_perf.baselines import summaries
from ci_perf.baselines.accept import Mode
from ci_perf.judging import compare, summarise
from ci_perf.model.comparison import Change
from ci_perf.report import remarks
from tests.accepting import accepted
from tests.histories import DAYS, in_turns, pairs, scaled
from tests.runs import CPU, STEADY, a_measured, a_run


@pytest.fixture
def base(tmp_path):
    for number, day in enumerate(DAYS):
        run = a_run(a_measured("mlp", *scaled(STEADY, day)), id=f"day-{number}")
        accepted(tmp_path, run, mode=Mode.APPEND, reason="Another day")
    return summaries.baselines(tmp_path, CPU, "smoke")


def row(base, *, history, in_pairs):
    run = a_run(a_measured("mlp", *scaled(STEADY, history)))
    run = in_turns(run, pairs(in_pairs), workload="mlp")
    rows = compare.compare(base, summarise.run(run, label="")).rows
    return next(each for each in rows if isinstance(each, Change) and each.metric == "step_time_s")


def test_a_gain_in_pairs_is_contrary_to_a_loss_against_the_history(base):
    found = row(base, history=2.0, in_pairs=0.5)

    assert found.contrary is not None
    assert found.contrary.low > 1
    assert "history shows the contrary" in remarks.describe(found)


@pytest.mark.parametrize(("history", "in_pairs"), [(2.0, 1.0), (2.0, 2.0), (1.0, 2.0)])
def test_what_only_one_of_them_shows_is_no_contradiction(base, history, in_pairs):
    assert row(base, history=history, in_pairs=in_pairs).contrary is None
