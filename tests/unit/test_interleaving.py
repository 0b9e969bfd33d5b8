"""The order in which base and head take turns, with a launcher that only answers."""

import itertools
from collections import Counter
from pathlib import Path

import msgspec
import pytest

from ci_perf import session
from ci_perf.judge.policy import LOOKS
from ci_perf.launch import room
from ci_perf.measure.task import Surroundings, Trouble
from ci_perf.measure.validity import preflight
from ci_perf.model.process import Phase, WorkerResult
from ci_perf.model.run import Source
from ci_perf.model.suite import Limits, Plan, PlannedWorkload, Protocol, Tiers
from ci_perf.model.validity import Reason, Status
from ci_perf.worktree import Checkout
from tests.runs import a_process, an_environment

BOOM = Trouble(phase=Phase.BUILD, reason="ImportError: no such thing", output="Traceback …")
SOURCE = Source(commit="b" * 40, branch="main", dirty=False)


class Launches:
    """A launcher that notes whose turn it is; `answers` says what comes of a launch, by side."""

    def __init__(self, answers=lambda _side, _task: None):
        self.turns = []
        self.tasks = []
        self.pairs = 0
        self._answers = answers

    def describe(self, _device, _threads, _devices, _interrupted=None):
        return Surroundings(device="cpu", locks=(), gpus=(), environment=an_environment())

    def launch(self, task, _interrupted=None):
        side = Path(task.root).name
        self.turns.append((side, task.workload.id))
        self.tasks.append(task)
        return self._answers(side, task) or a_result(task.index)

    def launch_pair(self, first, second, interrupted=None):
        self.pairs += 1
        return self.launch(first, interrupted), self.launch(second, interrupted)

    def of(self, side):
        return [task for task in self.tasks if Path(task.root).name == side]


class NoRoomForTwo(Launches):
    """Of two processes at once, the second fails."""

    def launch_pair(self, _first, _second, _interrupted=None):
        return a_result(), BOOM


class Silent:
    """A listener that only notes."""

    def __init__(self):
        self.heard = []

    def __getattr__(self, name):
        return lambda *said: self.heard.append((name, *said))


def a_result(index=0, **more):
    plain = WorkerResult(
        items_per_step=1, item_unit="step", precision="", knobs={}, process=a_process(index)
    )
    return msgspec.structs.replace(plain, **more)


@pytest.fixture
def interleaved(tmp_path, monkeypatch):
    """Measure "a" and "b" against a base, until `wanted` pairs of each are there."""
    monkeypatch.setenv("CI_PERF_LOCK_DIR", str(tmp_path / "locks"))
    monkeypatch.setattr(preflight, "check", lambda: ())
    monkeypatch.setattr(room, "reason_against", lambda *_: "no room")
    (tmp_path / "head" / "workloads").mkdir(parents=True)
    (tmp_path / "base" / "workloads").mkdir(parents=True)
    names = ("a", "b")
    plan = Plan(
        suite="smoke",
        root=str(tmp_path / "head"),
        selection=(),
        tiers=Tiers(),
        limits=Limits(default={}),
        device="auto",
        canaries=False,
        workloads=tuple(
            PlannedWorkload(
                id=name,
                file=str(tmp_path / "head" / "workloads" / f"{name}.py"),
                description="",
                parameters={},
                protocol=Protocol(processes=1),
            )
            for name in names
        ),
    )

    def measure(launcher, wanted, *, budget_s=1000.0, listener=None):
        def undecided(run):
            done = {one.workload: len(one.pairs) for one in run.paired}
            measured = {one.workload for one in run.measured}
            left = [n for n in names if n in measured and done.get(n, 0) < wanted[n]]
            return tuple(left), 7

        checkout = Checkout(
            root=tmp_path / "base",
            top=tmp_path / "base",
            head_top=tmp_path / "head",
            source=SOURCE,
            ref="main",
            notes=("a note",),
        )
        return session.measure(
            plan,
            launcher,
            listener or Silent(),
            device="auto",
            lock_timeout_s=1,
            against=session.Against(checkout=checkout, budget_s=budget_s, undecided=undecided),
        )

    return measure


def paired(run, workload="a"):
    return next(one for one in run.paired if one.workload == workload)


def test_nobody_is_launched_beside_a_head_that_is_cleared(interleaved):
    launcher = Launches()

    run = interleaved(launcher, {"a": 0, "b": 0})

    assert launcher.of("base") == []
    assert run.paired == ()
    assert (run.interleaved.stopped, run.interleaved.ref) == ("decided", "main")


def test_suspects_go_round_and_whoever_was_second_comes_first(interleaved):
    launcher = Launches()

    run = interleaved(launcher, {"a": 4, "b": 2})

    order = [key for key, _ in itertools.groupby(name for _, name in launcher.turns[2:])]
    assert order == ["a", "b", "a", "b", "a"]  # with a's third and fourth pair together
    assert len(paired(run).pairs) == 4
    assert len(paired(run, "b").pairs) == 2
    firsts = [pair.first for pair in paired(run).pairs]
    assert all(one != other for one, other in itertools.pairwise(firsts))


def test_the_first_launch_of_the_base_warms_its_caches_and_counts_for_nothing(interleaved):
    launcher = Launches()

    run = interleaved(launcher, {"a": 2, "b": 0})

    assert len(launcher.of("base")) == 3
    assert len(paired(run).pairs) == 2


def test_which_side_comes_first_is_drawn(interleaved):
    drawn = Counter()
    for _ in range(40):
        run = interleaved(Launches(), {"a": 1, "b": 0})
        drawn[paired(run).pairs[0].first] += 1

    assert set(drawn) == {"base", "head"}


def test_no_side_may_import_the_other(interleaved, tmp_path):
    launcher = Launches()

    interleaved(launcher, {"a": 1, "b": 0})

    assert {task.foreign_root for task in launcher.of("base")} == {str(tmp_path / "head")}
    assert launcher.of("head")[-1].foreign_root == str(tmp_path / "base")
    assert launcher.of("base")[0].workload.file == str(tmp_path / "head" / "workloads" / "a.py")


def test_a_workload_is_launched_no_more_than_the_last_look_asks(interleaved):
    run = interleaved(Launches(), {"a": 1000, "b": 0})

    assert len(paired(run).pairs) == LOOKS[-1]
    assert run.interleaved.stopped == "decided"


def test_a_budget_that_is_spent_ends_it(interleaved):
    run = interleaved(Launches(), {"a": 4, "b": 4}, budget_s=0.0)

    assert run.paired == ()
    assert run.interleaved.stopped == "budget"


def test_the_run_says_how_base_and_head_took_turns(interleaved):
    run = interleaved(Launches(), {"a": 1, "b": 0})

    found = run.interleaved
    assert (found.source, found.suspects, found.notes) == (SOURCE, 7, ("a note",))
    assert found.pairs == 1


# --- the base's own file


def fails_with_the_head_s_file(side, task):
    return BOOM if side == "base" and "/head/" in task.workload.file else None


def test_where_the_head_s_file_does_not_run_on_the_base_its_own_does(interleaved, tmp_path):
    own = tmp_path / "base" / "workloads" / "a.py"
    own.touch()
    launcher = Launches(fails_with_the_head_s_file)

    run = interleaved(launcher, {"a": 1, "b": 0})

    assert paired(run).file == "base"
    assert len(paired(run).pairs) == 1
    assert launcher.of("base")[-1].workload.file == str(own)


def test_a_base_without_such_a_file_cannot_be_launched_and_stops_nobody(interleaved):
    listener = Silent()

    run = interleaved(
        Launches(lambda side, task: BOOM if (side, task.workload.id) == ("base", "a") else None),
        {"a": 2, "b": 2},
        listener=listener,
    )

    assert (paired(run).trouble, paired(run).pairs) == (BOOM.reason, ())
    assert len(paired(run, "b").pairs) == 2
    assert ("base_failed", "a", BOOM.reason) in listener.heard
    assert {one.workload for one in run.measured} == {"a", "b"}


def test_a_base_whose_step_does_other_work_is_not_compared(interleaved):
    other = a_result(items_per_step=64.0, item_unit="image")

    run = interleaved(Launches(lambda side, _: other if side == "base" else None), {"a": 1, "b": 0})

    assert "a step of the base does 64 image" in paired(run).trouble


def test_a_head_that_crashes_beside_its_base_has_failed(interleaved):
    count = itertools.count()

    def second_head(side, task):
        is_head = (side, task.workload.id) == ("head", "a")
        return BOOM if is_head and next(count) > 0 else None

    run = interleaved(Launches(second_head), {"a": 4, "b": 2})

    assert [one.workload for one in run.failed] == ["a"]
    assert len(paired(run, "b").pairs) == 2


def test_an_interrupt_keeps_the_pairs_that_are_there(interleaved):
    count = itertools.count()

    def third_of_base(side, _task):
        if side == "base" and next(count) == 3:
            raise KeyboardInterrupt

    run = interleaved(Launches(third_of_base), {"a": 9, "b": 0})

    assert len(paired(run).pairs) in {1, 2}
    assert run.interleaved.stopped == "interrupted"
    assert preflight.INTERRUPTED in run.validity.reasons


def test_both_processes_are_there_at_once_where_they_fit(interleaved, monkeypatch):
    monkeypatch.setattr(room, "reason_against", lambda *_: "")
    launcher = Launches()

    run = interleaved(launcher, {"a": 3, "b": 0})

    assert launcher.pairs == 3
    assert all(pair.resident for pair in paired(run).pairs)


def test_a_resident_pair_that_fails_is_launched_again_one_after_the_other(interleaved, monkeypatch):
    """Two at once need more memory: the head is not to blame for that."""
    monkeypatch.setattr(room, "reason_against", lambda *_: "")
    launcher = NoRoomForTwo()

    run = interleaved(launcher, {"a": 2, "b": 0})

    assert run.failed == ()
    assert [pair.resident for pair in paired(run).pairs] == [False, False]


def test_nothing_is_launched_beside_a_run_that_is_invalid_already(interleaved, monkeypatch):
    bad = Reason(code="low_disk", status=Status.INVALID, detail="nothing left")
    monkeypatch.setattr(preflight, "check", lambda: (bad,))
    launcher = Launches()

    run = interleaved(launcher, {"a": 2, "b": 2})

    assert launcher.of("base") == []
    assert run.paired == ()
