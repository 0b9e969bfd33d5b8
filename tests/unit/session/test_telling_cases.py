"""Without a history, the last case of each family meets the base before all other heads."""

import itertools
import math

import pytest

from ci_perf.errors import ExitCode
from ci_perf.judging import compare, summarise
from ci_perf.judging.policy import EARLY_PAIRS, default_limits
from ci_perf.model.comparison import Code, Verdict
from ci_perf.model.suite import Limits, Tiers
from ci_perf.model.validity import Doubt
from tests.clocks import Clock
from tests.histories import no_history
from tests.runs import STEADY
from tests.sessions import BOOM, Launches, Suspects, a_plan_at, a_result

LIMITS, TIERS = Limits(default=default_limits()), Tiers()
CALM, SLOW = ([f"{name}.n={n}" for n in (1, 2, 3)] for name in ("calm", "slow"))
NAMES = (*CALM, *SLOW, "alone")
SLOWER = {("head", name): 5e-3 for name in SLOW}


class Machine(Launches):
    """Launches take `step_s[side, workload]` and a second; `None` fails, an error is raised."""

    def __init__(self, step_s, **more):
        super().__init__(self._answer)
        self._step_s, self._more, self.clock = step_s, more, Clock()

    def _answer(self, side, task):
        self.clock.now += 1.0
        step_s = self._step_s.get((side, task.workload.id), 1e-3)
        if step_s is None:
            return BOOM
        if isinstance(step_s, BaseException):
            raise step_s
        return a_result(task.index, step_s=step_s * STEADY[task.index % 3] / 1e-3, **self._more)

    def heads(self):
        return list(dict.fromkeys(name for side, name in self.turns if side == "head"))


@pytest.fixture
def check(measure_against, tmp_path):
    """Measure workloads of which nothing is known against a base, and judge."""

    def check(machine, *names, budget_s=1e4, fail_fast=False, blind=True, processes=1):
        class Judge(Suspects):
            def verdict(self, run):
                return compare.compare(no_history(run), summarise.run(run, label=""), limits=LIMITS)

        def undecided(run):
            head = summarise.run(run, label="")
            return compare.find_undecided(no_history(run), head, limits=LIMITS, tiers=TIERS)

        judge = Judge(undecided, blind=blind)
        how = {"budget_s": budget_s, "judge": judge, "fail_fast": fail_fast}
        plan = a_plan_at(tmp_path / "head", *names, parameters={"n": 1}, processes=processes)
        run = measure_against(machine, plan, how=how, clock=machine.clock)
        return run, judge.verdict(run)

    return check


def worst_rows(comparison):
    return {row.workload: row for row in reversed(comparison.rows)}


def pairs_of(run):
    return {paired.workload: len(paired.pairs) for paired in run.paired}


@pytest.mark.parametrize("cache", ["empty", "filled"])
def test_a_loss_of_a_family_is_proven_before_its_other_cases_are_launched(check, cache):
    machine = Machine(SLOWER, cache=cache)

    run, comparison = check(machine, *NAMES, fail_fast=True)

    assert machine.heads() == [CALM[-1], SLOW[-1]]
    assert run.interleaved.stopped == "proven"
    # Where caches are filled first, that launch says already that nothing is obvious.
    assert pairs_of(run) == {SLOW[-1]: EARLY_PAIRS} | ({CALM[-1]: 1} if cache == "empty" else {})
    assert worst_rows(comparison)[SLOW[-1]].verdict is Verdict.REGRESSED
    assert comparison.exit_code == ExitCode.REGRESSED


def test_a_first_pair_times_no_longer_than_the_loss_of_the_launches_before_it_needs(check):
    machine = Machine(SLOWER, cache="filled")

    check(machine, *NAMES, fail_fast=True)

    spreads = [
        task.workload.protocol.launch_spread
        for (_, name), task in machine.noted()
        if name == SLOW[-1]
    ]
    before, first_pair = spreads[0], spreads[2:4]
    assert before < 0.01
    assert min(first_pair) == pytest.approx(0.1 * math.log(5), rel=0.1)


def test_what_fail_fast_did_not_launch_is_not_decided_and_did_not_fail(check):
    run, comparison = check(Machine(SLOWER), *NAMES, fail_fast=True)

    left = [*CALM[:-1], *SLOW[:-1], "alone"]
    rows = worst_rows(comparison)
    assert [*run.interleaved.unlaunched] == left
    assert run.failed == ()
    assert {*rows} == {*NAMES}
    assert {(rows[name].verdict, rows[name].code) for name in left} == {
        (Verdict.INCONCLUSIVE, Code.TOO_FEW_PAIRS)
    }


def test_what_fail_fast_did_not_launch_is_not_missing_beside_a_run_that_has_it(check):
    whole, _ = check(Machine({}), *NAMES)
    run, _ = check(Machine(SLOWER), *NAMES, fail_fast=True)

    sides = (summarise.run(each, label="run.json") for each in (whole, run))
    comparison = compare.compare(*sides, limits=LIMITS)

    assert Code.MISSING not in {row.code for row in comparison.rows}
    of_whole = [row.workload for row in comparison.rows if row.code is Code.TOO_FEW_PAIRS]
    assert {*run.interleaved.unlaunched} <= {*of_whole}


def test_a_telling_case_gets_all_of_its_processes_beside_one_that_had_none(check):
    run, _ = check(Machine({}), *CALM[:2], processes=4)

    assert [len(each.processes) for each in run.measured] == [4, 4]


def test_without_fail_fast_all_heads_follow_and_all_is_decided_as_in_the_other_order(check):
    machine, other = Machine(SLOWER), Machine(SLOWER)

    run, comparison = check(machine, *NAMES)
    before, expected = check(other, *NAMES, blind=False)

    assert machine.heads() == [CALM[-1], SLOW[-1], *CALM[:-1], *SLOW[:-1], "alone"]
    assert other.heads() == [*NAMES]
    assert {name: row.verdict for name, row in worst_rows(comparison).items()} == {
        name: row.verdict for name, row in worst_rows(expected).items()
    }
    assert len(machine.turns) == len(other.turns)
    assert run.interleaved.suspects == before.interleaved.suspects  # all share alpha
    assert run.interleaved.unlaunched == ()


def test_a_family_whose_last_case_is_unchanged_is_found_later(check):
    _, comparison = check(Machine({("head", CALM[0]): 5e-3}), *NAMES, fail_fast=True)

    assert worst_rows(comparison)[CALM[0]].verdict is Verdict.REGRESSED


@pytest.mark.parametrize("side", ["base", "head"])
def test_a_telling_case_that_fails_on_a_side_keeps_no_other_from_its_pairs(check, side):
    run, comparison = check(Machine(SLOWER | {(side, CALM[-1]): None}), *NAMES)

    rows = worst_rows(comparison)
    assert {*rows} == {*NAMES}
    assert {name for name in NAMES if rows[name].verdict is Verdict.REGRESSED} == {*SLOW}
    assert [each.workload for each in run.failed] == ([CALM[-1]] if side == "head" else [])


def test_a_budget_that_ends_in_the_first_family_leaves_each_head_launched(check):
    machine = Machine(SLOWER)

    run, comparison = check(machine, *NAMES, budget_s=1.0)

    assert {*machine.heads()} == {*NAMES}
    assert run.interleaved.stopped == "budget"
    assert pairs_of(run) == {CALM[-1]: 1}
    assert {*worst_rows(comparison)} == {*NAMES}


def test_without_a_budget_no_base_is_launched(check):
    machine = Machine(SLOWER)

    check(machine, *NAMES, budget_s=0.0)

    assert machine.of("base") == []


def test_an_interrupt_in_a_first_pair_says_of_all_others_that_they_were_not_measured(check):
    run, _ = check(Machine(SLOWER | {("base", CALM[-1]): KeyboardInterrupt()}), *NAMES)

    assert run.interleaved.stopped == "interrupted"
    assert {each.workload for each in run.failed} == {*NAMES} - {CALM[-1]}
    assert [reason.doubt for reason in run.validity.reasons] == [Doubt.INTERRUPTED]
    assert run.interleaved.unlaunched == ()


def test_what_others_will_import_is_unknown_before_they_are_launched(check, tmp_path):
    for side, name in itertools.product(("base", "head"), NAMES):
        (tmp_path / side / f"workloads/{name}.py").write_text("import torch\n")
    machine = Machine(SLOWER, late_libraries=("torch.x",))

    run, _ = check(machine, *NAMES)

    assert run.failed == ()
    assert {*pairs_of(run)} >= {*SLOW}
