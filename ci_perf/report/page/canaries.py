"""The canaries of a run: fixed programs that ran before, between and after its launches."""

import statistics
from collections.abc import Iterator

from ci_perf.model.run import NodeSession, Run
from ci_perf.report import units
from ci_perf.report.escape import Words

HEADING = ("canary", "before → between → after", "slowest against fastest")


def list_rows(run: Run) -> list[tuple[str, Words, Words]]:
    """List the canaries with the median of each position, those of several nodes apart."""
    is_one = len(run.sessions) == 1
    return [
        row
        for session in run.sessions
        for row in _make_rows(session, "" if is_one else f" on node {session.node}")
    ]


def _make_rows(session: NodeSession, where: str) -> Iterator[tuple[str, Words, Words]]:
    for name in dict.fromkeys(canary.name for canary in session.canaries):
        times = [
            [each.median_s for each in session.canaries if (each.name, each.position) == (name, at)]
            for at in ("before", "between", "after")
        ]
        medians = [statistics.median(of_position) for of_position in times if of_position]
        moved = units.percent(max(medians) / min(medians) - 1) if len(medians) > 1 else Words("")
        yield f"{name}{where}", Words(" → ".join(map(units.seconds, medians))), moved
