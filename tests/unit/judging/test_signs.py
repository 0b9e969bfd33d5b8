"""What exact evidence says of a time that noise leaves open, and which rows may not end green."""

import math

import pytest

from ci_perf.errors import ExitCode
from ci_perf.judging import signs
from ci_perf.judging.policy import default_limits
from ci_perf.model.comparison import Code, Signs, Verdict
from ci_perf.model.suite import Limit, Limits
from tests.comparisons import a_change
from tests.histories import (
    HISTORY,
    SLOWER,
    a_head,
    a_pair,
    in_turns,
    judged,
    pairs,
    row_of,
    said,
    scaled,
    sessions_of,
)
from tests.runs import MIB, STEADY, a_device_memory, a_measured, a_run, some_canaries

SAME, MORE = {"operators": 560, "flops": 1e9}, {"operators": 642, "flops": 1.29e9}
# A busy machine: two pairs that differ by 60 % decide nothing.
BUSY = (0.77, 1.43)


def launched(ratios, *, base=SAME, head=SAME, workload="w"):
    """A run without history whose pairs differ by these ratios, and what each side counts."""
    turns = [a_pair(1e-3, 1e-3 * ratio, base=base, **head) for ratio in ratios]
    run = a_run(a_measured(workload, *STEADY, **head))
    return judged([], in_turns(run, turns, workload=workload))


def answered(comparison):
    """The verdict and the reason code of the step time, and the exit code of the whole."""
    return (*said(comparison), comparison.exit_code)


def around(ratio):
    """Ratios of a busy machine whose geometric mean is this one."""
    return [ratio * noise / math.sqrt(math.prod(BUSY)) for noise in BUSY]


# --- likely slower


@pytest.mark.parametrize(
    ("operators", "verdict", "code", "exit_code"),
    [
        (9, Verdict.LIKELY_SLOWER, "worse_by_history", ExitCode.NO_ANSWER),
        (7, Verdict.INCONCLUSIVE, "worse_by_history", ExitCode.OK),
    ],
)
def test_what_only_its_history_shows_is_likely_where_the_code_does_more_work(
    operators, verdict, code, exit_code
):
    turns = [
        a_pair(1e-3, 1e-3 * ratio, base={"operators": 7}, operators=operators)
        for ratio in around(1)
    ]
    head = a_run(a_measured("w", *scaled(STEADY, 1.25), operators=operators))
    limits = Limits(default=default_limits() | {"operators": Limit(gate=False)})

    comparison = judged(sessions_of(operators=7), in_turns(head, turns), limits=limits)

    assert answered(comparison) == (verdict, code, exit_code)


def test_a_slow_time_is_likely_slower_where_the_code_does_more_work():
    comparison = launched(around(1.18), head=MORE)

    assert said(comparison)[0] is Verdict.LIKELY_SLOWER
    assert row_of(comparison).signs == Signs(direction="worse", moved=("operators", "flops"))
    assert comparison.exit_code == ExitCode.NO_ANSWER
    assert comparison.verdict is Verdict.LIKELY_SLOWER


def test_so_it_is_without_the_base_where_its_history_predicts_it():
    history = sessions_of(operators=7)

    alone = judged(history, a_run(a_measured("w", *scaled(STEADY, 1.1), operators=9)))

    assert answered(alone) == (Verdict.LIKELY_SLOWER, "history_alone", ExitCode.NO_ANSWER)


@pytest.mark.parametrize(
    ("base", "head", "direction"),
    [
        ({"operators": 7}, {"operators": 9}, "worse"),
        ({"flops": 1e9}, {"flops": 2e9}, "worse"),
        ({"breaks": 0}, {"breaks": 1}, "worse"),
        ({"operators": 7, "flops": 2e9}, {"operators": 9, "flops": 1e9}, "mixed"),
        ({"operators": 9}, {"operators": 7}, "better"),
    ],
)
def test_counts_have_a_direction(base, head, direction):
    comparison = launched(around(1.18), base=base, head=head)

    assert row_of(comparison).signs.direction == direction
    is_likely = said(comparison)[0] is Verdict.LIKELY_SLOWER
    assert is_likely is (direction == "worse")


def test_memory_that_is_saved_does_not_hide_that_more_is_computed():
    """As activation checkpointing does."""
    large, small = (
        {"device": a_device_memory(peak_allocated_bytes=size * MIB)} for size in (900, 500)
    )

    comparison = launched(around(1.18), base=SAME | large, head=MORE | small)

    assert said(comparison)[0] is Verdict.LIKELY_SLOWER


def test_more_work_that_does_not_show_in_the_time_makes_nothing_likely():
    comparison = launched(around(1.0), head=MORE)

    assert answered(comparison) == (Verdict.INCONCLUSIVE, "spread", ExitCode.OK)


def test_more_work_makes_no_memory_slower():
    head = MORE | {"rss": 330 * MIB}
    comparison = launched([1.0], base=SAME | {"rss": 300 * MIB}, head=head)

    assert said(comparison, "host_rss_peak_bytes") == (Verdict.INCONCLUSIVE, "too_few_pairs")


# --- far from the base


def test_forty_times_the_operators_and_one_pair_say_that_it_is_far_beyond_its_limit():
    comparison = launched([11.0], base={"operators": 10}, head={"operators": 430})

    expected = (Verdict.LIKELY_SLOWER, "too_few_pairs", ExitCode.NO_ANSWER)
    assert answered(comparison) == expected
    assert (row_of(comparison).pairs, row_of(comparison).ratio) == (1, pytest.approx(11.0))


@pytest.mark.parametrize("counts", [SAME, {}], ids=["the same counts", "no counts"])
def test_what_is_far_from_its_base_is_not_green_whatever_is_counted(counts):
    comparison = launched([1.28], base=counts, head=counts)

    expected = (Verdict.INCONCLUSIVE, "too_few_pairs", ExitCode.NO_ANSWER)
    assert answered(comparison) == expected


def test_memory_that_is_far_from_its_base_is_not_green_either():
    comparison = launched([1.0], base=SAME | {"rss": 300 * MIB}, head=SAME | {"rss": 390 * MIB})

    assert comparison.exit_code == ExitCode.NO_ANSWER


@pytest.mark.parametrize(
    ("operators", "verdict"), [(7, Verdict.INCONCLUSIVE), (9, Verdict.LIKELY_SLOWER)]
)
def test_a_time_that_only_a_moved_machine_explains_is_not_green_without_launches_of_the_base(
    operators, verdict
):
    usual = a_measured("w", *STEADY, operators=7)
    slow = a_measured("w", *scaled(STEADY, 1.3), operators=operators)
    history = [a_run(usual, canaries=some_canaries()) for _ in range(3)]
    limits = Limits(default=default_limits() | {"operators": Limit(gate=False)})

    found = judged(history, a_run(slow, canaries=some_canaries(before=1.2e-3)), limits=limits)
    assert answered(found) == (verdict, "machine_moved", ExitCode.NO_ANSWER)


def test_what_may_be_much_faster_is_green_and_no_sign_of_nothing():
    comparison = launched(around(0.7))

    assert answered(comparison) == (Verdict.INCONCLUSIVE, "spread", ExitCode.OK)
    assert not signs.has_no_sign(row_of(comparison))


# --- no sign of a change


@pytest.mark.parametrize(
    ("code", "ratio", "direction", "has_none"),
    [
        (Code.SPREAD, 1.02, "equal", True),
        (Code.SPREAD, 1.03, "equal", False),  # beyond its limit of 2 %
        (Code.SPREAD, 1.02, "worse", False),
        (Code.WITHIN_LIMIT, 1.0, "equal", False),  # it has an answer
    ],
)
def test_no_sign_is_an_open_row_near_its_base_whose_exact_rows_are_the_same(
    code, ratio, direction, has_none
):
    row = a_change(code=code, ratio=ratio, limit=0.02, signs=Signs(direction=direction))

    assert signs.has_no_sign(row) is has_none


def test_what_has_no_ratio_is_not_near_its_base():
    row = a_change(code=Code.TOO_FEW_SESSIONS, base=0.0, head=0.1, signs=Signs(direction="equal"))

    assert not signs.has_no_sign(row)


@pytest.mark.parametrize("gate", [True, False])
def test_only_what_gates_looks_worse(gate):
    assert signs.looks_worse(a_change(verdict=Verdict.LIKELY_SLOWER, ratio=1.1, gate=gate)) is gate


@pytest.mark.parametrize(("code", "is_open"), [(Code.SPREAD, True), (Code.UNTRUSTED, False)])
def test_a_row_of_a_machine_that_cannot_be_trusted_is_not_open(code, is_open):
    assert signs.is_open(a_change(verdict=Verdict.INCONCLUSIVE, code=code)) is is_open


def test_a_busy_machine_does_not_stop_a_change_that_does_the_same_work():
    comparison = launched(around(1.01))

    assert answered(comparison) == (Verdict.INCONCLUSIVE, "spread", ExitCode.OK)
    assert signs.has_no_sign(row_of(comparison))
    assert not signs.has_drifted(row_of(comparison))  # there is no history
    assert row_of(comparison).signs == Signs(direction="equal", equal=("operators", "flops"))


def test_other_numerics_are_a_sign_of_a_change():
    comparison = launched(
        around(1.01), base=SAME | {"losses": (1.0,)}, head=SAME | {"losses": (1.1,)}
    )

    assert said(comparison) == (Verdict.INCONCLUSIVE, "spread")
    assert row_of(comparison).signs is None


def test_without_any_count_nobody_says_that_there_is_no_sign():
    assert said(launched(around(1.01), base={}, head={})) == (Verdict.INCONCLUSIVE, "spread")


# --- who moved


def test_nine_pairs_that_allow_the_limit_do_not_say_that_the_machine_moved():
    """Truth +13 %, operators 7 to 9; pairs say +7.5 % [-10, +29], the history +30.4 %."""
    limit = Limit(relative=0.3)
    wide = Limits(default=default_limits() | {"step_time_s": limit})
    # Nine differences around their mean, with a standard deviation of 1.
    deviations = [-1.11, 1.11, -1.11, 1.11, 0.0, -0.55, 0.55, -1.11, 1.11]
    ratios = [1.075 * math.exp(0.15 * deviation) for deviation in deviations]
    run = a_run(a_measured("w", *scaled(STEADY, 1.304), operators=9))
    turns = [a_pair(1e-3, 1e-3 * ratio, base={"operators": 7}, operators=9) for ratio in ratios]

    comparison = judged(sessions_of(operators=7), in_turns(run, turns), limits=wide)

    row = row_of(comparison)
    assert (row.verdict, row.code, row.pairs) == (Verdict.UNCHANGED, "within_limit", 9)
    assert row.ratio == pytest.approx(1.075, abs=1e-3)
    assert (row.interval.low, row.interval.high) == pytest.approx((0.892, 1.294), abs=0.02)
    assert row.drift == pytest.approx(1.304, abs=1e-3)
    assert row.signs == Signs(direction="worse", moved=("operators",))


@pytest.mark.parametrize(("spread", "code"), [(0.001, "baseline_moved"), (0.006, "within_limit")])
def test_pairs_that_exclude_the_limit_say_who_moved(spread, code):
    run = in_turns(a_head(scaled(STEADY, 1.1)), pairs(1.004, spread=spread, base_s=1.1e-3))

    assert said(judged(sessions_of(), run)) == (Verdict.UNCHANGED, code)


def test_a_gain_of_the_machine_must_be_earned_as_well():
    run = in_turns(a_head(scaled(STEADY, 0.9)), pairs(0.996, spread=0.006, base_s=0.9e-3))

    assert said(judged(sessions_of(), run)) == (Verdict.UNCHANGED, "within_limit")


def test_what_its_history_clears_says_that_the_code_does_more_work():
    head = a_run(a_measured("w", *scaled(STEADY, 1.001), operators=9))
    limits = Limits(default=default_limits() | {"step_time_s": Limit(relative=0.05)})

    comparison = judged(sessions_of(operators=7), head, limits=limits)

    assert said(comparison) == (Verdict.UNCHANGED, "within_limit")
    assert row_of(comparison).signs.direction == "worse"


# --- worse by its history


@pytest.mark.parametrize(
    ("head", "ratio", "spread", "code"),
    [
        (1.1, 1.08, 0.15, "worse_by_history"),
        (1.1, 1.0, 0.15, "worse_by_history"),
        (1.1, 1.0, 0.05, "spread"),  # so large a change would have been seen
        (1.019, 1.08, 0.15, "spread"),
        (0.9, 1.0, 0.15, "spread"),
    ],
)
def test_where_pairs_decide_nothing_a_history_that_is_far_away_is_named(head, ratio, spread, code):
    head = a_head(scaled(STEADY, head))
    comparison = judged(HISTORY, in_turns(head, pairs(ratio, count=7, spread=spread)))

    row = row_of(comparison)
    assert (row.verdict, row.code) == (Verdict.INCONCLUSIVE, code)
    assert comparison.exit_code == ExitCode.OK  # and the row says which losses it excludes


def test_a_history_counts_for_nothing_where_the_machine_has_moved():
    moved = in_turns(
        a_head(SLOWER, canaries=some_canaries(before=1.2e-3)), pairs(1.0, count=7, spread=0.15)
    )
    history = [a_head(canaries=some_canaries()) for _ in range(4)]

    comparison = judged(history, moved)

    assert said(comparison) == (Verdict.INCONCLUSIVE, "spread")
    assert comparison.exit_code == ExitCode.OK


@pytest.mark.parametrize(
    ("ratio", "drift", "contradicts"),
    [
        (0.8, 1.2, True),
        (1.2, 0.8, True),
        (0.8, 0.9, False),
        (0.8, 1.001, False),
        (0.8, None, False),
    ],
)
def test_pairs_against_a_history_that_moved_the_other_way_contradict_it(ratio, drift, contradicts):
    row = a_change("mlp", Verdict.IMPROVED, ratio=ratio, drift=drift, pairs=6)

    assert signs.contradicts_history(row) is contradicts


def test_a_count_that_fell_to_zero_since_its_history_is_judged_like_any_other():
    history = sessions_of(breaks=1, graphs=1)
    head = in_turns(
        a_run(a_measured("w", *STEADY, graphs=1)), pairs(1.0, graphs=1, base={"graphs": 1})
    )

    row = row_of(judged(history, head), "graph_breaks")

    assert (row.drift, row.verdict, row.code) == (0.0, Verdict.UNCHANGED, Code.BASELINE_MOVED)
