"""The order in which base and head take turns, with a launcher that only answers."""

import dataclasses
import itertools
import math
import time

import pytest

from ci_perf.judging.earlier_checks import Before, Offered
from ci_perf.judging.policy import LOOKS
from ci_perf.measuring import distrust
from ci_perf.model import metrics
from ci_perf.model.comparison import Verdict
from ci_perf.model.process import GeneratedCode, GeneratedKernel
from ci_perf.model.run import Checks
from ci_perf.model.suite import Protocol
from ci_perf.model.validity import Reason, Status
from ci_perf.session import schedule
from tests import repositories
from tests.clocks import Clock
from tests.comparisons import a_change, a_comparison
from tests.sessions import (
    BOOM,
    SOURCE,
    Launches,
    NoRoomForTwo,
    Recorder,
    Suspects,
    a_plan_at,
    a_result,
    some_checks,
)


@pytest.fixture
def interleaved(measure_against, tmp_path):
    """Measure "a" and "b" against a base, until `wanted` pairs of each are there."""
    names = ("a", "b")
    plan = a_plan_at(tmp_path / "head", *names)

    def measure(launcher, wanted, *, budget_s=1000.0, before=None, verdict=None, **more):
        def undecided(run):
            done = {paired.workload: len(paired.pairs) for paired in run.paired}
            measured = {row.workload for row in run.measured}
            left = {n: wanted[n] - done.get(n, 0) for n in names if n in measured}
            return {name: float(pairs) for name, pairs in left.items() if pairs > 0}, 7

        judge = Suspects(undecided, verdict=verdict)
        how = {"budget_s": budget_s, "judge": judge, "before": before or Before()}
        return measure_against(launcher, plan, how=how, notes=("a note",), **more)

    return measure


def paired(run, workload="a"):
    return next(row for row in run.paired if row.workload == workload)


def test_nobody_is_launched_beside_a_head_that_is_cleared(interleaved):
    launcher = Launches()

    run = interleaved(launcher, {"a": 0, "b": 0})

    assert launcher.of("base") == []
    assert run.paired == ()
    assert (run.interleaved.stopped, run.interleaved.ref) == ("decided", "main")


def test_a_run_says_what_came_before_and_why_an_earlier_run_is_left_alone(interleaved):
    first = interleaved(Launches(), {"a": 1, "b": 0})
    earlier = Offered(run=first, comparison=a_comparison(), label="first.json")

    again = interleaved(
        Launches(),
        {"a": 1, "b": 0},
        before=Before(checks=Checks(before=2), offered=[earlier]),
    )

    assert (again.checks, again.check, again.earlier) == (Checks(before=2), 3, ())
    # The folder of this test is no repository, so nobody knows whether it is the same code.
    assert again.interleaved.notes == (
        "a note",
        "first.json: its pairs are left alone: expected the head unknown, found unknown",
    )


def test_suspects_follow_each_other_and_whoever_was_second_comes_first(interleaved):
    launcher = Launches()

    run = interleaved(launcher, {"a": LOOKS[0] + 1, "b": 2}, clock=Clock())

    order = [key for key, _ in itertools.groupby(name for _, name in launcher.turns[2:])]
    assert order == ["a", "b", "a"]
    assert len(paired(run).pairs) == LOOKS[0] + 1
    assert len(paired(run, "b").pairs) == 2
    firsts = [pair.first for pair in paired(run).pairs]
    assert all(side != other for side, other in itertools.pairwise(firsts))


@pytest.mark.parametrize(
    ("device", "graphs", "cache", "launches"),
    [
        ("cpu", 0, "empty", 2),
        ("cpu", 1, "empty", 3),
        ("cpu", 0, "filled", 3),
        ("cuda:0", 0, "empty", 3),  # kernels are kept, too
    ],
)
def test_the_base_is_launched_once_more_where_that_fills_caches(
    interleaved, device, graphs, cache, launches
):
    """That launch counts for nothing."""
    launcher = Launches(
        lambda _side, task: a_result(task.index, graphs=graphs, cache=cache), device=device
    )

    run = interleaved(launcher, {"a": 2, "b": 0})

    assert len(launcher.of("base")) == launches
    assert len(paired(run).pairs) == 2


@pytest.mark.parametrize(
    ("of_b", "budget_s", "order"),
    [
        # The first launch of each base shows that "b" has other kernels: its pairs come first.
        ("2", 1000.0, ["a", "b", "b", "b", "a", "a"]),
        ("1", 1000.0, ["a", "b", "a", "a", "b", "b"]),
        # No time to look first.
        ("2", 0.001, ["a"]),
    ],
)
def test_a_workload_with_other_kernels_gets_its_pairs_first(interleaved, of_b, budget_s, order):
    def answer(side, task):
        digest = of_b if side == "head" and task.workload.id == "b" else "1"
        kernel = GeneratedKernel(name="add", digest=digest)
        time.sleep(0.002 if budget_s < 1 else 0)
        return a_result(task.index, graphs=1, generated=GeneratedCode(kernels=(kernel,)))

    launcher = Launches(answer)

    run = interleaved(launcher, {"a": 2, "b": 2}, budget_s=budget_s)

    assert [task.workload.id for task in launcher.of("base")] == order
    assert run.interleaved.stopped == ("decided" if len(order) > 1 else "budget")


def test_the_processes_of_pairs_are_asked_for_sources_where_somebody_wants_them(
    measure_against, tmp_path
):
    for wanted in (True, False):
        launcher = Launches()
        judge = Suspects(lambda run: ({} if run.paired else {"a": 1.0}, 1))
        how = {"budget_s": 1000.0, "judge": judge, "keeps_sources": wanted}
        measure_against(launcher, a_plan_at(tmp_path / "head", "a"), how=how)

        asked = [task.keeps_sources for task in launcher.tasks]
        assert asked == [False] * (len(asked) - 2) + [wanted] * 2


def test_a_base_runs_the_file_of_its_own_checkout_though_it_is_the_same(interleaved, tmp_path):
    """Once it ran the head's, and so read the data files that lie beside the head's."""
    for side in ("base", "head"):
        (tmp_path / side / "workloads" / "a.py").write_text("# the same")
    launcher = Launches()

    run = interleaved(launcher, {"a": 2, "b": 0})

    assert {task.workload.file for task in launcher.of("base")} == {
        str(tmp_path / "base" / "workloads" / "a.py")
    }
    assert paired(run).file == "head"


def test_which_side_comes_first_is_drawn(interleaved):
    drawn = (paired(interleaved(Launches(), {"a": 1, "b": 0})).pairs[0].first for _ in range(40))
    first = next(drawn)

    assert any(side != first for side in drawn)


def test_no_side_may_import_the_other(interleaved, tmp_path):
    launcher = Launches()
    head = repositories.Repository(tmp_path / "head")
    head.ask("init", "--quiet")
    head.commit(net_py="")

    interleaved(launcher, {"a": 1, "b": 0})

    assert {task.foreign_root for task in launcher.of("base")} == {str(tmp_path / "head")}
    assert {task.foreign_root for task in launcher.of("head")} == {str(tmp_path / "base")}
    assert {task.source_folders for task in launcher.of("base")} == {("src",)}
    assert {task.source_folders for task in launcher.of("head")} == {(".",)}
    assert {task.native_source for task in launcher.tasks} == {"fast.c"}
    assert launcher.of("base")[0].workload.file == str(tmp_path / "head" / "workloads" / "a.py")


def test_a_workload_is_launched_no_more_than_the_last_look_asks(interleaved):
    run = interleaved(Launches(), {"a": 1000, "b": 0})

    assert len(paired(run).pairs) == LOOKS[-1]
    assert run.interleaved.stopped == "decided"


def test_a_budget_that_is_spent_ends_it(interleaved):
    run = interleaved(Launches(), {"a": 4, "b": 4}, budget_s=0.0)

    assert run.paired == ()
    assert run.interleaved.stopped == "budget"


@pytest.mark.parametrize("is_resident", [True, False])
def test_a_budget_is_overrun_by_at_most_one_pair(interleaved, is_resident):
    """Whatever comes before the pair (the base's first launch, a try at both at once) counts."""
    checks = some_checks(has_room=is_resident)
    launch_s, clock = 10.0, Clock()

    class Slow(NoRoomForTwo):
        def launch(self, task, interrupted=None):
            clock.now += launch_s
            return super().launch(task, interrupted)

        def launch_pair(self, first, second, interrupted=None):
            clock.now += 2 * launch_s
            return super().launch_pair(first, second, interrupted)

    for budget_s in range(1, 60, 2):
        run = interleaved(
            Slow(), {"a": 9, "b": 9}, budget_s=float(budget_s), checks=checks, clock=clock
        )

        assert run.interleaved.stopped == "budget"
        assert budget_s <= run.interleaved.spent_s < budget_s + 2 * launch_s


def test_before_the_first_pair_it_is_told_how_many_the_budget_allows(interleaved):
    listener, clock = Recorder(), Clock()

    class Slow(Launches):
        def launch(self, task, interrupted=None):
            clock.now += 10.0 if task.workload.id == "a" else 5.0
            return super().launch(task, interrupted)

    interleaved(Slow(), {"a": 4, "b": 4}, budget_s=100.0, listener=listener, clock=clock)

    (told,) = [said for said in listener.heard if said[0] == "interleaving"]
    assert told[1:] == (
        ("a", "b"),
        100.0,
        schedule.forecast({"a": 10.0, "b": 5.0}, 100.0, {"a": 0, "b": 0}),
    )


def test_each_pair_is_told_with_its_worst_row_and_the_time_that_is_left(interleaved):
    listener, clock = Recorder(), Clock()

    class Slow(Launches):
        def launch(self, task, interrupted=None):
            clock.now += 10.0
            return super().launch(task, interrupted)

    faster, slower = (
        a_change("a", verdict, metric=metric, ratio=ratio, pairs=2)
        for verdict, metric, ratio in (
            (Verdict.IMPROVED, metrics.HOST_RSS_PEAK, 0.5),
            (Verdict.INCONCLUSIVE, metrics.STEP_TIME, 1.1),
        )
    )
    others = (
        a_change("b", Verdict.REGRESSED, ratio=2.0, gate=False, pairs=2),
        a_change("a", Verdict.LIKELY_SLOWER, ratio=2.0, pairs=0),
    )
    verdict = a_comparison(faster, slower, *others)
    counts = {"a": 2, "b": 1}
    interleaved(
        Slow(),
        counts,
        budget_s=50.0,
        listener=listener,
        clock=clock,
        verdict=verdict,
    )

    told = [said[1:] for said in listener.heard if said[0] == "pair_finished"]
    assert told == [("a", slower, 30.0), ("a", slower, 10.0), ("b", None, 0.0)]


def test_the_run_says_how_base_and_head_took_turns(interleaved):
    run = interleaved(Launches(), {"a": 1, "b": 0})

    interleaved_with = run.interleaved
    assert interleaved_with.source == SOURCE
    assert (interleaved_with.suspects, interleaved_with.notes) == (7, ("a note",))
    assert interleaved_with.pairs == 1


# --- the base's own file


@pytest.mark.parametrize("changed", ["a.py", "_helper.py"])
def test_where_the_workload_file_or_a_helper_has_changed_each_side_runs_its_own(
    interleaved, tmp_path, changed
):
    for side in ("base", "head"):
        workloads = tmp_path / side / "workloads"
        workloads.mkdir(exist_ok=True)
        for name in ("a.py", "_helper.py"):
            (workloads / name).write_text(side if name == changed else "the same")
    launcher = Launches()

    run = interleaved(launcher, {"a": 1, "b": 0})

    assert paired(run).file == "base"
    own = tmp_path / "base" / "workloads" / "a.py"
    assert {task.workload.file for task in launcher.of("base")} == {str(own)}


def test_a_base_without_such_a_file_cannot_be_launched_and_stops_nobody(interleaved):
    listener = Recorder()

    run = interleaved(
        Launches(lambda side, task: BOOM if (side, task.workload.id) == ("base", "a") else None),
        {"a": 2, "b": 2},
        listener=listener,
    )

    assert (paired(run).trouble, paired(run).pairs) == (BOOM.reason, ())
    assert len(paired(run, "b").pairs) == 2
    assert ("base_failed", "a", BOOM.reason) in listener.heard
    assert {row.workload for row in run.measured} == {"a", "b"}


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

    assert [row.workload for row in run.failed] == ["a"]
    assert len(paired(run, "b").pairs) == 2


def test_an_interrupt_keeps_the_pairs_that_are_there(interleaved):
    count = itertools.count()

    def third_of_base(side, _task):
        if side == "base" and next(count) == 2:
            raise KeyboardInterrupt

    run = interleaved(Launches(third_of_base), {"a": 9, "b": 0})

    assert len(paired(run).pairs) in {1, 2}
    assert run.interleaved.stopped == "interrupted"
    assert distrust.INTERRUPTED in run.validity.reasons


def test_both_processes_are_there_at_once_where_they_fit(interleaved):
    launcher = Launches()

    run = interleaved(launcher, {"a": 3, "b": 0}, checks=some_checks(has_room=True))

    assert launcher.pairs == 3
    assert all(pair.resident for pair in paired(run).pairs)


def test_what_forks_gives_way_to_a_pair_that_else_had_no_room(interleaved):
    class Forking(Launches):
        has_servers = True

        def free_memory(self):
            self.has_servers, had_servers = False, self.has_servers
            return had_servers

    launcher = Forking()
    checks = dataclasses.replace(some_checks(), has_room=lambda *_: not launcher.has_servers)

    run = interleaved(launcher, {"a": 2, "b": 0}, checks=checks)

    (paired,) = run.paired
    assert [pair.resident for pair in paired.pairs] == [True, True]


@pytest.mark.parametrize("has_room", [True, False])
def test_a_pair_is_timed_no_longer_than_pays_where_the_pairs_before_differ(interleaved, has_room):
    differences = {0: 0.0, 1: 0.02, 2: 0.04, 3: 0.0}
    launcher = Launches(
        lambda side, task: a_result(
            step_s=1e-3 * math.exp(differences[task.index] if side == "head" else 0.0)
        )
    )

    interleaved(launcher, {"a": 4, "b": 0}, checks=some_checks(has_room=has_room))

    for side in ("base", "head"):
        spreads = [task.workload.protocol.launch_spread for task in launcher.of(side)][-4:]
        usual = Protocol().launch_spread
        assert spreads == pytest.approx(
            [usual, usual, *(1.4826 * d / math.sqrt(2) for d in (0.01, 0.02))]
        )


def test_a_large_change_is_timed_shorter_from_its_second_pair_on(interleaved):
    launcher = Launches(
        lambda side, _: a_result(step_s=1e-3 * math.exp(0.4 if side == "head" else 0.0))
    )

    interleaved(launcher, {"a": 3, "b": 0})

    spreads = [task.workload.protocol.launch_spread for task in launcher.of("base")][-3:]
    assert spreads == pytest.approx([Protocol().launch_spread, 0.04, 0.04])


def test_a_resident_pair_that_fails_is_launched_again_one_after_the_other(interleaved):
    """Two at once need more memory: the head is not to blame for that."""
    launcher = NoRoomForTwo()

    run = interleaved(launcher, {"a": 2, "b": 0}, checks=some_checks(has_room=True))

    assert run.failed == ()
    assert [pair.resident for pair in paired(run).pairs] == [False, False]


def test_nothing_is_launched_beside_a_run_that_is_invalid_already(interleaved):
    bad = Reason(code="low_disk", status=Status.INVALID, detail="nothing left")
    launcher = Launches()

    run = interleaved(launcher, {"a": 2, "b": 2}, checks=some_checks(host=(bad,)))

    assert launcher.of("base") == []
    assert run.paired == ()
