"""What suite.toml says of limits, and of what fails a job."""

import pytest

from ci_perf.errors import InvalidFileError
from ci_perf.judging.policy import limits_on
from ci_perf.model.environment import CpuMachine
from ci_perf.model.suite import Limit
from tests import suites
from tests.calibrations import a_calibration
from tests.suites import plan

MATMUL = "[[suites.smoke.workloads]]\nworkload = 'matmul'"


@pytest.fixture
def folder(tmp_path):
    """A folder with two workload files that would raise when imported."""
    return suites.of("matmul", "bert", where=tmp_path)


def test_a_limit_may_be_for_the_numerics_and_for_the_canaries(folder):
    found = plan(
        folder,
        """
        limits = {fingerprint = {limit = 0.01, gate = true}}
        [suites.smoke.limits]
        canary = {limit = 0.25}
        [[suites.smoke.workloads]]
        workload = "bert"
        """,
    )

    assert found.limits.of("bert")["fingerprint"] == Limit(relative=0.01)
    assert found.limits.of("bert")["canary"] == Limit(relative=0.25)


def test_memory_gates_tests_only_where_the_suite_says_so(folder):
    """A forked test has the imports of all files; a workload beside it has its own."""
    tests = (
        "[[suites.smoke.pytest]]\npaths = ['tests']\n[[suites.smoke.workloads]]\nworkload = 'bert'"
    )
    limits = plan(folder, tests).limits
    asked = plan(folder, f"limits.host_rss_peak_bytes.gate = true\n{tests}").limits

    assert not limits.of("test_a")["host_rss_peak_bytes"].gate
    assert limits.of("bert")["host_rss_peak_bytes"].gate
    assert asked.of("test_a")["host_rss_peak_bytes"] == limits.of("bert")["host_rss_peak_bytes"]


@pytest.mark.parametrize(
    ("table", "metric", "expected"),
    [
        # A share, a size, or both.
        ("step_time_s = { limit = 0.03 }", "step_time_s", Limit(relative=0.03)),
        ("step_time_s = { limit = '5 ms' }", "step_time_s", Limit(absolute=0.005)),
        (
            "step_time_s = { limit = [0.03, '5 ms'] }",
            "step_time_s",
            Limit(relative=0.03, absolute=0.005),
        ),
        ("step_time_s = { limit = '3 %' }", "step_time_s", Limit(relative=0.03)),
        # It may stand alone where it says nothing else.
        ("step_time_s = 0.03", "step_time_s", Limit(relative=0.03)),
        ("step_time_s = '3 %'", "step_time_s", Limit(relative=0.03)),
        # What a table does not name stays.
        ("step_time_s = { require = true }", "step_time_s", Limit(relative=0.02, require=True)),
        ("first_step_s = { limit = 0.5 }", "first_step_s", Limit(relative=0.5, gate=False)),
        ("fingerprint = { limit = 0.01 }", "fingerprint", Limit(relative=0.01, gate=False)),
        # Of a share of a step, in its points.
        ("data_wait = { limit = 0.1 }", "data_wait", Limit(absolute=0.1, gate=False)),
        # What is said of the step time holds for its CPU time.
        ("step_time_s = { limit = 0.1 }", "step_cpu_s", Limit(relative=0.1, gate=False)),
    ],
)
def test_a_limit_is_what_its_table_says(folder, table, metric, expected):
    found = plan(folder, f"[limits]\n{table}\n{MATMUL}").limits.default

    assert found[metric] == expected


def test_a_limit_for_what_is_only_recorded_is_refused(folder):
    with pytest.raises(InvalidFileError, match="unknown metric 'power_w'"):
        plan(folder, "[limits]\npower_w = {}\n[[suites.smoke.workloads]]\nworkload = 'matmul'")


@pytest.mark.parametrize(
    ("metric", "limit", "message"),
    [
        ("step_time_s", "limit = 0", r"expected a share above 0 and at most 1 .*, found 0"),
        ("step_time_s", "limit = 1.5", "expected a share above 0 and at most 1 .*, found 1.5"),
        ("step_time_s", "limit = nan", "expected a share above 0"),
        ("step_time_s", 'limit = "5 MiB"', "one of s, ms, us, µs, ns, found '5 MiB'"),
        ("step_time_s", 'limit = "0 ms"', "expected a number above 0"),
        ("step_time_s", f"limit = '{'9' * 400} s'", "expected a number above 0"),
        ("data_wait", "limit = 5", "expected a share above 0 and at most 1 .*, found 5"),
        ("step_time_s", "limit = [0.1, 0.2]", "expected one share and one size"),
        ("step_time_s", "limit = [0.1]", "expected array of length 2, found 1"),
        ("step_time_s", "limit = true", "expected float"),
        ("operators", "limit = 0.1", "operators per step are exact.*write only `gate`"),
        ("fingerprint", 'limit = "5 ms"', "expected a share, found '5 ms'"),
        ("step_time_s", "margin = 0.1", "unknown key 'margin'; known: gate, limit, require"),
    ],
)
def test_a_wrong_limit_is_refused_with_its_place(folder, metric, limit, message):
    text = f"[suites.smoke]\nlimits = {{ {metric} = {{ {limit} }} }}\n"

    with pytest.raises(InvalidFileError, match=rf"limits.*{metric}.*{message}"):
        plan(folder, text + MATMUL)


def test_a_step_time_has_another_limit_on_a_cpu(folder):

    def found(machine):
        limits = plan(folder, MATMUL, defaults=limits_on(machine)).limits.default
        return [
            (limits[name].relative, limits[name].gate) for name in ("step_time_s", "step_cpu_s")
        ]

    assert found(None) == [(0.02, True), (0.02, False)]
    assert found(CpuMachine(cpu_model="c", logical_cores=2)) == [(0.05, True), (0.05, True)]


def test_a_word_that_is_none_of_a_few_is_answered_with_these(folder):
    text = "[suites.smoke]\nfail_on = 'strickt'\n"

    with pytest.raises(InvalidFileError, match=r"smoke\.fail_on: expected one of '.*, found 'str"):
        plan(folder, text + MATMUL)


def test_what_fails_a_job_and_how_a_checkout_is_made_ready_is_part_of_the_plan(folder):
    found = plan(
        folder,
        """
        python_path = ["src"]
        setup = { command = "make extension", timeout_s = 60 }
        [suites.smoke]
        fail_on = "likely"
        [[suites.smoke.workloads]]
        workload = "matmul"
        """,
    )

    assert (found.fail_on, found.python_path) == ("likely", ("src",))
    assert (found.setup.command, found.setup.timeout_s) == ("make extension", 60)


def test_a_step_time_that_does_not_gate_takes_its_cpu_time_along(folder):
    text = "[suites.smoke]\nlimits = { step_time_s = { gate = false } }\n"
    text += MATMUL
    machine = CpuMachine(cpu_model="c", logical_cores=2)
    found = plan(folder, text, defaults=limits_on(machine))

    assert not found.limits.default["step_cpu_s"].gate


def test_a_calibration_says_how_pairs_are_averaged(folder):
    crowded = a_calibration(noise="crowded", trimmed=True)

    limits = plan(folder, MATMUL, defaults=limits_on(None, crowded)).limits

    assert limits.trimmed
    assert limits.default == limits_on(None).default  # whatever limit the machine can hold
