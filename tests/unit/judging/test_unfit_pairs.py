"""Pairs that clear nothing: the head has two modes of memory, and they show the other one."""

import msgspec
import pytest

from ci_perf.errors import ExitCode
from ci_perf.model.comparison import Verdict
from tests.histories import a_pair, in_turns, judged, row_of, said
from tests.runs import MIB, STEADY, a_measured, a_process, a_run

ROW = "host_rss_peak_bytes"


def of_memory(*mib):
    """A run whose launches have these peaks of the host's memory."""
    measured = a_measured("w", *STEADY[: len(mib)])
    processes = tuple(
        a_process(index, step_s=step_s, rss=peak * MIB)
        for index, (step_s, peak) in enumerate(zip(STEADY, mib, strict=False))
    )
    return a_run(msgspec.structs.replace(measured, processes=processes))


HISTORY = [of_memory(280, 281, 280)] * 4
PAIRS = [a_pair(1e-3, 1e-3, base={"rss": 281 * MIB}, rss=mib * MIB) for mib in (281, 289, 281)]


def test_launches_that_all_take_more_than_any_in_the_pairs_are_not_cleared_by_them():
    comparison = judged(HISTORY, in_turns(of_memory(320, 330, 313), PAIRS * 6))

    assert said(comparison, ROW) == (Verdict.INCONCLUSIVE, "unlike_pairs")
    assert row_of(comparison, ROW).ratio == pytest.approx(1.145, abs=0.01)
    assert comparison.exit_code == ExitCode.NO_ANSWER


@pytest.mark.parametrize(
    "mib", [(320,), (320, 330, 285), (283, 284, 283)], ids=["a single one", "not all", "not far"]
)
def test_else_the_pairs_answer(mib):
    comparison = judged(HISTORY, in_turns(of_memory(*mib), PAIRS * 6))

    assert row_of(comparison, ROW).verdict is Verdict.UNCHANGED
    assert comparison.exit_code == ExitCode.OK
