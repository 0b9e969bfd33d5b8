import random
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_perf.baselines import layout
from ci_perf.features.history import file_history
from ci_perf.model.baseline import MAX_SESSIONS
from tests import branches
from tests.branches import a_recorded

PATH = f"{branches.MACHINE}/smoke/w.json"


def read(*oldest_first):
    """Read versions, each a text or its sessions."""
    versions = [
        (f"c{number}", (each if isinstance(each, str) else branches.text(*each)).encode())
        for number, each in enumerate(oldest_first)
    ]
    return file_history.read(PATH, versions[::-1])


def runs(whole_history):
    return [each.session.run for each in whole_history.sessions]


A, B, C, D = (a_recorded(name, day=day) for day, name in enumerate("abcd", start=1))


def test_a_session_is_listed_once_with_the_first_commit_that_has_it():
    whole_history, skipped = read([A], [A, B], [A, B, C])

    assert [(each.session.run, each.commit) for each in whole_history.sessions] == [
        ("a", "c0"),
        ("b", "c1"),
        ("c", "c2"),
    ]
    assert skipped == []
    assert [session.run for session in whole_history.latest.sessions] == ["a", "b", "c"]


def test_sessions_that_a_file_has_dropped_are_still_there():
    sessions = [a_recorded(f"r{number}") for number in range(MAX_SESSIONS + 5)]
    whole_history, _ = read(*(sessions[: end + 1] for end in range(len(sessions))))

    assert runs(whole_history) == [session.run for session in sessions]
    assert len(whole_history.latest.sessions) == MAX_SESSIONS


def test_commits_give_the_order_and_not_dates():
    late, early = a_recorded("late", day=20), a_recorded("early", day=2)

    assert runs(read([late], [late, early])[0]) == ["late", "early"]


def test_older_code_that_was_measured_late_stands_before_what_was_accepted_meanwhile():
    moved = a_recorded("moved", epochs={"step_time_s": 1})
    late = a_recorded("late")

    whole_history, _ = read([A], [A, moved], [A, late, moved])

    assert runs(whole_history) == ["a", "late", "moved"]
    assert [each.epochs for each in whole_history.sessions] == [{}, {}, {"step_time_s": 1}]


def test_a_reverted_change_stays_and_what_follows_begins_another_epoch():
    moved = a_recorded("moved", epochs={"step_time_s": 1})

    whole_history, _ = read([A], [A, moved], [A], [A, B])

    assert runs(whole_history) == ["a", "moved", "b"]
    assert [each.epochs.get("step_time_s", 0) for each in whole_history.sessions] == [0, 1, 2]


def test_a_history_that_began_anew_counts_its_epochs_after_the_others():
    moved = a_recorded("moved", epochs={"step_time_s": 1})

    whole_history, _ = read([A], [A, moved], [B], [B, C])

    assert [each.starts_anew for each in whole_history.sessions] == [False, False, True, False]
    assert [each.epochs["step_time_s"] for each in whole_history.sessions[1:]] == [1, 2, 2]


@pytest.mark.parametrize(
    ("damaged", "said"),
    [
        (branches.text(A, B)[:-20], "expected a JSON document"),
        ("<<<<<<< ours\n" + branches.text(A, B), "merged with conflict markers"),
        (branches.text(A, B, schema_version=99), "upgrade this one"),
        (branches.text(A, B, workload="other"), r"\$.workload: expected 'w'"),
        (branches.text(A, B).replace('"step_time_s": 0.001', '"step_time_s": -1'), "expected a"),
        (branches.text(A, B).replace('"step_time_s": 0.001', '"steptime": 1'), "unknown metric"),
        ("", "expected a JSON document"),
    ],
)
def test_a_version_that_cannot_be_read_is_skipped_and_the_others_stand(damaged, said):
    whole_history, skipped = read([A], damaged, [A, B, C])

    assert runs(whole_history) == ["a", "b", "c"]
    assert [each.commit for each in skipped] == ["c1"]
    assert re.search(said, skipped[0].reason)


def test_nothing_is_taken_of_a_version_that_is_skipped():
    damaged = branches.text(a_recorded("a", 5e-3), B).replace("0.001", "-1")
    whole_history, _ = read(damaged, [A, B])

    assert [each.session for each in whole_history.sessions] == [A, B]


def test_a_file_without_a_readable_version_has_no_history():
    nothing, skipped = read("{", "[]")

    assert nothing is None
    assert len(skipped) == 2


def test_of_two_sessions_of_one_run_the_first_commit_counts():
    edited = a_recorded("a", 5e-3)

    whole_history, skipped = read([A], [edited, B])

    assert whole_history.sessions[0].session == A
    assert "run a has other numbers in a later commit" in skipped[0].reason


def test_content_that_the_clone_lacks_is_named():
    nothing, skipped = file_history.read(PATH, [("c0", None)])

    assert nothing is None
    assert "this clone lacks it" in skipped[0].reason


@given(st.integers(0, 2**32), st.integers(1, 30))
def test_what_is_not_parsed_twice_is_read_as_if_it_were(seed, number):
    rng = random.Random(seed)
    versions, file = [], []
    for place in range(number):
        epoch = sum(session.epochs.get("step_time_s", 0) > 0 for session in file[-1:])
        session = a_recorded(
            f"r{place}", rng.uniform(1e-3, 2e-3), epochs={"step_time_s": epoch} if epoch else {}
        )
        file = [*(file if rng.random() > 0.1 else []), session][-MAX_SESSIONS:]
        versions.append(list(file))

    whole_history, skipped = read(*versions)

    whole = {session.run: session for version in versions for session in version}
    assert {each.session.run: each.session for each in whole_history.sessions} == whole
    assert layout.with_headline(whole_history.latest) == branches.a_committed(*versions[-1])
    assert skipped == []
