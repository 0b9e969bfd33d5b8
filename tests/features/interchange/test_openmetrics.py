"""OpenMetrics of a run and a comparison, read back by prometheus-client."""

import math

import msgspec
import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from ci_perf.features.interchange import openmetrics
from ci_perf.model.comparison import Verdict
from tests.comparisons import a_change, a_comparison
from tests.runs import (
    GPU,
    a_failed,
    a_gpu_evidence,
    a_measured,
    a_run,
    an_environment,
    an_evidence,
)

HOSTILE = 'ma"in\n# EOF\\ \u202e\udcff{x="1"} 9'
RUN = a_run(
    a_measured("mlp.width=8", 1e-3, 2e-3, parameters={"width": 8}),
    a_failed("conv"),
    suite="builtin:smoke",
)
CENTRE_S = math.sqrt(2e-6)


def samples(document):
    """Return every sample of OpenMetrics: the value, by its name and labels."""
    text = openmetrics.render(document)
    return {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_openmetrics_has_a_gauge_per_metric_in_base_units():
    read = samples(RUN)

    labels = (("suite", "builtin:smoke"), ("workload", "mlp.width=8"))
    assert read["ci_perf_step_time_seconds", *labels] == pytest.approx(CENTRE_S)
    assert read["ci_perf_step_time_lowest_seconds", *labels] == 1e-3
    assert read["ci_perf_step_time_highest_seconds", *labels] == 2e-3
    assert read["ci_perf_workload_failed", labels[0], ("workload", "conv")] == 1
    assert read["ci_perf_items_per_second", *labels] == pytest.approx(8 / CENTRE_S)


def test_the_units_of_a_gpu_have_names_that_prometheus_reads():
    evidence = an_evidence(a_gpu_evidence())
    run = a_run(
        a_measured("a", 1e-3, evidence=evidence, flops=10**9, precision="bf16"),
        environment=an_environment(hard=GPU),
    )
    names = {name for name, *_ in samples(run)}

    assert names >= {"ci_perf_sm_clock_hertz", "ci_perf_flop_per_second", "ci_perf_mfu_ratio"}
    assert names >= {"ci_perf_energy_joules", "ci_perf_power_watts", "ci_perf_flops"}


def test_no_name_of_others_can_add_a_line_to_openmetrics():
    source = msgspec.structs.replace(RUN.source, branch=HOSTILE)
    hostile = msgspec.structs.replace(RUN, source=source)
    (info,) = [key for key in samples(hostile) if key[0] == "ci_perf_run_info"]

    assert dict(info[1:])["branch"] == 'ma"in # EOF\\ {x="1"} 9'
    assert len(samples(hostile)) == len(samples(RUN))


def test_openmetrics_of_a_comparison_has_the_rule_and_the_verdict():
    judged = a_comparison(a_change("mlp", Verdict.REGRESSED, ratio=1.2), a_change("conv"))
    read = samples(judged)

    row = (("metric", "step_time_s"), ("suite", judged.suite), ("workload", "mlp"))
    assert read["ci_perf_change_ratio", *row] == pytest.approx(1.2)
    assert read["ci_perf_change_lowest_ratio", *row] == pytest.approx(1.19)
    assert read["ci_perf_change_limit_ratio", *row] == pytest.approx(1.02)
    assert read["ci_perf_verdict", *row[:2], ("verdict", "regressed"), row[2]] == 1
    assert read["ci_perf_exit_code", ("suite", judged.suite)] == judged.exit_code == 1
