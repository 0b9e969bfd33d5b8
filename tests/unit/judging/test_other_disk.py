"""An alarm proves nothing where base and head lie on two file systems."""

import tempfile
from pathlib import Path

import pytest

from ci_perf.errors import ExitCode
from ci_perf.measuring import distrust
from ci_perf.model.validity import Doubt, validity_of
from ci_perf.report import remarks
from ci_perf.report.advice import list_steps
from ci_perf.report.notices import list_notices
from ci_perf.report.sheet import Topic, make_sheet
from tests.histories import a_head, in_turns, judged, pairs, row_of
from tests.plans import a_plan, a_planned


def check(ratio, *reasons):
    """Judge a head without a history that is slower by a ratio, in a run with these reasons."""
    return judged((), in_turns(a_head(validity=validity_of(reasons)), pairs(ratio)))


def test_a_command_on_two_file_systems_is_at_most_likely_slower():
    comparison = check(1.4, Doubt.OTHER_FILE_SYSTEM.reason("two disks", "w"))

    row = row_of(comparison)
    assert (row.verdict.value, row.code.value) == ("likely_slower", "beyond_limit")
    assert comparison.exit_code == ExitCode.NO_ANSWER
    assert remarks.describe(row) == "base and head lie on two file systems"
    assert next(iter(list_steps(make_sheet(comparison)))) is Topic.OTHER_FILE_SYSTEM
    assert "two disks" in "".join(map(str, list_notices(comparison)[0]))


@pytest.mark.parametrize(
    ("workload", "ratio", "code"), [("another", 1.4, 1), ("another", 1.0, 0), ("w", 1.0, 0)]
)
def test_other_workloads_and_what_has_not_moved_are_judged_as_ever(workload, ratio, code):
    two_disks = Doubt.OTHER_FILE_SYSTEM.reason("two disks", workload)

    assert check(ratio, two_disks).exit_code == code


def test_commands_and_tests_are_doubted_and_workloads_are_not(tmp_path):
    plan = a_plan(
        a_planned("command", parameters={"command": "make"}),
        a_planned("test", collects=("test_x.py",)),
        a_planned("workload"),
        root=str(tmp_path),
    )

    with tempfile.TemporaryDirectory(dir="/dev/shm") as other:
        reasons = [*distrust.distrust_base(plan, Path(other))]

    assert [reason.workload for reason in reasons] == ["command", "test"]
    assert f"the head lies in {tmp_path}, the base in {other}" in reasons[0].detail
    assert [*distrust.distrust_base(plan, tmp_path)] == []
