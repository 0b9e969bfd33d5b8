"""What is told beside the table of a calibration."""

from ci_perf.features.calibrate import calibrate
from tests.calibrations import a_calibration


def test_a_new_statistic_is_told_with_the_workloads_that_it_speaks_for():
    (note,) = calibrate.statistic_notes(None, a_calibration(statistic="p25"), ["bert_base"])

    assert "median spoke for a launch of matmul before, and p25 will from now on" in note
    assert "bert_base" not in note


def test_where_the_suite_sets_every_statistic_nothing_must_be_accepted_again():
    own = ["matmul", "bert_base"]

    assert calibrate.statistic_notes(None, a_calibration(statistic="p25"), own) == []


def test_a_statistic_that_stays_is_not_worth_a_word():
    before = a_calibration(statistic="p25")

    assert calibrate.statistic_notes(before, a_calibration(statistic="p25"), []) == []
