"""Each export, read back: by prometheus-client, or as types of the form that its reader has.

docs/exports.md says which version of each tool has read the same files.
"""

import importlib.util
import json
import math

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from ci_perf import exporters
from ci_perf.errors import CiPerfError, InvalidFileError, UsageError
from ci_perf.exporters import series
from ci_perf.gate import export
from ci_perf.model import metrics
from ci_perf.model.comparison import Verdict
from ci_perf.model.run import UNKNOWN_COMMIT
from tests.comparisons import a_change, a_comparison
from tests.runs import (
    GPU,
    HEAD_COMMIT,
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


def with_source(run, **facts):
    return msgspec.structs.replace(run, source=msgspec.structs.replace(run.source, **facts))


def exported(form, document=RUN):
    return exporters.export(document, form).files[""]


class Benchmark(msgspec.Struct, forbid_unknown_fields=True):
    """Of Bencher: https://bencher.dev/bmf.json."""

    value: float
    lower_value: float
    upper_value: float


class Entry(msgspec.Struct, forbid_unknown_fields=True):
    """Of github-action-benchmark."""

    name: str
    value: float
    unit: str
    range: str
    extra: str


Texts = dict[str, str]


class HudBenchmark(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    extra_info: Texts
    mode: str = ""
    dtype: str = ""


class HudModel(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    type: str
    extra_info: Texts
    backend: str = ""
    origins: list[str] = []


class HudMetric(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    benchmark_values: list[float]
    extra_info: Texts
    target_value: float = 0.0


class HudRunner(msgspec.Struct, forbid_unknown_fields=True):
    type: str
    cpu_info: str
    avail_mem_in_gb: int
    extra_info: Texts
    name: str = ""
    cpu_count: int = 0
    gpu_info: str = ""
    gpu_count: int = 0
    avail_gpu_mem_in_gb: int = 0


class HudDependency(msgspec.Struct, forbid_unknown_fields=True):
    version: str


class HudRecord(msgspec.Struct, forbid_unknown_fields=True):
    """A row of `oss_ci_benchmark_v3`, without what the uploader adds."""

    benchmark: HudBenchmark
    model: HudModel
    metric: HudMetric
    runners: list[HudRunner]
    dependencies: dict[str, HudDependency]


def test_bencher_has_a_measure_per_metric_with_its_range():
    benchmarks = msgspec.json.decode(
        exported("bencher"), type=dict[str, dict[str, Benchmark]], strict=True
    )

    step = benchmarks["builtin:smoke/mlp.width=8"]["step_time_s"]
    assert (step.lower_value, step.upper_value) == (1e-3, 2e-3)
    assert step.value == pytest.approx(CENTRE_S)


def test_github_action_benchmark_has_an_entry_per_metric_in_readable_units():
    entries = {
        entry.name: entry
        for entry in msgspec.json.decode(exported("github-action-benchmark"), type=list[Entry])
    }

    step = entries["builtin:smoke/mlp.width=8/step_time_s"]
    assert (round(step.value, 6), step.unit, step.range) == (1.414214, "ms", "± 0.586")
    assert step.extra == f"1.00 ms to 2.00 ms in 2 launches, run {RUN.id}"
    assert entries["builtin:smoke/mlp.width=8/host_rss_peak_bytes"].unit == "MiB"


def test_the_hud_gets_every_launch_of_every_metric():
    records = msgspec.json.decode(exported("hud"), type=list[HudRecord], strict=True)

    assert [r.metric.name for r in records] == [s.metric.name for s in series.of_run(RUN)]
    step = records[0]
    assert step.metric.benchmark_values == [1e-3, 2e-3]
    assert step.metric.extra_info == {"unit": "s", "better": "lower"}
    assert step.model.extra_info == {"width": "8"}
    assert step.runners[0].cpu_count == 2


def test_the_hud_gets_the_gpus_with_their_memory():
    run = a_run(a_measured("mlp", 1e-3), environment=an_environment(hard=GPU))
    (runner, *_) = msgspec.json.decode(exported("hud", run), type=list[HudRecord])[0].runners

    assert (runner.gpu_info, runner.gpu_count) == (GPU.gpu_model, GPU.gpu_count)
    assert runner.avail_gpu_mem_in_gb == GPU.gpu_count * GPU.gpu_memory_bytes // 2**30


def samples(document):
    """Return every sample of OpenMetrics: the value, by its name and labels."""
    text = exported("openmetrics", document).decode()
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
    assert read["ci_perf_run_start_time_seconds", labels[0]] == 1795255200


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
    hostile = with_source(RUN, branch=HOSTILE)
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


def test_a_format_that_holds_one_commit_refuses_a_comparison():
    with pytest.raises(UsageError, match=r"--format hud: expected a run.*found a comparison"):
        exporters.export(a_comparison(a_change()), "hud")


def test_asv_gets_the_results_of_a_commit_with_every_launch(tmp_path):
    export.export(RUN, "asv", output=tmp_path, notify=print)
    folder = tmp_path / "cpu-amd-epyc-2-cores"
    results = json.loads((folder / f"{HEAD_COMMIT[:8]}-ci-perf-builtin-smoke.json").read_text())
    benchmarks = json.loads((tmp_path / "benchmarks.json").read_text())

    name = "builtin:smoke.mlp.width=8.step_time_s"
    row = dict(zip(results["result_columns"], results["results"][name], strict=True))
    assert row["result"] == [pytest.approx(CENTRE_S)]
    assert row["samples"] == [[1e-3, 2e-3]]
    assert row["version"] == benchmarks[name]["version"]
    assert results["results"].keys() == benchmarks.keys() - {"version"}
    assert benchmarks[name]["unit"] == "seconds"
    assert json.loads((folder / "machine.json").read_text())["machine"] == folder.name


def test_a_second_suite_leaves_the_benchmarks_of_the_first_to_asv(tmp_path):
    for suite in ("smoke", "standard"):
        run = a_run(a_measured("mlp", 1e-3), suite=suite)
        export.export(run, "asv", output=tmp_path, notify=print)

    benchmarks = json.loads((tmp_path / "benchmarks.json").read_text())
    assert {"smoke.mlp.step_time_s", "standard.mlp.step_time_s"} <= benchmarks.keys()


def test_what_stands_in_the_place_of_benchmarks_is_refused_and_kept(tmp_path):
    there = tmp_path / "benchmarks.json"
    there.write_text("[]")

    with pytest.raises(InvalidFileError, match=r"benchmarks\.json: expected a JSON object, found"):
        export.export(RUN, "asv", output=tmp_path, notify=print)
    assert there.read_text() == "[]"


@pytest.mark.parametrize("source", [{"dirty": True}, {"commit": UNKNOWN_COMMIT}])
def test_asv_gets_no_numbers_of_code_that_is_no_commit(source):
    with pytest.raises(UsageError, match="--format asv: expected a run of a commit, found"):
        exporters.export(with_source(RUN, **source), "asv")


@pytest.mark.parametrize("form", ["asv", "github-action-benchmark"])
def test_what_is_better_higher_is_left_out_where_every_larger_number_is_a_loss(form):
    ranks = {"world_size": 2}
    run = a_run(
        a_measured("ddp.world_size=1", 1e-3, parameters={"world_size": 1}),
        a_measured("ddp.world_size=2", 1e-3, parameters=ranks),
    )
    result = exporters.export(run, form)

    assert any("scaling efficiency: more of it is better" in line for line in result.left_out)
    assert all(b"scaling_efficiency" not in data for data in result.files.values())


@pytest.mark.parametrize("form", ["asv", "bencher", "github-action-benchmark", "hud"])
def test_a_workload_without_numbers_is_named(form):
    lines = []
    export.export(RUN, form, output=None, notify=lines.append)

    assert lines == ["note: left out: conv: failed in timed: RuntimeError: boom"]


def test_a_start_that_is_no_time_is_refused():
    with pytest.raises(InvalidFileError, match=r"\$\.started_at: expected a time such as"):
        exporters.export(msgspec.structs.replace(RUN, started_at="soon"), "openmetrics")


@pytest.mark.skipif(
    bool(importlib.util.find_spec("tensorboard")), reason="tensorboard is installed"
)
def test_without_tensorboard_an_error_says_what_to_install():
    with pytest.raises(CiPerfError, match=r"needs tensorboard.*next: `pip install tensorboard`"):
        exporters.export(RUN, "tensorboard")


@given(st.lists(st.floats(1e-9, 1e9), min_size=1), st.sampled_from(metrics.ALL))
def test_the_value_of_a_side_lies_between_its_launches(values, metric):
    of_metric = series.Series(
        suite="smoke", workload=a_measured("mlp", 1e-3), metric=metric, values=tuple(values)
    )

    assert min(values) <= of_metric.centre <= max(values)
