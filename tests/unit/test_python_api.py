"""Arguments of the Python API that no option of the command line has checked."""

import pytest

import ci_perf
from ci_perf.errors import UsageError

SUITE = """
[suites.tiny]
workloads = [{ workload = "nap" }]
"""


@pytest.mark.parametrize(
    "call", [ci_perf.compare, ci_perf.check, ci_perf.judge], ids=lambda call: call.__name__
)
def test_a_word_that_fail_on_does_not_know_is_refused(call):
    with pytest.raises(UsageError, match=r"fail_on: expected one of regressed, .* found 'often'"):
        call("a name", fail_on="often")


def test_a_preset_that_does_not_exist_is_refused():
    with pytest.raises(UsageError, match="preset: expected one of strict"):
        ci_perf.judge("samples.json", preset="mild")  # type: ignore[arg-type]


def test_one_workload_needs_no_list(tmp_path):
    (tmp_path / "suite.toml").write_text(SUITE)
    (tmp_path / "nap.py").write_text('"""Sleeps."""\n')

    with pytest.raises(UsageError, match="no workload 'nope'; known: nap"):
        ci_perf.measure("tiny", select="nope", workloads=tmp_path)
