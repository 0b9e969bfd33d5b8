"""The exit code of rows, and what `fail_on` makes of them."""

from typing import get_args

import pytest

from ci_perf.judging.rules import exit_code
from ci_perf.model.comparison import Signs, Verdict
from ci_perf.model.suite import FailOn
from ci_perf.model.validity import Status, validity_of
from tests.comparisons import a_change, a_numerics, an_uncompared
from tests.runs import VALID, a_reason

FAIL_ON = get_args(FailOn)  # proven, likely, unanswered, never
MORE_WORK = Signs(direction="worse", moved=("operators",))
UNCHANGED = a_change("other")


def codes(*rows, validity=VALID):
    """The exit code for each value of `fail_on`, in the order of FAIL_ON."""
    return tuple(exit_code(rows, validity, fail_on) for fail_on in FAIL_ON)


def a_loss(code, ratio=1.1, verdict=Verdict.INCONCLUSIVE, **more):
    """A time whose limit is 2 %, without an answer and far beyond it unless told."""
    return a_change(verdict=verdict, ratio=ratio, code=code, **more)


def a_suspect(ratio=1.1, verdict=Verdict.LIKELY_SLOWER, **more):
    """A time that its history alone makes suspicious."""
    return a_loss("history_alone", ratio, verdict, **more)


ROWS = {
    "proven": (a_change(verdict=Verdict.REGRESSED, ratio=1.1), (1, 1, 1, 0)),
    "proven, no gate": (a_change(verdict=Verdict.REGRESSED, ratio=1.1, gate=False), (0, 0, 0, 0)),
    "numerics changed": (a_numerics(gate=True), (1, 1, 1, 0)),
    "numerics vary": (a_numerics(gate=True, code="numerics_vary"), (1, 1, 1, 0)),
    "numerics changed, no gate": (a_numerics(), (0, 0, 0, 0)),
    "workload failed": (an_uncompared(), (3, 3, 3, 3)),
    "workload missing": (an_uncompared(code="missing"), (3, 3, 3, 3)),
    "metric missing": (an_uncompared(metric="x", code="missing"), (3, 3, 3, 3)),
    "metric missing, no gate": (
        an_uncompared(metric="x", code="missing", gate=False),
        (0, 0, 0, 0),
    ),
    "new": (an_uncompared(verdict=Verdict.NEW), (0, 0, 0, 0)),
    "not comparable": (an_uncompared(verdict=Verdict.INCONCLUSIVE), (3, 3, 3, 3)),
    "not comparable, judged by pairs": (
        an_uncompared(verdict=Verdict.INCONCLUSIVE, gate=False),
        (0, 0, 0, 0),
    ),
    "untrusted": (a_loss("untrusted"), (3, 3, 3, 3)),
    "untrusted, no gate": (a_loss("untrusted", gate=False), (0, 0, 0, 0)),
    "unproven program": (
        an_uncompared(verdict=Verdict.INCONCLUSIVE, code="unproven_program"),
        (3, 3, 1, 3),
    ),
    "not compared": (
        an_uncompared(verdict=Verdict.INCONCLUSIVE, code="too_few_pairs"),
        (3, 3, 1, 3),
    ),
    "far, no pairs": (a_loss("spread"), (3, 3, 1, 0)),
    "far, few pairs": (a_loss("too_few_pairs", pairs=5), (3, 3, 1, 0)),
    "far, enough pairs": (a_loss("spread", pairs=6), (0, 0, 1, 0)),
    "near": (a_loss("spread", 1.015), (0, 0, 1, 0)),
    "near, required": (a_loss("spread", 1.015, pairs=18, require=True), (3, 3, 1, 0)),
    "near, worse by history": (a_loss("worse_by_history", 1.015, pairs=5), (3, 3, 1, 0)),
    "near, worse by history, same counts": (
        a_loss("worse_by_history", 1.015, pairs=5, signs=Signs(direction="equal")),
        (0, 0, 1, 0),
    ),
    "likely": (a_loss("spread", verdict=Verdict.LIKELY_SLOWER, pairs=18), (3, 1, 1, 0)),
    "likely, no gate": (
        a_loss("spread", verdict=Verdict.LIKELY_SLOWER, gate=False),
        (0, 0, 0, 0),
    ),
    "history alone": (a_suspect(), (3, 1, 1, 0)),
    "history alone, near": (a_suspect(1.015), (0, 1, 1, 0)),
    "history alone, near, required": (a_suspect(1.015, require=True), (3, 1, 1, 0)),
    "history alone, two sessions": (a_suspect(base_sessions=2), (3, 3, 1, 0)),
    "history alone, two sessions, more work": (
        a_suspect(base_sessions=2, signs=MORE_WORK),
        (3, 1, 1, 0),
    ),
    "history alone, a gain": (a_suspect(0.9, Verdict.INCONCLUSIVE), (0, 0, 0, 0)),
    "history alone, no gate": (a_suspect(gate=False), (0, 0, 0, 0)),
    "improved": (a_change(verdict=Verdict.IMPROVED, ratio=0.9), (0, 0, 0, 0)),
    "unchanged": (a_change(), (0, 0, 0, 0)),
    "same program": (
        an_uncompared(verdict=Verdict.UNCHANGED, code="same_program"),
        (0, 0, 0, 0),
    ),
}


@pytest.mark.parametrize(("row", "expected"), ROWS.values(), ids=ROWS)
def test_each_kind_of_row_has_its_exit_code(row, expected):
    assert codes(row, UNCHANGED) == expected


def test_a_proven_regression_wins_over_a_likely_one():
    proven, likely = ROWS["proven"][0], ROWS["likely"][0]

    assert codes(likely, proven) == (1, 1, 1, 0)


def test_nothing_compared_is_no_answer():
    assert codes() == (3, 3, 3, 3)
    assert codes(ROWS["new"][0]) == (3, 3, 3, 3)


def test_a_run_that_is_invalid_has_no_answer_where_nothing_is_proven():
    invalid = validity_of((a_reason("interrupted", status=Status.INVALID),))

    assert codes(UNCHANGED, validity=invalid) == (3, 3, 3, 3)
    assert codes(ROWS["proven"][0], validity=invalid) == (1, 1, 1, 3)
