"""Sentences that a report has once."""

import msgspec
import pytest

from ci_perf.model.run import Source
from ci_perf.model.validity import Reason, Status, Validity
from ci_perf.report import words
from tests.comparisons import a_change, a_comparison, a_head, a_side, an_interleaved
from tests.runs import CPU, GPU


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


BESIDE = an_interleaved(source=Source(commit="c" * 40, branch="", dirty=False), pairs=3)


def test_where_the_base_was_launched_its_commit_and_that_of_the_baseline_are_told_apart():
    found = "".join(words.footer(a_comparison(a_change(), interleaved=BESIDE)))

    assert found.startswith("Baseline of a1b2c3d → head d4e5f6a, launched beside ccccccc · run")


def test_a_base_that_was_launched_beside_a_head_without_a_baseline_is_the_only_one():
    nobody = a_side(sessions=0, source=Source(commit="none", branch="none", dirty=False))
    found = "".join(words.footer(a_comparison(a_change(), base=nobody, interleaved=BESIDE)))

    assert found.startswith("No baseline → head d4e5f6a, launched beside ccccccc · run")


def test_a_base_that_no_suspect_needed_is_not_said_to_have_been_launched():
    found = a_comparison(a_change(), interleaved=an_interleaved(pairs=0, suspects=0))

    assert "".join(words.footer(found)).startswith("Base a1b2c3d → head d4e5f6a · run")


def trust(*codes, **more):
    """Return the sentence above the reasons of these codes."""
    reasons = tuple(Reason(code=one, status=Status.DEGRADED, detail="x") for one in codes)
    validity = Validity(status=Status.DEGRADED, reasons=reasons)
    return "".join(words.validity(a_comparison(a_change(), validity=validity, **more))[0])


@pytest.mark.parametrize("interleaved", [None, BESIDE])
def test_canaries_that_gate_nothing_are_said_to_have_silenced_nothing(interleaved):
    found = trust("canary_moved_no_gate", interleaved=interleaved)

    assert "times are judged all the same:" in found
    assert "history of a time says nothing" not in found


def test_a_move_that_gates_leaves_times_to_the_pairs_where_there_are_some():
    assert "judged by pairs of launches alone" in trust("canary_moved", interleaved=BESIDE)
    assert "judged by its history; memory and counts are:" in trust("canary_moved")


def test_a_busy_machine_is_said_to_be_busy():
    assert trust("host_pressure").startswith("⚠️ The machine was busy with other work")
    assert trust("power_limited").startswith("⚠️ The machine was not at its best")


def test_no_machine_is_blamed_for_what_ended_before_it_was_measured():
    assert trust("incomplete").startswith("⚠️ Something was not measured to its end")


def test_what_is_no_fixed_program_is_not_listed_as_one():
    assert trust("canary_moved").endswith("memory and counts are:")
    assert trust("canary_moved", "host_pressure").endswith("what else was found of the machine:")


GPU_OF_ANOTHER_SIZE = msgspec.structs.replace(GPU, gpu_memory_bytes=70 * 2**30)


def test_machines_that_look_the_same_are_named_with_what_differs():
    assert words.machines(GPU, GPU_OF_ANOTHER_SIZE) == (
        f"NVIDIA H200 (gpu_memory_bytes {GPU.gpu_memory_bytes})",
        f"NVIDIA H200 (gpu_memory_bytes {GPU_OF_ANOTHER_SIZE.gpu_memory_bytes})",
    )


def test_machines_that_are_the_same_or_look_different_have_their_names_alone():
    near = msgspec.structs.replace(GPU, gpu_memory_bytes=GPU.gpu_memory_bytes - 2**20)

    assert words.machines(GPU, near) == ("NVIDIA H200", "NVIDIA H200")
    assert words.machines(None, GPU) == ("unknown machine", "NVIDIA H200")
    assert words.machines(CPU, GPU) == (
        f"{CPU.cpu_model}, {CPU.logical_cores} cores",
        "NVIDIA H200",
    )
