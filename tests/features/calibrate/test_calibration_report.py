"""What the owner of a runner reads: the table of `calibrate`."""

import pytest

from ci_perf.features.calibrate import calibration_report
from ci_perf.report import tables, terminal_page
from tests.calibrations import a_calibration, a_workload
from tests.unit.report.rendered import Page

TWO_MODES = {"matmul": a_workload(two_modes=True), "bert_base": a_workload()}


def read(result):
    """Return what a person reads in a terminal, on one line."""
    shown = terminal_page.render(calibration_report.page(result), width=200, color=False)
    return " ".join(shown.split())


BLIND_SPOT, TRIMMED = "hides what slows only some", "leaves out the outermost fifth"


@pytest.mark.parametrize(
    ("more", "said", "count"),
    [
        ({}, "This machine: statistic median, limit 2 %, by 2 workloads of suite builtin:smoke", 1),
        ({"workloads": {"matmul": a_workload()}}, "by 1 workload of suite", 1),
        ({"statistic": "min"}, BLIND_SPOT, 1),
        ({}, BLIND_SPOT, 0),
        (
            {"limit": 1.0, "inconclusive": 0.6},
            "none up to 100 % of a step time: it leaves 60 % of unchanged workloads undecided",
            1,
        ),
        ({"workloads": TWO_MODES}, "Two modes: some launches are fast", 1),
        ({"workloads": TWO_MODES}, "two modes", 1),
        ({"workloads": {"matmul": a_workload(statistic="min")}}, "suite.toml says min", 1),
        ({"noise": "quiet"}, "The time by the wall decides", 1),
        ({"noise": "crowded"}, "CPU time gives one. It does not see waiting", 1),
        ({"noise": "shared_host"}, "CPU time does not help", 1),
        ({"trimmed": True}, TRIMMED, 1),
        ({}, TRIMMED, 0),
    ],
)
def test_says_what_was_chosen_and_what_the_owner_of_the_machine_must_know(more, said, count):
    assert read(a_calibration(**more)).count(said) == count


def test_in_markdown_every_row_is_complete():
    page = Page(tables.markdown(calibration_report.page(a_calibration())))

    assert page.rows == [8] * 3
    assert "|" not in page.prose
    assert "**" not in page.prose
