"""Which workloads are counted on both sides after their pairs, and what is left when that fails."""

import signal

import msgspec
import pytest

from ci_perf import session
from ci_perf.measuring import distrust
from ci_perf.model.process import NO_RESULT_IN_TIME, Phase
from ci_perf.model.step_counts import StepCounts
from ci_perf.model.task import TaskFailure
from tests.clocks import Clock
from tests.sessions import (
    BOOM,
    Launches,
    Recorder,
    Suspects,
    a_checkout,
    a_plan_at,
    a_result,
    some_checks,
)

STEPS = {"base": 2, "head": 3}
LATE = TaskFailure(phase=Phase.COUNTERS, reason=f"{NO_RESULT_IN_TIME} of 10 s")


def counting(side, task):
    """Leave counts where they are asked for, and the ordinary result elsewhere."""
    if not task.count:
        return None
    return msgspec.structs.replace(a_result(), counts=StepCounts(steps=STEPS[side]))


@pytest.fixture
def explained(tmp_path, monkeypatch):
    """Measure "a" and "b", one pair each, of which pairs have `moved` some."""
    monkeypatch.setenv("CI_PERF_LOCK_DIR", str(tmp_path / "locks"))
    for side in ("head", "base"):
        folder = tmp_path / side / "workloads"
        folder.mkdir(parents=True)
        for name in "ab":
            (folder / f"{name}.py").write_text("")

    def measure(launches, *moved, listener=None, explain_budget_s=300.0, **more):
        def undecided(run):
            done = {paired.workload for paired in run.paired if paired.pairs}
            return {name: 1.0 for name in "ab" if name not in done}, 2

        return session.measure(
            a_plan_at(tmp_path / "head", "a", "b"),
            launches,
            listener or Recorder(),
            device="cpu",
            lock_timeout_s=1,
            checks=some_checks(),
            against=session.Against(
                checkout=a_checkout(tmp_path),
                budget_s=1000.0,
                judge=Suspects(undecided, moved=moved),
                explain_budget_s=explain_budget_s,
            ),
            **more,
        )

    return measure


def counted(launches):
    return [turn for turn, task in launches.noted() if task.count]


def test_both_sides_of_what_has_moved_are_counted_worst_first_after_all_pairs(explained, tmp_path):
    launches, heard = Launches(counting), Recorder()

    run = explained(launches, "b", "a", listener=heard)

    order = [("base", "b"), ("head", "b"), ("base", "a"), ("head", "a")]
    assert counted(launches) == launches.turns[-4:] == order
    assert [sides.workload for sides in run.counted] == ["b", "a"]
    assert all((sides.base.steps, sides.head.steps) == (2, 3) for sides in run.counted)
    assert [sides.trouble for sides in run.counted] == ["", ""]
    assert [note for note in heard.heard if note[0] == "counting"] == [
        ("counting", "b"),
        ("counting", "a"),
    ]
    *_, base, head = launches.tasks
    # The files are the same, and yet each side has its own: its code lies below its root.
    assert (base.workload.file, head.workload.file) == tuple(
        str(tmp_path / side / "workloads/a.py") for side in ("base", "head")
    )
    assert (base.foreign_root, head.foreign_root) == (
        str(tmp_path / "head"),
        str(tmp_path / "base"),
    )


def test_nothing_is_counted_where_nothing_has_moved_or_nobody_asks(explained):
    for moved, budget_s in (((), 300.0), (("a",), None)):
        launches = Launches(counting)

        run = explained(launches, *moved, explain_budget_s=budget_s)

        assert counted(launches) == []
        assert run.counted == ()


def test_a_base_without_the_workload_is_not_counted(explained, tmp_path):
    (tmp_path / "base/workloads/a.py").unlink()
    launches = Launches(counting)

    run = explained(launches, "a")

    assert counted(launches) == []
    assert run.counted[0].trouble == "the base has no file of this workload"


@pytest.mark.parametrize("failing", ["base", "head"])
def test_a_launch_that_fails_leaves_a_sentence_and_the_run_as_it_was(explained, failing):
    def answer(side, task):
        return BOOM if task.count and side == failing else counting(side, task)

    run = explained(Launches(answer), "a")

    (sides,) = run.counted
    assert sides.trouble == f"the launch that counts the {failing} failed: {BOOM.reason}"
    assert (sides.base is None, sides.head) == (failing == "base", None)
    assert run.failed == run.validity.reasons == ()
    assert [len(paired.pairs) for paired in run.paired] == [1, 1]


def test_a_result_without_counts_is_said_to_have_none(explained):
    run = explained(Launches(), "a")

    assert run.counted[0].trouble == "the launch that counts the base failed: it left no counts"


def test_what_the_budget_does_not_reach_is_said(explained):
    clock = Clock()

    def answer(side, task):
        if task.count:
            clock.now += 40.0
        return counting(side, task)

    launches = Launches(answer)

    run = explained(launches, "a", "b", explain_budget_s=60.0, clock=clock)

    assert len(counted(launches)) == 2
    assert [sides.trouble for sides in run.counted] == [
        "",
        "the time of --explain-budget was spent before",
    ]
    limits = [task.workload.protocol.timeout_s for task in launches.tasks if task.count]
    assert limits == [60.0, 20.0]


def test_a_launch_that_outlasts_the_budget_is_not_blamed_on_the_suite(explained):
    run = explained(
        Launches(lambda _side, task: LATE if task.count else None), "a", explain_budget_s=5.0
    )

    assert "than the 10 s that were left of --explain-budget" in run.counted[0].trouble


def test_an_interrupt_keeps_what_was_counted_and_names_what_was_not(explained):
    def interrupt(note):
        if note == ("counting", "b"):
            signal.raise_signal(signal.SIGTERM)

    run = explained(Launches(counting), "a", "b", listener=Recorder(interrupt))

    assert [(sides.base is None, sides.trouble) for sides in run.counted] == [
        (False, ""),
        (True, "interrupted before it was counted"),
    ]
    assert distrust.INTERRUPTED in run.validity.reasons
    assert [len(paired.pairs) for paired in run.paired] == [1, 1]
