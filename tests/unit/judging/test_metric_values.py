import math

from hypothesis import given
from hypothesis import strategies as st

from ci_perf.judging import metric_values
from ci_perf.model import metrics
from tests.subjects import a_session, a_subject

TIME = metrics.STEP_TIME.name
counts = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=8)


def a_timed_session(*step_s, **epochs):
    """One session by the step times of its launches; without any, of a launch that had none."""
    launches = [{TIME: s} for s in step_s] or [{"first_step_s": 1.0}]
    return a_session(*launches, epochs=epochs)


def test_values_are_those_of_the_current_epoch():
    subject = a_subject(
        a_timed_session(1.0, 2.0), a_timed_session(3.0, step_time_s=1), a_timed_session(4.0)
    )

    assert metric_values.list_current_epoch(subject, metrics.STEP_TIME) == [[3.0]]


def test_the_epoch_of_another_metric_is_none_of_its_own():
    subject = a_subject(a_timed_session(1.0), a_timed_session(3.0, graphs=1))

    assert metric_values.list_current_epoch(subject, metrics.STEP_TIME) == [[1.0], [3.0]]


def test_history_holds_every_epoch_and_leaves_out_sessions_without_the_metric():
    subject = a_subject(
        a_timed_session(1.0),
        a_timed_session(),
        a_timed_session(2.0, 3.0, step_time_s=4),
        a_timed_session(5.0),
    )

    history = metric_values.history(subject, metrics.STEP_TIME)

    assert history.current == [[2.0, 3.0]]
    assert history.earlier == ([[1.0], [5.0]],)


def test_a_session_that_lacks_the_metric_is_none_of_its_current_epoch():
    sessions = [a_timed_session(1.0), a_timed_session(), a_timed_session(2.0)]

    assert metric_values.current_sessions(sessions, TIME) == [sessions[0], sessions[2]]


def test_an_epoch_that_took_the_metric_away_has_no_values():
    subject = a_subject(a_timed_session(1.0), a_timed_session(step_time_s=1))

    history = metric_values.history(subject, metrics.STEP_TIME)

    assert history.current == []
    assert history.earlier == ([[1.0]],)
    assert TIME not in metric_values.centres(subject)


def test_an_epoch_of_any_size_is_only_a_number():
    """A file says what it likes, and nobody counts up to it."""
    subject = a_subject(a_timed_session(1.0), a_timed_session(2.0, step_time_s=2**63 - 1))

    assert metric_values.history(subject, metrics.STEP_TIME).earlier == ([[1.0]],)


def test_a_history_can_be_mapped():
    subject = a_subject(a_timed_session(1.0), a_timed_session(math.e, step_time_s=1))

    history = metric_values.history(subject, metrics.STEP_TIME).map(math.log)

    assert (history.current, history.earlier) == ([[1.0]], ([[0.0]],))


@given(counts)
def test_every_session_with_the_metric_is_in_exactly_one_epoch(found):
    sessions = [a_timed_session(*range(1, n + 1), step_time_s=epoch) for epoch, n in found]

    history = metric_values.history(a_subject(*sessions), metrics.STEP_TIME)

    values = [*history.current, *(session for epoch in history.earlier for session in epoch)]
    assert sorted(map(len, values)) == sorted(n for _, n in found if n)
    newest = max(epoch for epoch, _ in found)
    assert len(history.current) == sum(epoch == newest and n > 0 for epoch, n in found)
