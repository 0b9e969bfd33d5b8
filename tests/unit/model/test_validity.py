"""What speaks against the machine, from many processes, told once."""

from ci_perf.model import validity
from ci_perf.model.validity import Reason, Status


def a_reason(code, status, detail, workload=""):
    return Reason(code=code, status=status, detail=detail, workload=workload)


def test_of_one_finding_in_many_processes_the_worst_is_kept():
    mild = a_reason("throttled", Status.DEGRADED, "2 %", "a")
    worse = a_reason("throttled", Status.INVALID, "40 %", "a")
    other = a_reason("throttled", Status.DEGRADED, "2 %", "b")

    assert validity.distinct([mild, other, mild, worse, worse]) == (worse, other)
