"""The journal: what is on the disk after a controller was killed, and what follows from it."""

import pytest

from ci_perf.errors import BusyError, CannotWriteError, InvalidFileError
from ci_perf.fleet.journal import NAME, Journal
from ci_perf.model.fleet import (
    Attempt,
    Began,
    Ending,
    NotTaken,
    Requeued,
    Started,
    Submitted,
    Submitting,
)

BEGAN = Began(plan="p", engine="local", units=2)


def an_attempt(unit="u", nonce="n", **more):
    return Attempt(unit=unit, number=1, nonce=nonce, job="j", **more)


def written(folder, *events):
    with Journal(folder) as journal:
        journal.append(events)
    with Journal(folder) as journal:
        return journal.read()


def test_a_new_journal_has_no_past(tmp_path):
    past = written(tmp_path)

    assert (past.began, past.endings, past.open) == (None, {}, {})


def test_an_attempt_that_was_submitted_is_open_with_its_handle_and_node(tmp_path):
    past = written(
        tmp_path,
        BEGAN,
        Submitting(attempts=(an_attempt(),)),
        Submitted(handles={"n": "17_0"}),
        Started(nonce="n", node="n1"),
    )

    assert past.began == BEGAN
    assert (past.open["u"].handle, past.open["u"].node) == ("17_0", "n1")


def test_an_attempt_of_which_nobody_heard_has_no_handle(tmp_path):
    past = written(tmp_path, BEGAN, Submitting(attempts=(an_attempt(),)))

    assert past.open["u"].handle is None


def test_an_attempt_that_was_not_taken_is_not_open(tmp_path):
    past = written(
        tmp_path, Submitting(attempts=(an_attempt(),)), NotTaken(nonces=("n",), reason="full")
    )

    assert past.open == {}


def test_what_was_spent_counts_and_its_node_is_known(tmp_path):
    lost = Requeued(nonce="n", unit="u", reason="lost", spent=True, node="n1")
    forgiven = Requeued(nonce="m", unit="v", reason="lost", spent=False, node="n2")

    past = written(tmp_path, Submitting(attempts=(an_attempt(),)), lost, forgiven)

    assert past.spent == {"u": 1, "v": 0}
    assert past.nodes == {"u": ("n1",)}
    assert past.open == {}


def test_an_ending_stays_but_a_cancelled_unit_goes_on(tmp_path):
    past = written(tmp_path, Ending(unit="u", kind="measured"), Ending(unit="v", kind="cancelled"))

    assert set(past.endings) == {"u"}


def test_a_line_that_was_cut_off_is_dropped_and_the_next_one_is_whole(tmp_path):
    written(tmp_path, BEGAN, Ending(unit="u", kind="measured"))
    path = tmp_path / NAME
    path.write_bytes(path.read_bytes()[:-20])

    with Journal(tmp_path) as journal:
        past = journal.read()
        journal.append([Ending(unit="v", kind="failed", reason="é")])

    assert past.endings == {}
    assert set(written(tmp_path).endings) == {"v"}


@pytest.mark.parametrize("text", ["a\u2028b", "a\x85b", "a\r\nb"])
def test_what_an_engine_says_ends_no_line(tmp_path, text):
    past = written(tmp_path, BEGAN, Ending(unit="v", kind="failed", reason=text))

    assert past.endings["v"].reason == text


def test_a_damaged_line_is_named(tmp_path):
    written(tmp_path, BEGAN)
    path = tmp_path / NAME
    path.write_text("{}\n" + path.read_text())

    with Journal(tmp_path) as journal, pytest.raises(InvalidFileError, match=r"jsonl: line 1: "):
        journal.read()


def test_an_event_of_an_attempt_that_nobody_submitted_is_refused(tmp_path):
    with pytest.raises(InvalidFileError, match="found 'n'; it is damaged"):
        written(tmp_path, Started(nonce="n", node="n1"))


def test_a_second_controller_is_refused(tmp_path):
    with Journal(tmp_path), pytest.raises(BusyError, match="found one that still runs"):
        Journal(tmp_path)


def test_a_journal_that_is_a_link_is_refused(tmp_path):
    (tmp_path / NAME).symlink_to("/etc/passwd")

    with pytest.raises(CannotWriteError, match="cannot be written"):
        Journal(tmp_path)
