from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_perf.baselines import layout, merge, summaries
from ci_perf.baselines.merge import ConflictError
from ci_perf.errors import CannotWriteError, UsageError
from ci_perf.judging import metric_values
from ci_perf.model import metrics
from ci_perf.model.baseline import MAX_SESSIONS, Baseline, RecordedSession
from ci_perf.model.run import Source
from tests import repositories
from tests.runs import CPU, GPU, HEAD_COMMIT, SOFT

METRICS = ("graph_breaks", "step_time_s")


def a_session(run, *, day=1, step_s=1e-3, **epochs):
    return RecordedSession(
        recorded_at=f"2026-11-{day:02}T10:00:00Z",
        source=Source(commit=HEAD_COMMIT, branch="main", dirty=False),
        run=run,
        reason="",
        epochs=epochs,
        tool_version="0.1.0",
        soft=SOFT,
        processes=({"graph_breaks": 2.0, "step_time_s": step_s},),
    )


def a_history(*found, **more):
    plain = Baseline(
        headline={},
        workload="w",
        suite="smoke",
        parameters={"n": 1},
        items_per_step=8.0,
        item_unit="image",
        statistic="median",
        machine=CPU,
        sessions=found,
    )
    return layout.with_headline(msgspec.structs.replace(plain, **more))


def merged(base, ours, theirs):
    return merge.merge(base, ours, theirs, name="baselines/w.json")


def runs(history):
    return [session.run for session in history.sessions]


BASE = (a_session("a", day=1), a_session("b", day=2))


def test_sessions_that_both_sides_appended_are_united_by_time():
    ours = a_history(*BASE, a_session("late", day=9), a_session("later", day=10))
    theirs = a_history(*BASE, a_session("early", day=3, step_s=2e-3))

    found = merged(a_history(*BASE), ours, theirs)

    assert runs(found) == ["a", "b", "early", "late", "later"]
    assert found.headline == layout.headline(found)


def test_a_session_that_both_sides_took_over_is_there_once():
    both = a_session("both", day=4)
    ours = a_history(*BASE, a_session("x", day=3), both)

    assert runs(merged(a_history(*BASE), ours, a_history(*BASE, both))) == ["a", "b", "x", "both"]


def test_what_one_side_measured_before_the_other_sides_change_stays_in_the_old_epoch():
    """It was recorded later, and still describes the code without the change."""
    changed = a_history(*BASE, a_session("new", day=3, step_s=2e-3, step_time_s=1))
    other = a_history(*BASE, a_session("old", day=9))

    found = merged(a_history(*BASE), other, changed)

    assert runs(found) == ["a", "b", "old", "new"]
    assert found.headline["step_time_s"] == 2e-3
    assert summaries.subject(found).sessions[-1].epochs == {"step_time_s": 1}


def test_changes_of_different_metrics_keep_an_epoch_each():
    ours = a_history(*BASE, a_session("x", day=3, step_time_s=1))
    theirs = a_history(*BASE, a_session("y", day=4, graph_breaks=1))

    subject = summaries.subject(merged(a_history(*BASE), ours, theirs))

    for metric in (metrics.STEP_TIME, metrics.GRAPH_BREAKS):
        history = metric_values.history(subject, metric)
        assert (len(history.current), [len(epoch) for epoch in history.earlier]) == (1, [3])


def test_an_epoch_that_both_sides_took_over_from_one_run_is_no_conflict():
    change = a_session("change", day=3, step_time_s=1)
    ours = a_history(*BASE, change, a_session("x", day=4, step_time_s=1))
    theirs = a_history(*BASE, change, a_session("y", day=5, step_time_s=2))

    assert runs(merged(a_history(*BASE), ours, theirs)) == ["a", "b", "change", "x", "y"]


def test_a_side_that_changed_nothing_gives_way_also_to_one_that_began_anew():
    anew = a_history(a_session("new"), machine=GPU)

    assert merged(a_history(*BASE), a_history(*BASE), anew) == anew
    assert merged(a_history(*BASE), anew, a_history(*BASE)) == anew
    assert merged(a_history(*BASE), anew, anew) == anew


def test_twenty_sessions_are_kept_and_one_that_had_no_room_is_not_taken_for_a_loss():
    base = a_history(*(a_session(f"b{day}", day=day) for day in range(1, 20)))
    added = [a_session(f"o{day}", day=day) for day in range(20, 25)]
    ours = a_history(*layout.newest_sessions((*base.sessions, *added)))
    theirs = a_history(*base.sessions, a_session("t", day=25))

    found = merged(base, ours, theirs)

    assert len(found.sessions) == MAX_SESSIONS
    assert runs(found)[-3:] == ["o23", "o24", "t"]
    assert runs(found)[0] == "b6"


def test_two_files_that_both_sides_made_unite_only_where_they_share_a_beginning():
    ours = a_history(*BASE, a_session("x", day=3))
    theirs = a_history(*BASE, a_session("y", day=4))

    assert runs(merged(None, ours, theirs)) == ["a", "b", "x", "y"]
    with pytest.raises(ConflictError, match="both sides began a history of their own"):
        merged(None, a_history(a_session("x")), a_history(a_session("y")))


MOVED = a_history(*BASE, a_session("x", day=3, step_time_s=1))


@pytest.mark.parametrize(
    ("theirs", "message"),
    [
        (
            a_history(*BASE, a_session("y", day=3, step_time_s=1)),
            "both sides accepted a change of step_time_s",
        ),
        (a_history(*BASE, a_session("y"), machine=GPU), "expected the same machine on both sides"),
        (
            a_history(*BASE, a_session("y"), parameters={"n": 2}, statistic="min"),
            "expected the same parameters and statistic",
        ),
        (a_history(*BASE, a_session("y"), items_per_step=4.0), "items_per_step"),
        (
            a_history(a_session("y", day=4)),
            r"theirs began the history anew \(without run a\), the other side went on",
        ),
        (a_history(BASE[0], a_session("y", day=4)), r"without run b"),
        (a_history(*BASE, a_session("x", day=3, step_s=5.0)), "same numbers of run x"),
    ],
)
def test_what_cannot_be_one_history_is_a_conflict_that_says_why_and_what_next(theirs, message):
    with pytest.raises(ConflictError, match=message) as caught:
        merged(a_history(*BASE), MOVED, theirs)
    assert str(caught.value).startswith("baselines/w.json: cannot be merged: ")
    assert "git checkout --ours or --theirs" in str(caught.value)

    with pytest.raises(ConflictError):
        merged(a_history(*BASE), theirs, MOVED)


# --- properties


@st.composite
def branches(draw):
    """A history, and two that go on from it: sessions that join or begin epochs, at any time."""
    base = draw(grown((), "b", least=1))
    return base, draw(grown(base, "o")), draw(grown(base, "t"))


@st.composite
def grown(draw, history, name, *, least=0):
    for number in range(draw(st.integers(least, 6))):
        began = draw(st.sets(st.sampled_from(METRICS), max_size=1))
        epochs = {
            metric: epoch
            for metric in METRICS
            if (epoch := metric_values.current_epoch(history, metric) + (metric in began))
        }
        one = a_session(
            f"{name}{number}",
            day=draw(st.integers(1, 28)),
            # Which epoch of which branch it is of, so that a mixture shows.
            step_s=1 + epochs.get("step_time_s", 0) + (name == "t") / 4 + (name == "o") / 2,
            **epochs,
        )
        history = layout.newest_sessions((*history, one))
    return history


def outcome(base, ours, theirs):
    try:
        return merged(a_history(*base), a_history(*ours), a_history(*theirs))
    except ConflictError:
        return None


@given(branches())
def test_it_does_not_matter_which_side_is_ours(found):
    base, ours, theirs = found

    assert outcome(base, ours, theirs) == outcome(base, theirs, ours)


@given(branches())
def test_to_merge_again_changes_nothing(found):
    base, ours, theirs = found
    once = outcome(base, ours, theirs)

    if once is not None:
        for side in (ours, theirs, once.sessions):
            assert outcome(side, once.sessions, side) == once
        assert outcome(base, once.sessions, theirs) == once


@given(branches())
def test_no_session_is_lost_and_none_changes(found):
    base, ours, theirs = found
    once = outcome(base, ours, theirs)

    if once is not None:
        known = {session.run: session for session in (*ours, *theirs)}
        assert {session.run: session for session in once.sessions} == known


@given(branches())
def test_epochs_of_two_branches_never_mix(found):
    """The current epoch of a metric is that of one side alone, or of what both had before."""
    base, ours, theirs = found
    once = outcome(base, ours, theirs)

    if once is not None:
        for metric in METRICS:
            newest = [
                session.run[0] for session in metric_values.current_sessions(once.sessions, metric)
            ]
            began = metric_values.current_epoch(
                once.sessions, metric
            ) > metric_values.current_epoch(base, metric)
            assert not began or len(set(newest)) == 1


@given(branches())
def test_sessions_stand_by_epoch_so_that_the_latest_knows_every_change(found):
    base, ours, theirs = found
    once = outcome(base, ours, theirs)

    for history in (base, ours, once.sessions if once else ()):
        changes = [sum(session.epochs.values()) for session in history]
        assert changes == sorted(changes)


@pytest.mark.parametrize("before", ["", "*.png binary", "*.png binary\n"])
def test_the_driver_is_installed_once_and_for_baselines_of_this_repository_only(
    tmp_path, monkeypatch, before
):
    git = repositories.init(tmp_path / "app")
    monkeypatch.chdir(git.root)
    attributes = git.root / ".gitattributes"
    attributes.write_text(before)

    for _ in range(2):
        assert merge.install_driver(Path("baselines")) == attributes

    ours = "/baselines/*/*/*.json merge=ci-perf"
    assert attributes.read_text().splitlines() == [*before.splitlines(), ours]
    assert git.ask("config", "merge.ci-perf.driver").endswith(" baseline merge %O %A %B --path %P")
    with pytest.raises(UsageError, match="outside it, which git never merges"):
        merge.install_driver(tmp_path / "elsewhere")


def test_a_driver_that_git_cannot_configure_is_a_failure_to_write(tmp_path, monkeypatch):
    git = repositories.init(tmp_path / "app")
    monkeypatch.chdir(git.root)
    (git.root / ".git" / "config.lock").touch()

    with pytest.raises(CannotWriteError, match=r"git config: .*lock"):
        merge.install_driver(Path("baselines"))
