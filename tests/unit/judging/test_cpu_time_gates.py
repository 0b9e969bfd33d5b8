"""On a crowded CPU, CPU time gates, and the time by the wall only where it is clear."""

import random

import pytest

from ci_perf.judging import compare, summarise
from ci_perf.judging.policy import default_limits
from ci_perf.model.comparison import Verdict
from ci_perf.model.suite import Limits, Tiers
from tests.histories import a_pair, in_turns, judged, no_history
from tests.runs import a_measured, a_run

CROWDED = Limits(default=default_limits("shared", cpu_gates=True))
QUIET = Limits(default=default_limits("shared", cpu_gates=False))


def a_head(*pairs):
    """A head without a history, and these pairs: (wall, CPU) of the base, then of the head."""
    launched = [
        a_pair(base, head, base={"timed": _cpu(base_cpu)}, timed=_cpu(head_cpu))
        for (base, base_cpu), (head, head_cpu) in pairs
    ]
    return in_turns(a_run(a_measured("w", 1.0, timed=_cpu(0.5))), launched)


def _cpu(seconds):
    return {"cpu_s": (seconds,) * 5}


def crowded(*, cpu=1.0, wall=1.0, spread=0.3, pairs=18):
    """Pairs whose wall differs by `spread`, and CPU time by 0.3 %."""
    draw = random.Random(1)

    def times(of_wall, of_cpu):
        return of_wall * (1 + spread * draw.random()), of_cpu * (1 + 0.003 * draw.random())

    return [(times(1.0, 0.5), times(wall, 0.5 * cpu)) for _ in range(pairs)]


def rows(comparison):
    return {row.metric: row for row in comparison.rows if row.metric.startswith("step_")}


def test_neighbours_leave_no_question_where_cpu_time_has_answered():
    comparison = judged((), a_head(*crowded()), limits=CROWDED)

    assert rows(comparison)["step_cpu_s"].verdict is Verdict.UNCHANGED
    assert rows(comparison)["step_time_s"].verdict is Verdict.INCONCLUSIVE
    assert not rows(comparison)["step_time_s"].gate
    assert comparison.exit_code == 0


def test_more_work_fails_the_job_although_the_wall_is_undecided():
    comparison = judged((), a_head(*crowded(cpu=1.1, wall=1.1, spread=0.8)), limits=CROWDED)

    assert rows(comparison)["step_cpu_s"].verdict is Verdict.REGRESSED
    assert rows(comparison)["step_time_s"].verdict is Verdict.INCONCLUSIVE
    assert comparison.exit_code == 1


def test_waiting_fails_the_job_where_the_wall_proves_it():
    comparison = judged((), a_head(*crowded(wall=1.5, spread=0.02)), limits=CROWDED)

    assert rows(comparison)["step_cpu_s"].verdict is Verdict.UNCHANGED
    assert rows(comparison)["step_time_s"].verdict is Verdict.REGRESSED
    assert comparison.exit_code == 1


@pytest.mark.parametrize(("wall", "asked"), [(1.12, {"w"}), (0.8, set())])
def test_the_wall_asks_for_more_pairs_only_where_it_looks_like_a_loss(wall, asked):
    head = a_head(*crowded(wall=wall, spread=0.8, pairs=9))

    base, head = no_history(head), summarise.run(head, label="")
    names, _ = compare.undecided(base, head, limits=CROWDED, tiers=Tiers())

    assert set(names) == asked


def test_on_a_quiet_machine_the_wall_gates_and_cpu_time_is_shown():
    comparison = judged((), a_head(*crowded(cpu=1.1)), limits=QUIET)

    assert rows(comparison)["step_time_s"].gate
    assert not rows(comparison)["step_cpu_s"].gate


def test_without_cpu_time_the_wall_gates_everywhere():
    launched = [a_pair(1.0, 1.0 + 0.1 * (i % 3)) for i in range(18)]
    comparison = judged((), in_turns(a_run(a_measured("w", 1.0)), launched), limits=CROWDED)

    assert rows(comparison).keys() >= {"step_time_s"}
    assert "step_cpu_s" not in rows(comparison)
    assert rows(comparison)["step_time_s"].gate
