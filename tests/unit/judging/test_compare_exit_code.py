"""The exit code of rows, and what `fail_on` makes of them."""

from typing import get_args

import pytest

from ci_perf.judging.compare import exit_code
from ci_perf.model.comparison import Verdict
from ci_perf.model.suite import FailOn
from tests.comparisons import a_change

FAIL_ON = get_args(FailOn)  # regressed, unconfirmed, inconclusive, never


def codes(*rows):
    """The exit code for each value of `fail_on`, in the order of FAIL_ON."""
    return tuple(exit_code(rows[0].verdict, rows, fail_on) for fail_on in FAIL_ON)


@pytest.mark.parametrize(("gate", "expected"), [(True, (3, 1, 1, 0)), (False, (0, 0, 0, 0))])
def test_a_likely_loss_is_not_green_and_blames_only_where_a_suspicion_may(gate, expected):
    assert codes(a_change(verdict=Verdict.LIKELY_SLOWER, ratio=1.2, gate=gate)) == expected


def test_a_proven_regression_wins_over_a_likely_one():
    likely = a_change("bert", Verdict.LIKELY_SLOWER, ratio=1.2)

    assert codes(a_change(verdict=Verdict.REGRESSED, ratio=1.1), likely) == (1, 1, 1, 0)
