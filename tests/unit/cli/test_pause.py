"""`--paused-until`: which dates pause the gate, and which are refused."""

import datetime as dt

import click
import pytest

from ci_perf.cli import options

TODAY = dt.date(2026, 12, 1)


@pytest.mark.parametrize("text", ["2026-12-02", "2027-01-01"])
def test_a_date_of_the_next_31_days_pauses_the_gate(text):
    assert options.read_pause(text, TODAY) == text


def test_the_gate_is_on_again_on_the_day_that_is_named_and_the_log_says_so(capfd):
    assert options.read_pause("2026-12-01", TODAY) == ""
    assert "the pause ended on 2026-12-01" in capfd.readouterr().err


def test_an_empty_setting_is_no_pause(capfd):
    assert options.read_pause("", TODAY) == ""
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(
    "text",
    ["2027-01-02", "9999-12-31", "2026-13-01", "20261208", "2026-W50-2", "08.12.2026", "yes"],
)
def test_a_wrong_or_far_date_is_refused_with_one_that_would_do(text):
    with pytest.raises(click.BadParameter, match=f"such as 2026-12-08, at most 31 .* '{text}'"):
        options.read_pause(text, TODAY)
