"""Which workloads are profiled after their pairs, and what is left when that fails."""

import signal

import msgspec
import pytest

from ci_perf import session
from ci_perf.model.comparison import Verdict
from ci_perf.model.explanation import StepProfile, Varying
from ci_perf.model.process import NO_RESULT_IN_TIME, Phase
from ci_perf.model.task import TaskFailure
from tests.clocks import Clock
from tests.comparisons import a_change, a_comparison
from tests.sessions import (
    BOOM,
    Launches,
    Recorder,
    Suspects,
    a_checkout,
    a_plan_at,
    measure_with,
)

STEPS = {"base": 2, "head": 3}
LATE = TaskFailure(phase=Phase.COUNTERS, reason=f"{NO_RESULT_IN_TIME} of 10 s")


def profiling(side, task):
    """Leave a profile where they are asked for, and the ordinary result elsewhere."""
    if not task.profiler:
        return None
    return StepProfile(steps=STEPS[side])


def a_verdict(*moved):
    """What pairs say when they have proven that these workloads are slower."""
    return a_comparison(*(a_change(name, Verdict.REGRESSED, pairs=9) for name in moved))


@pytest.fixture
def explained(tmp_path, monkeypatch):
    """Measure "a" and "b", one pair each, of which pairs have `moved` some."""
    monkeypatch.setenv("CI_PERF_LOCK_DIR", str(tmp_path / "locks"))
    for side in ("head", "base"):
        folder = tmp_path / side / "workloads"
        folder.mkdir(parents=True)
        for name in "ab":
            (folder / f"{name}.py").write_text("")

    def measure(launches, *moved, listener=None, explain_budget_s=300.0, traces=None, **more):
        def undecided(run):
            done = {paired.workload for paired in run.paired if paired.pairs}
            return {name: 1.0 for name in "ab" if name not in done}, 2

        return measure_with(
            launches,
            a_plan_at(tmp_path / "head", "a", "b"),
            listener=listener,
            against=session.Against(
                checkout=a_checkout(tmp_path),
                budget_s=1000.0,
                judge=Suspects(undecided, verdict=a_verdict(*moved)),
                explain_budget_s=explain_budget_s,
                traces=traces,
            ),
            **more,
        )

    return measure


def profiled(launches):
    return [turn for turn, task in launches.noted() if task.profiler]


def test_both_sides_of_what_has_moved_are_profiled_worst_first_after_all_pairs(explained, tmp_path):
    launches, heard = Launches(profiling), Recorder()

    run = explained(launches, "b", "a", listener=heard)

    base_first = [("base", "b"), ("head", "b"), ("base", "a"), ("head", "a")]
    head_first = [("head", "b"), ("base", "b"), ("head", "a"), ("base", "a")]
    order = base_first + head_first + base_first
    assert profiled(launches) == launches.turns[-12:] == order
    assert [of_workload.workload for of_workload in run.profiled] == ["b", "a"]
    for of_workload in run.profiled:
        assert [(pair.base.steps, pair.head.steps) for pair in of_workload.pairs] == [(2, 3)] * 3
        assert of_workload.trouble == ""
    assert [note for note in heard.heard if note[0] == "profiling"] == [
        ("profiling", "b"),
        ("profiling", "a"),
    ] * 3
    *_, base, head = launches.tasks
    # The files are the same, and yet each side has its own: its code lies below its root.
    assert (base.workload.file, head.workload.file) == tuple(
        str(tmp_path / side / "workloads/a.py") for side in ("base", "head")
    )
    assert (base.foreign_root, head.foreign_root) == (
        str(tmp_path / "head"),
        str(tmp_path / "base"),
    )


def test_the_first_pair_leaves_its_traces(explained, tmp_path):
    launches = Launches(profiling)

    explained(launches, "b", traces=tmp_path)

    places = [task.trace_to for task in launches.tasks if task.profiler]
    assert places[:2] == [str(tmp_path / f"b.{side}.pt.trace.json.gz") for side in ("base", "head")]
    assert places[2:] == [""] * 4


def test_nothing_is_profiled_where_nothing_has_moved_or_nobody_asks(explained):
    for moved, budget_s in (((), 300.0), (("a",), None)):
        launches = Launches(profiling)

        run = explained(launches, *moved, explain_budget_s=budget_s)

        assert profiled(launches) == []
        assert run.profiled == ()


def test_without_time_the_run_says_how_to_get_a_profile(explained):
    launches = Launches(profiling)

    run = explained(launches, "b", explain_budget_s=0.0)

    assert profiled(launches) == []
    ((name, trouble),) = ((each.workload, each.trouble) for each in run.profiled)
    assert (name, trouble) == ("b", "--fail-fast profiles nothing; next: --explain 1m")


def test_launches_that_are_timed_get_the_same_task_to_the_byte(explained):
    def timed(**how):
        launches = Launches(profiling)
        explained(launches, "b", **how)
        # Both of a pair are launched at once.
        return sorted(msgspec.json.encode(task) for task in launches.tasks if not task.profiler)

    without = timed(explain_budget_s=None)

    assert len(without) > 2
    assert timed() == without


def test_a_base_without_the_workload_is_not_profiled(explained, tmp_path):
    (tmp_path / "base/workloads/a.py").unlink()
    launches = Launches(profiling)

    run = explained(launches, "a")

    assert profiled(launches) == []
    assert run.profiled[0].trouble == "the base has no file of this workload"


@pytest.mark.parametrize("failing", ["base", "head"])
def test_a_launch_that_fails_leaves_a_sentence_and_the_run_as_it_was(explained, failing):
    def answer(side, task):
        return BOOM if task.profiler and side == failing else profiling(side, task)

    run = explained(Launches(answer), "a")

    (of_workload,) = run.profiled
    assert of_workload.trouble == f"the launch that profiles the {failing} failed: {BOOM.reason}"
    assert of_workload.pairs == ()
    assert run.failed == run.validity.reasons == ()
    assert [len(paired.pairs) for paired in run.paired] == [1, 1]


def test_a_profile_of_ten_megabytes_is_refused(explained):
    huge = StepProfile(steps=2, varies=(Varying(operator="x" * 1_000),) * 10_000)

    def answer(_side, task):
        return huge if task.profiler else None

    run = explained(Launches(answer), "a")

    assert run.profiled[0].pairs == ()
    assert run.profiled[0].trouble.endswith("its profile is larger than 4000000 bytes")


def test_what_the_budget_does_not_reach_is_said(explained):
    clock = Clock()

    def answer(side, task):
        if task.profiler:
            clock.now += 40.0
        return profiling(side, task)

    launches = Launches(answer)

    run = explained(launches, "a", "b", explain_budget_s=60.0, clock=clock)

    assert len(profiled(launches)) == 2
    assert [len(of_workload.pairs) for of_workload in run.profiled] == [1, 0]
    spent = "the time for profiling was spent before"
    assert [of_workload.trouble for of_workload in run.profiled] == [spent, spent]
    limits = [task.workload.protocol.timeout_s for task in launches.tasks if task.profiler]
    assert limits == [60.0, 20.0]


def test_a_launch_that_outlasts_the_budget_is_not_blamed_on_the_suite(explained):
    run = explained(
        Launches(lambda _side, task: LATE if task.profiler else None), "a", explain_budget_s=5.0
    )

    assert "than the 10 s that were left for profiling" in run.profiled[0].trouble


def test_an_interrupt_keeps_what_was_profiled_and_a_verdict_that_was_told(explained):
    def interrupt(note):
        if note == ("profiling", "b"):
            signal.raise_signal(signal.SIGTERM)

    heard = Recorder(interrupt)
    run = explained(Launches(profiling), "a", "b", listener=heard)

    assert [(len(of_workload.pairs), of_workload.trouble) for of_workload in run.profiled] == [
        (1, ""),
        (0, "interrupted before it was profiled"),
    ]
    assert run.validity.reasons == ()
    assert [len(paired.pairs) for paired in run.paired] == [1, 1]
    told = [note for note in heard.heard if note[0] == "decided"]
    assert told == [("decided", a_verdict("a", "b"), 300.0)]


def test_what_kept_one_pair_from_being_compared_is_not_profiled_again(explained):
    launches = Launches(lambda _, task: StepProfile(steps=2, cut=1) if task.profiler else None)

    run = explained(launches, "a")

    assert profiled(launches) == [("base", "a"), ("head", "a")]
    assert [len(of_workload.pairs) for of_workload in run.profiled] == [1]
