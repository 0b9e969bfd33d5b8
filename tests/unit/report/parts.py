"""What several shapes of report are made of."""

from ci_perf.model import metrics
from ci_perf.model.comparison import Interval, Verdict
from ci_perf.model.validity import Reason, validity_of
from tests.comparisons import a_change, an_uncompared
from tests.runs import MIB

GIB = 1024 * MIB
UNCHANGED = tuple(
    a_change(f"mlp_{width}", ratio=1 + move)
    for width, move in ((256, 0.009), (512, -0.004), (1024, 0.002), (2048, 0.0))
)
OWN = {metrics.STEP_TIME.name: 12.3e-3}
WIDE = Interval(low=0.97, high=1.13)


def a_loss(workload, ratio=1.0, **more):
    """A regression."""
    return a_change(workload, Verdict.REGRESSED, ratio=ratio, **more)


def a_doubt(status, code, detail, workload=""):
    """A machine that is not simply trusted, for one reason."""
    reason = Reason(code=code, status=status, detail=detail, workload=workload)
    return validity_of((reason,))


def an_undecided(workload="loader", *, code="spread", smallest_detectable=0.084, **more):
    return a_change(
        workload,
        Verdict.INCONCLUSIVE,
        ratio=more.pop("ratio", 1.05),
        interval=more.pop("interval", WIDE),
        code=code,
        smallest_detectable=smallest_detectable,
        **more,
    )


def elsewhere(workload, note, **more):
    """A workload whose baseline is of another machine."""
    both = {"base": OWN, "head": OWN, "code": "not_comparable"}
    return an_uncompared(workload, Verdict.INCONCLUSIVE, note, **both, **more)


def a_cleared(workload, drift, **more):
    """A suspect that pairs found unchanged."""
    return a_change(workload, ratio=1.003, code="baseline_moved", drift=drift, **more)
