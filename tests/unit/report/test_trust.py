"""What a report says of a machine that is not simply trusted."""

import pytest

from ci_perf.model.validity import Reason, Status, Validity
from ci_perf.report import notices
from tests.comparisons import a_change, a_comparison, an_interleaved


def reason_for(*workloads):
    """Say of these workloads that the host was busy; of the whole run where there is no name."""
    reasons = tuple(
        Reason(code="host_pressure", status=Status.DEGRADED, detail="busy", workload=name)
        for name in workloads
    )
    validity = Validity(status=Status.DEGRADED, reasons=reasons)
    (_, shown) = notices.list_reasons_to_distrust(a_comparison(a_change(), validity=validity))
    return "".join(shown)


def test_a_reason_names_the_others_whom_it_concerns_each_once():
    assert reason_for("", "nap", "", "nap", "mlp") == "host_pressure: busy; also nap, mlp"
    assert reason_for("nap", "", "nap", "mlp") == "host_pressure (nap): busy; also mlp"
    assert reason_for("nap", "nap", "") == "host_pressure (nap): busy"


def trust(*codes, **more):
    """Return the sentence above the reasons of these codes."""
    reasons = tuple(Reason(code=one, status=Status.DEGRADED, detail="x") for one in codes)
    validity = Validity(status=Status.DEGRADED, reasons=reasons)
    return "".join(
        notices.list_reasons_to_distrust(a_comparison(a_change(), validity=validity, **more))[0]
    )


@pytest.mark.parametrize("interleaved", [None, an_interleaved(pairs=3)])
def test_canaries_that_gate_nothing_are_said_to_have_silenced_nothing(interleaved):
    found = trust("canary_moved_no_gate", interleaved=interleaved)

    assert "Times are judged all the same, as suite.toml asks:" in found
    assert "history of a time says nothing" not in found


def test_no_machine_is_blamed_for_what_ended_before_it_was_measured():
    assert trust("incomplete").startswith("⚠️ Some measurements did not finish")


def test_what_is_no_fixed_program_is_not_listed_as_one():
    assert trust("canary_moved").endswith("memory and counts are:")
    assert trust("canary_moved", "host_pressure").endswith("other findings about the machine:")
