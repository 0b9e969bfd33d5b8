from pathlib import Path

import pytest

from ci_perf.errors import InvalidFileError
from ci_perf.gate import measure, run_summary
from ci_perf.gate.options import MeasureOptions
from ci_perf.model.comparison import Verdict
from ci_perf.model.run import Checks
from ci_perf.model.validity import Status, validity_of
from ci_perf.system import files
from tests.comparisons import a_plant
from tests.histories import in_turns, pairs
from tests.runs import STEADY, a_measured, a_reason, a_run, an_evidence


def told(*reasons):
    """Return what is said of a run that has these reasons, between its first line and its last."""
    run = a_run(a_measured("w", *STEADY), validity=validity_of(reasons))
    return run_summary.text(run, Path("run.json")).splitlines()[1:-1]


def test_a_reason_names_the_workload_that_it_is_about():
    assert told(a_reason("gpu_lost"), a_reason("foreign_memory", "a")) == [
        "invalid: gpu_lost: nothing left",
        "invalid: foreign_memory: a: nothing left",
    ]


def test_what_holds_for_many_workloads_is_said_once():
    reasons = [a_reason("host_pressure", name, Status.DEGRADED) for name in ("", "a", "b")]

    assert told(*reasons) == ["degraded: host_pressure: nothing left; likewise a, b"]


def test_numbers_that_would_be_no_baseline_are_told_at_once():
    busy = a_measured("w", *STEADY, evidence=an_evidence(cpu_pressure=0.93))

    assert run_summary.text(a_run(busy), Path("run.json")).splitlines()[1] == (
        "`ci-perf accept` would refuse these numbers as a baseline: tasks waited for a CPU 93% of "
        "the timed region"
    )


def test_an_earlier_run_that_was_slowed_down_on_purpose_is_refused(tmp_path):
    run = in_turns(a_run(a_measured("w", *STEADY)), pairs(1.1), planted=a_plant("w"))
    options = MeasureOptions(root=tmp_path, against="main", add=(run,))

    with pytest.raises(InvalidFileError, match=r"--add: run .* on purpose"):
        measure._before(options, lambda _text: None)


def test_an_earlier_run_is_judged_as_it_was_then(tmp_path):
    run = in_turns(a_run(a_measured("w", *STEADY), id="first"), pairs(1.1))
    file = tmp_path / "first.json"
    files.write(file, run)
    options = MeasureOptions(
        root=tmp_path,
        workloads=tmp_path,
        baselines=tmp_path,
        against="main",
        add=(file,),
        checks_before="unknown",
    )

    before = measure._before(options, lambda _text: None)

    assert before.checks == Checks(before=None)
    (offered,) = before.offered
    assert (offered.label, offered.run.id) == (str(file), "first")
    assert offered.comparison.verdict is Verdict.REGRESSED
