"""From rows to the exit code of a job."""

from collections.abc import Sequence

from ci_perf.errors import ExitCode
from ci_perf.judge import signs, stages
from ci_perf.model.comparison import Change, Row, Verdict
from ci_perf.model.suite import FailOn

# Verdicts that say: it is the change that was judged.
_BLAMES = {Verdict.REGRESSED, Verdict.NUMERICS_CHANGED}
# Verdicts that say: there is no answer for something that was asked about.
_NO_ANSWER = {Verdict.FAILED, Verdict.MISSING, Verdict.INVALID, Verdict.INCOMPARABLE}
# The wishes that fail a job for a loss which nothing proves.
_FAIL_ON_SUSPICION = {"unconfirmed", "inconclusive"}


def exit_code(verdict: Verdict, rows: Sequence[Row], fail_on: FailOn = "regressed") -> int:
    """Choose the exit code: a proven regression is 1 even when something else has no answer.

    Nothing compared at all is 3, not green; nor is what looks like a loss and is not proven.
    `fail_on` is the mildest finding that ends with 1. With "never" a loss ends with 0, proven or
    not, and what has no numbers stays 3.
    """
    if fail_on != "never" and any(_fails(row, fail_on) for row in rows):
        return ExitCode.REGRESSED
    compared = any(isinstance(row, Change) for row in rows)
    unanswered = any(_is_unanswered(row, fail_on) for row in rows)
    if verdict is Verdict.INVALID or unanswered or not compared:
        return ExitCode.NO_ANSWER
    return ExitCode.OK


def _is_unanswered(row: Row, fail_on: FailOn) -> bool:
    is_open_loss = fail_on != "never" and signs.is_open_loss(row)
    return row.gate and (row.verdict in _NO_ANSWER or is_open_loss)


def _fails(row: Row, fail_on: FailOn) -> bool:
    if not row.gate:
        return False
    if row.verdict in _BLAMES:
        return True
    if fail_on == "inconclusive" and row.verdict is Verdict.INCONCLUSIVE:
        return True
    if fail_on in _FAIL_ON_SUSPICION and row.verdict is Verdict.LIKELY_SLOWER:
        return True
    return fail_on in _FAIL_ON_SUSPICION and _is_suspected(row, fail_on)


def _is_suspected(row: Row, fail_on: FailOn) -> bool:
    """Whether a loss is predicted. What rests on an assumed spread fails only the strictest."""
    is_worse = isinstance(row, Change) and row.ratio is not None and row.ratio > 1
    is_trusted = row.code != stages.ASSUMED or fail_on == "inconclusive"
    return row.verdict is Verdict.UNCONFIRMED and is_worse and is_trusted
