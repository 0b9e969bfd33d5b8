"""Samples with a known truth, made to mislead the judge: each ends as its truth says."""

from pathlib import Path

import msgspec
import pytest

from ci_perf.errors import CiPerfError, ExitCode
from ci_perf.judging import samples as judge
from ci_perf.model import codec
from ci_perf.model.comparison import Verdict
from ci_perf.model.samples import Samples

FILES = Path(__file__).parents[2] / "attacks"
ENDS = {
    "alone_3_percent": Verdict.REGRESSED,
    "alone_4_percent": Verdict.REGRESSED,
    # 50 % slower, and the budget has ended after 9 pairs; in one the base took 60 times as long.
    "base_that_hangs": Verdict.INCONCLUSIVE,
    "exact_count_all_zero": Verdict.UNCHANGED,
    "exact_count_zero_base": Verdict.REGRESSED,
    "exact_head_range_wide": Verdict.INCONCLUSIVE,
    "exact_memory": Verdict.UNCHANGED,
    "exact_ten_mib_of_one_gib": Verdict.REGRESSED,
    "higher_better_improved": Verdict.IMPROVED,
    "higher_better_regressed": Verdict.REGRESSED,
    "history_wide_hides_pairs": Verdict.UNCHANGED,  # its head is like its history
    "huge_outlier": Verdict.UNCHANGED,
    "one_head_launch": Verdict.UNCHANGED,
    # Both are 10 % slower, and one launch of each is 100 times as slow.
    "one_outlier_first": Verdict.REGRESSED,
    "outlier_hides_regression": Verdict.REGRESSED,
    "one_session_one_launch": Verdict.INCONCLUSIVE,
    "one_session_one_launch_two_workloads": Verdict.INCONCLUSIVE,
    # 50.45 and 50.55 ms, written in whole milliseconds.
    "rounded_to_a_millisecond": Verdict.INCONCLUSIVE,
    # One launch of the head in four is a tick slower.
    "ticks_ab": Verdict.INCONCLUSIVE,
    # Four pairs are too few for an alarm, and by a tick of 1 % they may all be half the limit.
    "ticks_four_equal": Verdict.INCONCLUSIVE,
    "ticks_four_nearly": Verdict.LIKELY_SLOWER,
    "two_launches": Verdict.INCONCLUSIVE,
    # Base and head of every workload come from one distribution with two modes.
    "two_modes_20_unchanged": Verdict.INCONCLUSIVE,
    "two_pairs_equal": Verdict.UNCHANGED,
    # Beyond half the limit as surely as "unchanged" has to be: two pairs clear nothing.
    "two_pairs_lucky": Verdict.LIKELY_SLOWER,
    "two_pairs_unchanged_no_history": Verdict.UNCHANGED,
    "zero_variance_same": Verdict.UNCHANGED,
    # It lies between half the limit and the limit, and is certain.
    "zero_variance_slower_1.5": Verdict.REGRESSED,
    "zero_variance_slower_5": Verdict.REGRESSED,
}
REFUSED = ("nan", "tiny_and_huge", "zero_pair", "zero_time")


def judged(name):
    samples = codec.decode((FILES / f"{name}.json").read_bytes(), Samples, name=name)
    return judge.judge(samples, base="base", head="head")


@pytest.mark.parametrize(("name", "verdict"), ENDS.items())
def test_samples_end_as_their_truth_says(name, verdict):
    comparison = judged(name)

    assert comparison.verdict is verdict
    assert (comparison.exit_code == ExitCode.REGRESSED) == (verdict is Verdict.REGRESSED)


@pytest.mark.parametrize("name", REFUSED)
def test_samples_without_a_logarithm_are_refused(name):
    with pytest.raises(CiPerfError, match="expected"):
        judged(name)


def test_each_file_has_a_truth():
    assert {path.stem for path in FILES.glob("*.json")} == {*ENDS, *REFUSED}


def test_no_workload_of_two_modes_raises_an_alarm():
    calls = {row.verdict for row in judged("two_modes_20_unchanged").rows}

    assert calls <= {Verdict.INCONCLUSIVE, Verdict.UNCHANGED}


def test_a_row_says_to_what_its_numbers_were_rounded():
    (row,) = judged("rounded_to_a_millisecond").rows

    assert (row.code, row.tick) == ("rounded", pytest.approx(0.02))
    assert row.interval.low < 1.01


def test_a_launch_that_hangs_is_not_in_the_numbers_that_are_shown():
    (row,) = judged("one_outlier_first").rows

    assert row.head / row.base == pytest.approx(row.ratio) == pytest.approx(1.101)


def test_a_base_that_hangs_hides_a_loss_from_the_mean_and_not_from_the_row():
    """Half of the pairs that a confirmation may have exclude nothing; all of them prove it."""
    samples = codec.decode((FILES / "base_that_hangs.json").read_bytes(), Samples, name="")
    (half,) = samples.workloads
    whole = msgspec.structs.replace(half, pairs=2 * half.pairs)

    (open_row,) = judged("base_that_hangs").rows
    decided = judge.judge(Samples(workloads=(whole,)), base="base", head="head")

    assert open_row.ratio == pytest.approx(1.5, rel=0.01)
    assert open_row.interval.high > 4
    assert decided.verdict is Verdict.REGRESSED
