import contextlib
import os
import signal
import threading

import pytest

from ci_perf.system import signals


@pytest.fixture
def heard():
    """What a listener hears who was there before; it ends nothing."""
    said = []
    before = signal.signal(signal.SIGTERM, lambda number, _: said.append(number))
    yield said
    signal.signal(signal.SIGTERM, before)


def test_a_signal_is_kept_back_until_the_deferral_is_suspended(heard):
    with signals.defer_signals() as deferral:
        signal.raise_signal(signal.SIGTERM)
        assert deferral.have_come()
        assert not heard

        with deferral.suspended():
            assert heard == [signal.SIGTERM]

    assert heard == [signal.SIGTERM]


def test_a_signal_that_was_kept_back_is_raised_at_the_end(heard):
    with signals.defer_signals():
        signal.raise_signal(signal.SIGTERM)
        assert not heard

    assert heard == [signal.SIGTERM]


def test_the_first_signal_ends_and_the_next_do_not_disturb_the_cleaning_up():
    cleaned = []

    @contextlib.contextmanager
    def something():
        try:
            yield
        finally:
            signal.raise_signal(signal.SIGINT)
            cleaned.append("up")

    with (
        pytest.raises(KeyboardInterrupt),
        signals.defer_signals() as deferral,
        something(),
        deferral.suspended(),
    ):
        signal.raise_signal(signal.SIGINT)

    assert cleaned == ["up"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_signal_that_would_end_the_process_cleans_up_as_ctrl_c_does():
    with (
        pytest.raises(KeyboardInterrupt),
        signals.defer_signals() as deferral,
        deferral.suspended(),
    ):
        signal.raise_signal(signal.SIGTERM)


def test_a_signal_that_was_kept_back_can_be_noted():
    with signals.note_signals() as noted:
        with signals.defer_signals() as deferral, deferral.suspended():
            signal.raise_signal(signal.SIGINT)

        assert noted.have_come()


def test_interrupts_are_noted_and_raise_only_when_asked():
    before = signal.getsignal(signal.SIGTERM)
    with signals.note_signals() as ending:
        assert not ending.have_come()
        for one in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP) * 5:
            os.kill(os.getpid(), one)

        assert ending.have_come()
        with pytest.raises(KeyboardInterrupt):
            ending.check()
    assert signal.getsignal(signal.SIGTERM) == before


def test_where_nobody_asks_the_first_signal_raises_and_no_other():
    with signals.note_signals() as ending:
        with pytest.raises(KeyboardInterrupt), ending.raising():
            os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGINT)  # while things are removed

        assert ending.have_come()


def test_a_signal_that_came_before_is_raised_where_nobody_asks():
    entered = []
    with signals.note_signals() as ending:
        os.kill(os.getpid(), signal.SIGTERM)
        with pytest.raises(KeyboardInterrupt), ending.raising():
            entered.append(True)

    assert not entered


@contextlib.contextmanager
def deferring():
    """Defer signals, and let them come at once."""
    with signals.defer_signals() as deferral, deferral.suspended():
        yield deferral


both = pytest.mark.parametrize("enter", [deferring, signals.note_signals])


@both
def test_what_is_ignored_stays_ignored(enter):
    """As nohup does it."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with enter() as entered:
            os.kill(os.getpid(), signal.SIGHUP)

            assert not entered.have_come()
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


@both
def test_outside_the_main_thread_nothing_is_deferred_or_noted(enter):
    have_come = []

    def measure():
        with enter() as entered:
            have_come.append(entered.have_come())

    thread = threading.Thread(target=measure)
    thread.start()
    thread.join()

    assert have_come == [False]
