"""What accepting did to one file, as the report tells it: for `accept` and for `bot`."""

from ci_perf.baselines.accept import Acceptance
from ci_perf.report.accept_help import Accepted


def described(one: Acceptance, path: str = "") -> Accepted:
    """Return what is told of it; `path` where the file has another name than the one written to."""
    return Accepted(
        action=one.action.value,
        path=path or str(one.path),
        before=one.before,
        after=one.after,
        began=one.began,
        changed_numerics=one.changed_numerics,
    )
