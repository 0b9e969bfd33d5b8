import contextlib
import signal
import threading

import pytest

from ci_perf.system import shield, signals


@pytest.fixture
def heard():
    """What a listener hears who was there before; it ends nothing."""
    said = []
    before = signal.signal(signal.SIGTERM, lambda number, _: said.append(number))
    yield said
    signal.signal(signal.SIGTERM, before)


def test_a_signal_waits_until_the_shield_is_lowered(heard):
    with shield.raised() as up:
        signal.raise_signal(signal.SIGTERM)
        assert up.have_come()
        assert not heard

        with up.lowered():
            assert heard == [signal.SIGTERM]

    assert heard == [signal.SIGTERM]


def test_a_signal_that_nobody_could_hear_is_heard_at_the_end(heard):
    with shield.raised():
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

    with pytest.raises(KeyboardInterrupt), shield.raised() as up, something(), up.lowered():
        signal.raise_signal(signal.SIGINT)

    assert cleaned == ["up"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_signal_that_would_end_the_process_cleans_up_as_ctrl_c_does():
    with pytest.raises(KeyboardInterrupt), shield.raised() as up, up.lowered():
        signal.raise_signal(signal.SIGTERM)


def test_who_notes_signals_still_notes_them():
    with signals.noted() as noted:
        with shield.raised() as up, up.lowered():
            signal.raise_signal(signal.SIGINT)

        assert noted.have_come()


def test_what_is_ignored_stays_ignored():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with shield.raised() as up, up.lowered():
            signal.raise_signal(signal.SIGHUP)

        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_another_thread_needs_no_shield():
    done = []

    def work():
        with shield.raised() as up, up.lowered():
            done.append(up.have_come())

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()

    assert done == [False]
