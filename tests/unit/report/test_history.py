import csv
import dataclasses
import io

from ci_perf.judging.trends import ChangePoint, MetricHistory
from ci_perf.report import history, units
from ci_perf.report.history import SuiteHistory


def a_line(**more):
    plain = MetricHistory(
        workload="mlp",
        metric="step_time_s",
        sessions=3,
        earlier=0,
        epoch=0,
        newest="2026-11-21T10:00:00Z",
        centre=41.2e-3,
        spread=0.0123,
        excludes=0.0171,
        trend=None,
        has_drifted=False,
        changes=None,
    )
    return dataclasses.replace(plain, **more)


def a_suite_history(*lines, days=2.9):
    return SuiteHistory(machine="nvidia-h200", suite="smoke", lines=lines, days=lambda _time: days)


def test_a_line_says_how_much_history_there_is_how_old_and_how_steady():
    shown = history.render([a_suite_history(a_line(earlier=2, epoch=1, trend=1.02))], "markdown")

    assert "### `nvidia-h200`, suite `smoke`" in shown
    cells = "step time | 3 (+2) | 1 | 2 days | 41.2 ms | 1.23 % | a loss above 1.8 % | +2.0 %"
    assert f"| `mlp` | {cells} |" in shown


def test_what_cannot_be_known_is_a_dash():
    shown = history.render(
        [a_suite_history(a_line(spread=None, excludes=None), days=None)], "markdown"
    )

    no = units.NOTHING
    assert f"| 0 | {no} | 41.2 ms | {no} | {no} | {no} |" in shown


def test_a_drift_is_marked_beside_its_trend():
    assert "+5.0 %, drifted" in history.render(
        [a_suite_history(a_line(trend=1.05, has_drifted=True))], "terminal"
    )


def test_foreign_text_is_shown_and_never_obeyed():
    change = ChangePoint(since="\x1b[2J\n@all", commit="@all|`x", ratio=1.1, accepted=False)

    for form in ("terminal", "markdown", "csv"):
        shown = history.render([a_suite_history(a_line(changes=(change,)))], form)
        assert "\x1b" not in shown
        assert "\n@all" not in shown
    assert "``@all\\|`x``" in history.render(
        [a_suite_history(a_line(changes=(change,)))], "markdown"
    )


def test_the_columns_of_a_terminal_stand_below_each_other():
    shown = history.render(
        [a_suite_history(a_line(), a_line(workload="a_longer_name"))], "terminal"
    )

    header, *lines = shown.splitlines()[2:5]
    assert len({line.index("step time") for line in lines} | {header.index("metric")}) == 1


def test_csv_has_a_column_for_every_fact():
    change = ChangePoint(since="2026-11-21T10:00:00Z", commit="c", ratio=1.1, accepted=False)

    (row,) = csv.DictReader(
        io.StringIO(history.render([a_suite_history(a_line(changes=(change, change)))], "csv"))
    )

    assert (row["machine"], row["unit"], row["workload"]) == ("nvidia-h200", "s", "mlp")
    assert (row["centre"], row["trend"]) == ("0.0412", "")
    assert row["changes"] == "2026-11-21 2026-11-21"


def test_no_cell_of_csv_is_a_formula():
    change = ChangePoint(since="=HYPERLINK(1)", commit="c", ratio=1.1, accepted=False)
    line = a_line(workload="-1+1", changes=(change,))

    (row,) = csv.DictReader(io.StringIO(history.render([a_suite_history(line)], "csv")))

    assert (row["workload"], row["changes"]) == ("'-1+1", "'=HYPERLINK")


def test_a_suite_without_history_has_no_heading():
    assert "next: ci-perf accept" in history.render([a_suite_history()], "terminal")
    assert history.render([], "json") == "[]\n"
