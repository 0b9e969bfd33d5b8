"""What several shapes of report are made of."""

from ci_perf.model import metrics
from ci_perf.model.comparison import Interval, Verdict
from tests.comparisons import a_change
from tests.runs import MIB

GIB = 1024 * MIB
UNCHANGED = tuple(
    a_change(f"mlp_{width}", ratio=1 + move)
    for width, move in ((256, 0.009), (512, -0.004), (1024, 0.002), (2048, 0.0))
)
OWN = {metrics.STEP_TIME.name: 12.3e-3}
WIDE = Interval(low=0.97, high=1.13)


def an_undecided(workload="loader", *, code="spread", smallest_detectable=0.084, **more):
    return a_change(
        workload,
        Verdict.INCONCLUSIVE,
        ratio=1.05,
        interval=more.pop("interval", WIDE),
        code=code,
        smallest_detectable=smallest_detectable,
        **more,
    )


def a_cleared(workload, drift, **more):
    """A suspect that pairs found unchanged."""
    return a_change(workload, ratio=1.003, code="baseline_moved", drift=drift, **more)
