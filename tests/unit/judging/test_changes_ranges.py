import pytest

from ci_perf.judging import changes
from ci_perf.judging.candidates import Candidate
from ci_perf.model import metrics
from ci_perf.model.comparison import Verdict
from ci_perf.model.suite import Limit


def compared(metric, limit, base, head):
    """The change between the ranges of one session of the base and one of the head."""
    candidate = Candidate(workload="w", metric=metric, limit=limit, history=None, head=head)
    return changes.compare_ranges(candidate, [base], head)


@pytest.mark.parametrize(
    ("base", "head", "verdict"),
    [
        ([0.0, 0.01], [0.02, 0.04], Verdict.UNCHANGED),
        ([0.0, 0.01], [0.07, 0.20], Verdict.REGRESSED),
        ([0.0, 0.01], [0.02, 0.20], Verdict.INCONCLUSIVE),
        ([0.30, 0.35], [0.10, 0.20], Verdict.IMPROVED),
    ],
)
def test_a_share_may_be_zero_and_has_a_limit_in_points(base, head, verdict):
    assert compared(metrics.DATA_WAIT, Limit(absolute=0.05), base, head).verdict is verdict
