"""Whom the judge suspects and whose pairs come first, with launches that only answer."""

import itertools
from collections import Counter

import pytest

from ci_perf.errors import ExitCode
from ci_perf.judging import compare, summarise
from ci_perf.judging.policy import default_limits
from ci_perf.model.comparison import Verdict
from ci_perf.model.suite import Limits, Tiers
from ci_perf.session import schedule
from tests.clocks import Clock
from tests.histories import DAYS, a_history, scaled
from tests.runs import STEADY, a_measured, a_run, some_canaries
from tests.sessions import (
    Launches,
    Suspects,
    a_plan_at,
    a_result,
)

LIMITS, TIERS = Limits(default=default_limits()), Tiers()
QUIET = 1e-3


class Machine(Launches):
    """Launches take `step_s[side, workload]` per step; canaries answer as they are told."""

    def __init__(self, step_s, canaries=()):
        super().__init__(self._answer)
        self._step_s = step_s
        self._canaries = itertools.chain(canaries, itertools.repeat(QUIET))

    def _answer(self, side, task):
        step_s = self._step_s.get((side, task.workload.id), QUIET) * STEADY[task.index % 3] / QUIET
        return a_result(task.index, step_s=step_s, items_per_step=8.0, item_unit="image")

    def canaries(self, _device, _threads, _interrupted=None):
        self.turns.append(("canaries", ""))
        return {"matmul": next(self._canaries)}


def a_baseline(*names, parameters=None):
    """Six quiet days of these workloads."""
    return a_history(
        *(
            a_run(
                *(a_measured(name, *scaled(STEADY, day), parameters=parameters) for name in names),
                canaries=some_canaries(before=QUIET),
            )
            for day in DAYS
        )
    )


@pytest.fixture
def check(measure_against, tmp_path):
    """Measure workloads against a base, and judge: what `ci-perf check --against` does."""

    def check(machine, *names, budget_s=1000.0, fail_fast=False, parameters=None, **more):
        before = a_baseline(*names, parameters=parameters)

        def undecided(run):
            head = summarise.run(run, label="")
            return compare.find_undecided(before, head, limits=LIMITS, tiers=TIERS)

        class Judge(Suspects):
            def verdict(self, run):
                return compare.compare(before, summarise.run(run, label=""), limits=LIMITS)

        plan = a_plan_at(
            tmp_path / "head", *names, processes=3, canaries=True, parameters=parameters or {}
        )
        how = {"budget_s": budget_s, "judge": Judge(undecided), "fail_fast": fail_fast}
        run = measure_against(machine, plan, how=how, **more)
        return run, compare.compare(before, summarise.run(run, label=""), limits=LIMITS)

    return check


@pytest.mark.parametrize(("routes", "launched"), [(True, (1, 2, 3)), (False, (3, 3, 3))])
def test_the_head_is_launched_as_often_as_the_judge_asks_before_pairs(
    measure_against, tmp_path, routes, launched
):
    judge = Suspects(lambda _: ((), 0), launches={"a": 1, "b": 2, "c": 5})
    launcher = Launches()
    plan = a_plan_at(tmp_path / "head", "a", "b", "c", processes=3)

    measure_against(launcher, plan, how={"budget_s": 10.0, "judge": judge, "routes": routes})

    assert Counter(name for _, name in launcher.turns) == dict(zip("abc", launched, strict=True))


def times(comparison):
    return {row.workload: row for row in comparison.rows if row.metric == "step_time_s"}


def test_a_canary_that_moves_after_the_last_round_still_gets_its_suspects_pairs(check):
    """Once it came after the pairs: too late to launch anybody, and nobody could answer the row."""
    machine = Machine({}, canaries=[QUIET, QUIET, QUIET, 1.46 * QUIET])

    run, comparison = check(machine, "a", "b")

    assert [reason.code for reason in comparison.validity.reasons] == ["machine_moved"]
    assert {paired.workload for paired in run.paired} == {"a", "b"}
    assert {row.verdict for row in times(comparison).values()} == {Verdict.UNCHANGED}


def test_no_canary_is_asked_once_the_base_is_launched(check):
    machine = Machine({("head", "a"): 1.2 * QUIET})

    run, _ = check(machine, "a")

    sides = [side for side, _ in machine.turns]
    assert "canaries" not in sides[sides.index("base") :]
    assert [canary.position for canary in run.canaries] == ["before", "between", "between", "after"]


def test_whoever_looks_worst_is_launched_first_until_it_is_decided(check):
    slower = {("head", "a"): 1.1 * QUIET, ("head", "b"): 11 * QUIET, ("head", "c"): 0.5 * QUIET}
    machine = Machine(slower)

    check(machine, "a", "b", "c", clock=Clock())

    first_base = [side for side, _ in machine.turns].index("base")
    in_turns = [workload for _, workload in machine.turns[first_base:]]
    assert [name for name, _ in itertools.groupby(in_turns)] == ["b", "a", "c"]


def test_a_budget_too_small_for_all_answers_for_the_worst(check):
    """Once each suspect had one pair, and a change of +1,000 % stayed without an answer."""
    clock = Clock()

    class Slow(Machine):
        def launch(self, task, interrupted=None):
            clock.now += 10.0
            return super().launch(task, interrupted)

    slower = {
        ("head", name): ratio * QUIET for name, ratio in {"a": 1.1, "b": 11, "c": 1.2}.items()
    }
    enough_for_one_s = schedule.forecast({"b": 10.0}, 0.0, {"b": 0}).enough_s

    run, comparison = check(Slow(slower), "a", "b", "c", budget_s=enough_for_one_s, clock=clock)

    assert run.interleaved.stopped == "budget"
    rows = times(comparison)
    assert rows["b"].verdict is Verdict.REGRESSED
    assert {name: rows[name].pairs for name in "abc"} == {"a": 0, "b": 3, "c": 3}


def test_among_equals_the_one_that_the_screen_saw_worse_comes_first(check):
    moved_alike = {(side, "a"): 1.2 * QUIET for side in ("head", "base")}
    machine = Machine({**moved_alike, ("head", "b"): 1.1 * QUIET})

    check(machine, "b", "a", clock=Clock())

    first_base = [side for side, _ in machine.turns].index("base")
    assert machine.turns[first_base][1] == "a"


def test_fail_fast_ends_with_the_first_proven_loss_and_keeps_all_rows(check):
    slower = {("head", name): 11 * QUIET for name in "abc"}
    slower["head", "b"] = 12 * QUIET

    run, comparison = check(Machine(slower), "a", "b", "c", fail_fast=True, clock=Clock())

    assert run.interleaved.stopped == "proven"
    assert {paired.workload: len(paired.pairs) for paired in run.paired} == {"b": 3}
    rows = times(comparison)
    assert {name for name in "abc" if rows[name].verdict is Verdict.REGRESSED} == {"b"}
    assert comparison.exit_code == ExitCode.REGRESSED


def test_fail_fast_without_a_loss_decides_all(check):
    run, comparison = check(
        Machine({("head", "a"): 1.1 * QUIET, ("base", "a"): 1.1 * QUIET}), "a", "b", fail_fast=True
    )

    assert run.interleaved.stopped == "decided"
    assert comparison.exit_code == ExitCode.OK


def test_once_a_loss_is_proven_open_suspects_wait_for_new_ones(check):
    """Three workloads are many times slower, and one a little: it does not hold them up."""
    slower = {("head", name): 11 * QUIET for name in "acd"} | {("head", "b"): 1.9 * QUIET}

    _, comparison = check(Machine(slower), "a", "b", "c", "d", clock=Clock())

    assert {row.pairs for name, row in times(comparison).items() if name != "b"} == {3}
    assert {row.verdict for row in times(comparison).values()} == {Verdict.REGRESSED}


def test_a_second_case_of_a_proven_family_waits_for_the_others(check):
    """Each needs pairs, and the two cases are the worst."""
    names = ("m.n=1", "m.n=2", "other")
    step_s = {("head", name): ratio * QUIET for name, ratio in zip(names, (4, 3, 2), strict=True)}
    machine = Machine(step_s)

    check(machine, *names, parameters={"n": 1}, clock=Clock())

    bases = [name for side, name in machine.turns if side == "base"]
    assert [name for name, _ in itertools.groupby(bases)] == ["m.n=1", "other", "m.n=2"]
