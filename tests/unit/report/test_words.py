"""Sentences that a report has once."""

from ci_perf.model.validity import Reason, Status, Validity
from ci_perf.report import words
from tests.comparisons import a_change, a_comparison, a_head


def reason_for(*workloads):
    """Say of these workloads that the host was busy; of the whole run where there is no name."""
    reasons = tuple(
        Reason(code="host_pressure", status=Status.DEGRADED, detail="busy", workload=name)
        for name in workloads
    )
    validity = Validity(status=Status.DEGRADED, reasons=reasons)
    (_, shown) = words.validity(a_comparison(a_change(), validity=validity))
    return "".join(shown)


def test_a_reason_names_the_others_whom_it_concerns_each_once():
    assert reason_for("", "nap", "", "nap", "mlp") == "host_pressure: busy; also nap, mlp"
    assert reason_for("nap", "", "nap", "mlp") == "host_pressure (nap): busy; also mlp"
    assert reason_for("nap", "nap", "") == "host_pressure (nap): busy"


def test_samples_that_have_no_run_name_none():
    named = "".join(words.footer(a_comparison(a_change())))
    unnamed = "".join(words.footer(a_comparison(a_change(), head=a_head(run=""))))

    assert " · run 0123456789ab · exit code 0" in named
    assert "run" not in unnamed
