"""Arguments of the Python API that no option of the command line has checked."""

import pytest

import ci_perf
from ci_perf import workload
from ci_perf.cli.measure_options import FIELDS
from ci_perf.cli.measuring_commands import check_command, run_command
from ci_perf.errors import UsageError

SUITE = """
[suites.tiny]
workloads = [{ workload = "nap" }]
"""


def test_a_workload_file_needs_one_import():
    assert (ci_perf.Context, ci_perf.Workload) == (workload.Context, workload.Workload)


@pytest.mark.parametrize("call", [ci_perf.compare, ci_perf.check])
def test_a_word_that_fail_on_does_not_know_is_refused(call):
    with pytest.raises(UsageError, match=r"fail_on: expected one of proven, .* found 'often'"):
        call("a name", fail_on="often")


def test_one_workload_needs_no_list(tmp_path):
    (tmp_path / "suite.toml").write_text(SUITE)
    (tmp_path / "nap.py").write_text('"""Sleeps."""\n')

    with pytest.raises(UsageError, match="no workload 'nope'; known: nap"):
        ci_perf.measure("tiny", select="nope", workloads=tmp_path)


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ({"processes": 1000}, "--processes: expected a number from 1 to 100, found 1000"),
        ({"wait_s": "1m"}, "--wait: expected seconds, 0 or more, found '1m'"),
        ({"budget_s": -5.0}, "--budget: expected seconds, 0 or more, found -5.0"),
        ({"add": ["run.json"]}, "--add: expected --against REF, whose pairs are added"),
        ({"checks_before": -1}, "--checks-before: expected a number from 0 on, found -1"),
        ({"explain_s": float("nan")}, "--explain: expected seconds, 0 or more, found nan"),
    ],
)
def test_a_number_out_of_its_bounds_is_refused_before_anything_is_measured(option, said):
    with pytest.raises(UsageError, match=said):
        ci_perf.measure(**option)


@pytest.mark.parametrize("command", [run_command, check_command])
def test_what_a_command_measures_by_are_fields_that_python_takes(command):
    flags = {field.metadata["flag"] for field in FIELDS.values()}
    options = {max(parameter.opts, key=len) for parameter in command.params}

    assert {"--suite", "--device", "--wait"} <= options & flags


def test_an_option_that_a_measurement_does_not_have_is_refused():
    with pytest.raises(UsageError, match=r"suit: expected an option of a measurement, .* 'suite'"):
        ci_perf.check(suit="smoke")
