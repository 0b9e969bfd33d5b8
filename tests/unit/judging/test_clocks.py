"""On a CPU the time by the wall is the promise; CPU time clears it, and fails it without a no."""

import random

import pytest

from ci_perf.judging import compare, summarise
from ci_perf.judging.policy import limits_on
from ci_perf.model.comparison import Severity, Verdict, severity_of
from ci_perf.model.environment import CpuMachine
from ci_perf.model.suite import Limit, Limits, Tiers
from tests.histories import a_pair, in_turns, judged, no_history
from tests.runs import a_measured, a_run

ON_CPU = limits_on(CpuMachine(cpu_model="c", logical_cores=2))
WALL, CPU = "step_time_s", "step_cpu_s"


def a_head(*pairs, tasks=(1, 1)):
    """A head without a history, and these pairs: (wall, CPU) of the base, then of the head.

    `tasks` counts the threads and processes of either side; `None` where nobody knows.
    """
    launched = [
        a_pair(base, head, base={"timed": _cpu(base_cpu, tasks[0])}, timed=_cpu(head_cpu, tasks[1]))
        for (base, base_cpu), (head, head_cpu) in pairs
    ]
    return in_turns(a_run(a_measured("w", 1.0, timed=_cpu(0.5, tasks[1]))), launched)


def _cpu(seconds, tasks):
    return {"cpu_s": (seconds,) * 5, "tasks": tasks}


def on_a_busy_machine(*, cpu=1.0, wall=1.0, spread=0.3, pairs=18):
    """Pairs whose wall differs by `spread`, and CPU time by 0.3 %."""
    draw = random.Random(1)

    def times(of_wall, of_cpu):
        return of_wall * (1 + spread * draw.random()), of_cpu * (1 + 0.003 * draw.random())

    return [(times(1.0, 0.5), times(wall, 0.5 * cpu)) for _ in range(pairs)]


def rows(comparison):
    return {row.metric: row for row in comparison.rows if row.metric in {WALL, CPU}}


def test_neighbours_leave_no_question_where_cpu_time_has_answered():
    comparison = judged((), a_head(*on_a_busy_machine(spread=0.8)), limits=ON_CPU)

    assert rows(comparison)[CPU].verdict is Verdict.UNCHANGED
    assert rows(comparison)[WALL].verdict is Verdict.INCONCLUSIVE
    assert rows(comparison)[WALL].code == "cpu_time"
    assert not rows(comparison)[WALL].gate
    assert comparison.exit_code == 0


def test_cpu_time_clears_no_step_of_which_an_answer_is_required():
    required = ON_CPU.default | {WALL: Limit(relative=0.05, require=True)}
    head = a_head(*on_a_busy_machine(spread=0.8))

    comparison = judged((), head, limits=Limits(default=required))

    assert rows(comparison)[WALL].verdict is Verdict.INCONCLUSIVE
    assert comparison.exit_code == 3


@pytest.mark.parametrize(
    ("tasks", "exit_code"),
    [((1, 1), 1), ((1, 3), 0), ((None, None), 0)],
)
def test_more_cpu_time_fails_an_undecided_wall_only_where_as_many_share_the_work(tasks, exit_code):
    busy = on_a_busy_machine(cpu=1.2, wall=1.0, spread=0.8)
    comparison = judged((), a_head(*busy, tasks=tasks), limits=ON_CPU)

    assert rows(comparison)[WALL].verdict is Verdict.INCONCLUSIVE
    assert rows(comparison)[CPU].verdict is Verdict.REGRESSED
    assert rows(comparison)[CPU].code == ("beyond_limit" if exit_code else "cpu_time")
    assert comparison.exit_code == exit_code
    assert rows(comparison)[WALL].gate


@pytest.mark.parametrize("tasks", [(1, 3), (1, 2)], ids=["two workers", "another thread"])
def test_work_that_moves_to_other_processes_is_no_loss(tasks):
    moved = on_a_busy_machine(cpu=1.38, wall=0.312, spread=0.02)
    comparison = judged((), a_head(*moved, tasks=tasks), limits=ON_CPU)

    assert rows(comparison)[WALL].verdict is Verdict.IMPROVED
    assert severity_of(rows(comparison)[CPU]) is Severity.WARNING
    assert rows(comparison)[CPU].code == "cpu_time"
    assert comparison.exit_code == 0


@pytest.mark.parametrize("spread", [0.02, 0.8], ids=["quiet", "busy"])
def test_a_busy_loop_in_the_step_is_red_by_either_clock(spread):
    loop = on_a_busy_machine(cpu=1.5, wall=1.5, spread=spread)

    assert judged((), a_head(*loop), limits=ON_CPU).exit_code == 1


def test_waiting_fails_the_job_where_the_wall_proves_it():
    waiting = on_a_busy_machine(wall=1.5, spread=0.02)
    comparison = judged((), a_head(*waiting), limits=ON_CPU)

    assert rows(comparison)[CPU].verdict is Verdict.UNCHANGED
    assert rows(comparison)[WALL].verdict is Verdict.REGRESSED
    assert comparison.exit_code == 1


@pytest.mark.parametrize(
    ("wall", "spread", "pairs", "asked"),
    [(1.2, 0.1, 5, {"w"}), (1.0, 0.8, 5, {"w"}), (1.0, 0.8, 9, set())],
)
def test_a_wall_that_no_pair_would_decide_asks_for_none(wall, spread, pairs, asked):
    head = a_head(*on_a_busy_machine(wall=wall, spread=spread, pairs=pairs))

    base, head = no_history(head), summarise.run(head, label="")
    names, _ = compare.find_undecided(base, head, limits=ON_CPU, tiers=Tiers())

    assert set(names) == asked


def test_without_cpu_time_the_wall_gates_alone():
    launched = [a_pair(1.0, 1.0 + 0.1 * (i % 3)) for i in range(18)]
    comparison = judged((), in_turns(a_run(a_measured("w", 1.0)), launched), limits=ON_CPU)

    assert CPU not in rows(comparison)
    assert rows(comparison)[WALL].gate
