"""What the owner of a runner reads: the tables of `calibrate` and `qualify`."""

import pytest

from ci_perf.report import calibration_report, tables
from tests.calibrations import a_calibration, a_qualification, a_qualified, a_workload
from tests.unit.report.rendered import Page


def shown(result):
    """Show a page as a terminal does."""
    return tables.terminal(calibration_report.page(result), width=200, color=False)


def read(result):
    """Return what a person reads: the page without its markup, on one line."""
    return " ".join(shown(result).split())


def test_the_first_line_of_a_calibration_is_what_was_chosen():
    found = shown(a_calibration())

    assert found.splitlines()[0] == (
        "This machine: statistic median, limit 2 %, by 2 workloads of suite builtin:smoke"
    )


def test_a_single_workload_is_counted_as_one():
    alone = {"matmul": a_workload(two_modes=True)}
    calibrated, qualified = a_calibration(workloads=alone), a_qualification(a_qualified())

    assert "by 1 workload of suite" in read(calibrated)
    assert "1 of 1 workload:" in read(calibrated)
    assert "in 1 of 1 workload, and" in read(qualified)


def test_the_fastest_block_comes_with_its_blind_spot():
    assert "hides what slows only some" in read(a_calibration(statistic="min"))
    assert "hides what slows only some" not in read(a_calibration())


def test_a_machine_that_is_too_noisy_is_told_so():
    found = read(a_calibration(limit=1.0, inconclusive=0.6))

    assert (
        "none up to 100 % of a step time: it leaves 60 % of unchanged workloads undecided" in found
    )


def test_two_modes_are_named_in_the_row_and_explained():
    workloads = {"matmul": a_workload(two_modes=True), "bert_base": a_workload()}

    found = read(a_calibration(workloads=workloads))

    assert "Two modes, 1 of 2 workloads" in found
    assert found.count("two modes") == 1


def test_a_workload_with_a_statistic_of_its_own_says_so():
    workloads = {"matmul": a_workload(statistic="min")}

    assert "suite.toml says min" in read(a_calibration(workloads=workloads))


def test_the_conclusion_counts_workloads_and_false_alarms():
    found = read(a_qualification(a_qualified(), a_qualified(noticed=0.3, alarms=0.01)))

    assert found.startswith(
        "This machine notices +5.0 % in 1 of 2 workloads, and raises a false alarm in 0.5 % of "
        "confirmations."
    )
    assert "w1 (30 %)." in found


def test_a_workload_whose_limit_lies_above_the_change_is_no_surprise():
    found = read(a_qualification(a_qualified(noticed=0.0, limit=0.25)))

    assert "w0 (0 %; its limit is not smaller)." in found


def test_too_few_pairs_are_said_to_be_too_few():
    assert "4 were launched: the shares are too optimistic" in read(
        a_qualification(a_qualified(pairs=4))
    )
    assert "too optimistic" not in read(a_qualification(a_qualified()))


@pytest.mark.parametrize(
    ("result", "rows"),
    [
        (a_calibration(), {8: 3}),
        (a_qualification(a_qualified(), a_qualified()), {12: 3}),
    ],
    ids=["calibration", "qualification"],
)
def test_in_markdown_every_row_is_complete(result, rows):
    page = Page(tables.markdown(calibration_report.page(result)))

    assert {cells: page.rows.count(cells) for cells in set(page.rows)} == rows
    assert "|" not in page.prose
    assert "**" not in page.prose


@pytest.mark.parametrize(
    ("noise", "said"),
    [
        ("quiet", "The time by the wall decides"),
        ("crowded", "CPU time gives one. It does not see waiting"),
        ("shared_host", "CPU time does not help"),
    ],
)
def test_the_machine_is_one_of_three_cases(noise, said):
    assert said in read(a_calibration(noise=noise))


def test_trimmed_pairs_are_told():
    assert "leaves out the outermost fifth" in read(a_calibration(trimmed=True))
    assert "outermost" not in read(a_calibration())
