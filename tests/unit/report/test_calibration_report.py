"""What the owner of a runner reads: the table of `calibrate`."""

import pytest

from ci_perf.report import calibration_report, tables
from tests.calibrations import a_calibration, a_planted, a_workload
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
    assert "by 1 workload of suite" in read(a_calibration(workloads={"matmul": a_workload()}))


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

    assert "Two modes: some launches are fast" in found
    assert found.count("two modes") == 1


def test_a_workload_with_a_statistic_of_its_own_says_so():
    workloads = {"matmul": a_workload(statistic="min")}

    assert "suite.toml says min" in read(a_calibration(workloads=workloads))


def test_a_planted_slowdown_is_found_or_not_with_its_interval():
    workloads = {
        "matmul": a_workload(planted=a_planted()),
        "bert_base": a_workload(planted=a_planted(proven=False)),
        "wide": a_workload(planted=a_planted(proven=False, limit=0.25)),
        "broken": a_workload(),
    }

    found = read(a_calibration(planted=0.03, workloads=workloads))

    assert "slowdown of 3 % was planted, and pairs found it in 1 of 3 workloads." in found
    assert "Not found: bert_base, wide (its limit is 25 %)." in found
    for cell in (" found: +3.0 % [+2.0, +4.0]", "not found: +3.0 % [", "failed"):
        assert cell in found


def test_in_markdown_every_row_is_complete():
    planted = {"matmul": a_workload(planted=a_planted()), "bert_base": a_workload()}
    for calibration, cells in (
        (a_calibration(), 8),
        (a_calibration(planted=0.03, workloads=planted), 9),
    ):
        page = Page(tables.markdown(calibration_report.page(calibration)))

        assert page.rows == [cells] * 3
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
