"""Pairs that clear nothing: both sides had the new packages, or they show another mode."""

import msgspec
import pytest

from ci_perf.errors import ExitCode
from ci_perf.judging.policy import default_limits
from ci_perf.model.comparison import Verdict
from ci_perf.model.suite import Limits
from tests.histories import (
    HISTORY,
    SLOWER,
    a_head,
    a_pair,
    in_turns,
    judged,
    pairs,
    row_of,
    said,
    scaled,
)
from tests.runs import CPU, MIB, STEADY, a_measured, a_process, a_run

ROW = "host_rss_peak_bytes"


def of_memory(*mib):
    """A run whose launches have these peaks of the host's memory."""
    measured = a_measured("w", *STEADY[: len(mib)])
    processes = tuple(
        a_process(index, step_s=step_s, rss=peak * MIB)
        for index, (step_s, peak) in enumerate(zip(STEADY, mib, strict=False))
    )
    return a_run(msgspec.structs.replace(measured, processes=processes))


SMALL = [of_memory(280, 281, 280)] * 4
SMALL_PAIRS = [
    a_pair(1e-3, 1e-3, base={"rss": 281 * MIB}, rss=mib * MIB) for mib in (281, 289, 281)
]


def test_launches_that_all_take_more_than_any_in_the_pairs_are_not_cleared_by_them():
    comparison = judged(SMALL, in_turns(of_memory(320, 330, 313), SMALL_PAIRS * 6))

    assert said(comparison, ROW) == (Verdict.INCONCLUSIVE, "worse_by_history")
    assert row_of(comparison, ROW).ratio == pytest.approx(1.145, abs=0.01)
    assert comparison.exit_code == ExitCode.NO_ANSWER


@pytest.mark.parametrize(
    "mib", [(320,), (320, 330, 285), (283, 284, 283)], ids=["a single one", "not all", "not far"]
)
def test_else_the_pairs_answer(mib):
    comparison = judged(SMALL, in_turns(of_memory(*mib), SMALL_PAIRS * 6))

    assert row_of(comparison, ROW).verdict is Verdict.UNCHANGED
    assert comparison.exit_code == ExitCode.OK


# --- packages


def packed(run, packages):
    """The same run with these packages installed."""
    soft = msgspec.structs.replace(run.environment.soft, packages=packages)
    environment = msgspec.structs.replace(run.environment, soft=soft)
    return msgspec.structs.replace(run, environment=environment)


OLD, NEW = "0" * 16, "1" * 16


@pytest.mark.parametrize(
    ("packages", "dependencies", "verdict", "code"),
    [
        (NEW, ["requirements.txt"], Verdict.INCONCLUSIVE, "other_packages"),
        ("", ["requirements.txt"], Verdict.INCONCLUSIVE, "other_packages"),
        (OLD, ["requirements.txt"], Verdict.UNCHANGED, "baseline_moved"),
        (NEW, [], Verdict.UNCHANGED, "baseline_moved"),
    ],
)
def test_pairs_do_not_clear_what_packages_may_have_done_that_both_sides_share(
    packages, dependencies, verdict, code
):
    history = [packed(session, OLD) for session in HISTORY]
    moved = in_turns(
        packed(a_head(SLOWER), packages), pairs(1.0, base_s=1.1e-3), dependencies=dependencies
    )

    comparison = judged(history, moved)

    assert said(comparison) == (verdict, code)
    is_open = verdict is Verdict.INCONCLUSIVE
    assert comparison.exit_code == (ExitCode.NO_ANSWER if is_open else ExitCode.OK)
    assert row_of(comparison).ratio == pytest.approx(1.1 if is_open else 1.0, abs=0.003)


def test_pairs_prove_what_the_code_does_whatever_the_packages():
    history = [packed(session, OLD) for session in HISTORY]
    slower = in_turns(packed(a_head(SLOWER), NEW), pairs(1.1), dependencies=["setup.py"])
    alike = in_turns(packed(a_head(), NEW), pairs(1.0), dependencies=["setup.py"])
    fast = a_head(scaled(STEADY, 0.9))
    faster = in_turns(packed(fast, NEW), pairs(1.0, base_s=0.9e-3), dependencies=["setup.py"])

    assert said(judged(history, slower)) == (Verdict.REGRESSED, "beyond_limit")
    assert said(judged(history, alike)) == (Verdict.UNCHANGED, "within_limit")
    assert said(judged(history, faster)) == (Verdict.UNCHANGED, "other_packages")


def test_what_only_waits_fails_the_job_although_cpu_time_gates():
    """No pairs will ever prove it: so the wall clock gates here, although it is shown beside."""
    cpu = {"cpu_s": (1e-3,) * 5}
    history = [packed(a_run(a_measured("w", *STEADY, timed=cpu)), OLD)] * 4
    head = packed(a_run(a_measured("w", *scaled(STEADY, 2), timed=cpu)), NEW)
    turns = [a_pair(2e-3, 2e-3, base={"timed": cpu}, timed=cpu) for _ in range(9)]
    limits = Limits(default=default_limits(CPU))

    comparison = judged(history, in_turns(head, turns, dependencies=("uv.lock",)), limits=limits)

    assert row_of(comparison, "step_cpu_s").verdict is Verdict.UNCHANGED
    assert said(comparison) == (Verdict.INCONCLUSIVE, "other_packages")
    assert row_of(comparison).gate
    assert comparison.exit_code == ExitCode.NO_ANSWER
