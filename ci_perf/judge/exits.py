"""From rows to the exit code of a job."""

from collections.abc import Sequence

from ci_perf.errors import ExitCode
from ci_perf.judge import stages
from ci_perf.model.comparison import Change, Row, Verdict
from ci_perf.model.suite import FailOn

# Verdicts that say: it is the change that was judged.
_BLAMES = {Verdict.REGRESSED, Verdict.NUMERICS_CHANGED}
# Verdicts that say: there is no answer for something that was asked about.
_NO_ANSWER = {Verdict.FAILED, Verdict.MISSING, Verdict.INVALID, Verdict.INCOMPARABLE}


def exit_code(verdict: Verdict, rows: Sequence[Row], fail_on: FailOn = "regressed") -> int:
    """Choose the exit code: a proven regression is 1 even when something else has no answer.

    Nothing compared at all is 3, not green. `fail_on` is the mildest finding that ends with 1;
    "never" leaves 1 out, and what has no answer stays 3.
    """
    if fail_on != "never" and any(_fails(row, fail_on) for row in rows):
        return ExitCode.REGRESSED
    compared = any(isinstance(row, Change) for row in rows)
    unanswered = any(row.verdict in _NO_ANSWER and row.gate for row in rows)
    if verdict is Verdict.INVALID or unanswered or not compared:
        return ExitCode.NO_ANSWER
    return ExitCode.OK


def _fails(row: Row, fail_on: FailOn) -> bool:
    if not row.gate:
        return False
    if row.verdict in _BLAMES:
        return True
    if fail_on == "inconclusive" and row.verdict is Verdict.INCONCLUSIVE:
        return True
    return fail_on in {"unconfirmed", "inconclusive"} and _is_suspected(row, fail_on)


def _is_suspected(row: Row, fail_on: FailOn) -> bool:
    """Whether a loss is predicted. What rests on an assumed spread fails only the strictest."""
    is_worse = isinstance(row, Change) and row.ratio is not None and row.ratio > 1
    is_trusted = row.code != stages.ASSUMED or fail_on == "inconclusive"
    return row.verdict is Verdict.UNCONFIRMED and is_worse and is_trusted
