"""What a session says of a merge, by its run and the rows of its judge."""

import msgspec
import pytest

from ci_perf.features.backtest.backtested import MergeOutcome
from ci_perf.features.backtest.sessions import read_answer
from ci_perf.model.comparison import Verdict
from ci_perf.model.validity import validity_of
from tests.comparisons import a_change, an_interleaved
from tests.programs import a_same_program
from tests.runs import a_failed, a_measured, a_reason, a_run

CALM = a_change("w", verdict=Verdict.UNCHANGED)
OPEN = a_change("w", verdict=Verdict.INCONCLUSIVE)
SLOWER = msgspec.structs.replace(a_change("w", verdict=Verdict.REGRESSED, ratio=1.2), pairs=6)
MEASURED = a_run(a_measured("w", 1e-3))
LATE = a_run(a_measured("w", 1e-3), interleaved=an_interleaved(stopped="budget"))


@pytest.mark.parametrize(
    ("run", "rows", "outcome", "note"),
    [
        (MEASURED, (CALM,), MergeOutcome.UNCHANGED, ""),
        (MEASURED, (CALM, SLOWER), MergeOutcome.SUSPECTED, ""),
        (MEASURED, (OPEN,), MergeOutcome.UNDECIDED, "w: no answer on step_time_s"),
        (LATE, (OPEN,), MergeOutcome.OPEN, "w: no answer on step_time_s"),
        (MEASURED, (), MergeOutcome.UNDECIDED, ""),
        (a_run(same=(a_same_program("w"),)), (), MergeOutcome.SAME_PROGRAM, ""),
        (a_run(a_failed("w")), (), MergeOutcome.FAILED, "w: RuntimeError: boom"),
        # One workload that fails is no clear merge, however calm the others are.
        (
            a_run(a_measured("w", 1e-3), a_failed("x")),
            (CALM,),
            MergeOutcome.UNDECIDED,
            "x: RuntimeError: boom",
        ),
        (
            a_run(a_measured("w", 1e-3), validity=validity_of((a_reason("gpu_lost"),))),
            (CALM,),
            MergeOutcome.UNDECIDED,
            "gpu_lost: nothing left",
        ),
    ],
)
def test_the_outcome_is_the_first_that_holds(run, rows, outcome, note):
    answer = read_answer(run, rows)

    assert (answer.outcome, answer.note) == (outcome, note)
