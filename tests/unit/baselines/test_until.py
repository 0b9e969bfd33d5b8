"""A loss that is accepted for a time."""

import datetime as dt

import pytest

from ci_perf.baselines import layout, summaries
from ci_perf.baselines.accept import Mode
from ci_perf.errors import UsageError
from ci_perf.model.baseline import MAX_SESSIONS
from tests.accepting import accepted, history
from tests.runs import CPU, SLOW, STEADY, a_measured, a_run

DAY = "2027-01-31"
REASON = {"reason": "until the new kernel", "until": DAY}


def now():
    return dt.datetime(2027, 1, 1, tzinfo=dt.UTC)


def accept(root, run_id, numbers=SLOW, **options):
    accepted(root, a_run(a_measured("a", *numbers), id=run_id), now=now, **options)
    return history(root)


def is_step_accepted(before, after, on):
    until = after.sessions[-1].until.get("step_time_s", "")
    edit = summaries.edit("a.json", before, after)
    return "step_time_s" in edit.accepted and (not until or on <= until)


@pytest.fixture
def before(root):
    return accept(root, "before", STEADY)


def test_the_last_day_is_accepted_and_the_next_is_not(root, before):
    after = accept(root, "slow", **REASON)

    assert is_step_accepted(before, after, DAY)
    assert not is_step_accepted(before, after, "2027-02-01")
    assert not is_step_accepted(after, after, DAY), "nothing was accepted since"


def test_without_a_day_it_is_accepted_for_good(root, before):
    after = accept(root, "slow", reason="worth it")

    assert is_step_accepted(before, after, "2099-01-01")


def test_every_later_session_hands_the_day_on_although_the_first_is_cut_off(root, before):
    accept(root, "slow", **REASON)
    for night in range(MAX_SESSIONS + 1):
        accept(root, f"night{night}", mode=Mode.APPEND)

    after = history(root)
    assert "slow" not in {session.run for session in after.sessions}
    assert not is_step_accepted(before, after, "2027-02-01")


def test_a_later_improvement_does_not_accept_the_loss_for_good(root, before):
    accept(root, "slow", numbers=[value * 2 for value in SLOW], **REASON)
    after = accept(root, "better", SLOW)

    assert after.sessions[-1].epochs["step_time_s"] == 2
    assert not is_step_accepted(before, after, "2027-02-01")


def test_a_reason_without_a_day_accepts_the_next_loss_for_good(root, before):
    accept(root, "slow", **REASON)
    after = accept(root, "slower", numbers=[value * 2 for value in SLOW], reason="worth it")

    assert is_step_accepted(before, after, "2099-01-01")


def test_the_day_is_moved_by_a_session_that_joins(root, before):
    accept(root, "slow", **REASON)
    after = accept(root, "again", mode=Mode.APPEND, reason="later", until="2027-03-31")

    assert is_step_accepted(before, after, "2027-03-31")


@pytest.mark.usefixtures("before")
def test_a_day_that_accepts_nothing_is_refused(root):
    with pytest.raises(UsageError, match="add --append"):
        accept(root, "same", STEADY, **REASON)
    with pytest.raises(UsageError, match="add --append"):
        accept(root, "same", STEADY, mode=Mode.APPEND, **REASON)


@pytest.mark.parametrize("day", ["2026-12-31", "20270131", "2027-02-30", "soon", "2027-1-31"])
@pytest.mark.usefixtures("before")
def test_a_day_that_is_past_or_none_is_refused(root, day):
    with pytest.raises(
        UsageError, match=f"expected 2027-01-01 .today. or a later day, found .{day}"
    ):
        accept(root, "slow", reason="why", until=day)

    assert len(history(root).sessions) == 1


@pytest.mark.usefixtures("before")
def test_a_day_needs_a_reason(root):
    with pytest.raises(UsageError, match="--reason"):
        accept(root, "slow", until=DAY)


@pytest.mark.usefixtures("before")
def test_a_file_without_a_day_is_written_as_before(root):
    assert "until" not in layout.path(root, CPU, "smoke", "a").read_text()


def test_a_replaced_baseline_is_accepted_up_to_the_day(root, before):
    after = accept(root, "slow", mode=Mode.REPLACE, **REASON)

    assert is_step_accepted(before, after, DAY)
    assert not is_step_accepted(before, after, "2027-02-01")
