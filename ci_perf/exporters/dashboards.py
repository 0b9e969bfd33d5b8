"""Dashboards of benchmarks, each fed with one JSON document: Bencher, github-action-benchmark, HUD.

PyTorch's HUD reads benchmark records, version 3, by an uploader that adds what it knows better:
repository, branch, commit, workflow and job. The names of the keys are those of the table
`benchmark.oss_ci_benchmark_v3` (pytorch/test-infra).
"""

from ci_perf.baselines import layout
from ci_perf.exporters import series
from ci_perf.exporters.series import Exported, Series
from ci_perf.model import metrics
from ci_perf.model.environment import Environment, GpuMachine
from ci_perf.model.metrics import Unit
from ci_perf.model.run import Run

_Measures = dict[str, dict[str, float]]
# Charts of github-action-benchmark print a number as it stands: seconds and bytes would be
# unreadable. A unit must stay the same from run to run, so it does not follow the number's size.
_SHOWN = {Unit.SECOND: (1e3, "ms"), Unit.BYTE: (2.0**-20, "MiB")}
_Facts = dict[str, object]


def bencher(run: Run) -> Exported:
    """Return Bencher Metric Format: a benchmark per workload, a measure per metric, its range."""
    benchmarks: dict[str, _Measures] = {}
    for of_metric in series.of_run(run):
        if of_metric.metric in metrics.JUDGED:
            name = f"{of_metric.suite}/{of_metric.workload.workload}"
            benchmarks.setdefault(name, {})[of_metric.metric.name] = {
                "value": of_metric.centre,
                "lower_value": min(of_metric.values),
                "upper_value": max(of_metric.values),
            }
    return Exported(files={"": series.as_json(benchmarks)}, left_out=series.without_numbers(run))


def github_action_benchmark(run: Run) -> Exported:
    """Return `customSmallerIsBetter`: an entry per workload and metric that may have a verdict."""
    every, higher = series.of_judged_lower(run)
    return Exported(
        files={"": series.as_json([_entry(of_metric, run) for of_metric in every])},
        left_out=(*series.without_numbers(run), *higher),
    )


def _entry(of_metric: Series, run: Run) -> dict[str, object]:
    factor, unit = _SHOWN.get(of_metric.metric.unit, (1.0, of_metric.metric.unit.value))
    centre = of_metric.centre
    farthest = max(abs(value - centre) for value in of_metric.values)
    return {
        "name": of_metric.name,
        "unit": unit,
        "value": factor * centre,
        "range": f"± {factor * farthest:.3g}",
        "extra": f"{series.spread(of_metric)}, run {run.id}",
    }


def hud(run: Run) -> Exported:
    """Return a record of the HUD per workload and metric, with the value of each launch."""
    common: _Facts = {
        "runners": [_runner(run.environment)],
        "dependencies": _dependencies(run.environment),
    }
    records = [_record(of_metric, run) | common for of_metric in series.of_run(run)]
    return Exported(files={"": series.as_json(records)}, left_out=series.without_numbers(run))


def _record(of_metric: Series, run: Run) -> _Facts:
    workload, metric = of_metric.workload, of_metric.metric
    facts = {"run": run.id, "commit": run.source.commit, "validity": run.validity.status.value}
    return {
        "benchmark": {
            "name": f"ci-perf {of_metric.suite}",
            "dtype": workload.precision,
            "extra_info": facts | {"dirty": str(run.source.dirty).lower()},
        },
        "model": {
            "name": workload.workload,
            "type": "workload",
            "extra_info": {name: str(value) for name, value in workload.parameters.items()},
        },
        "metric": {
            "name": metric.name,
            "benchmark_values": list(of_metric.values),
            "extra_info": {"unit": metric.unit.value, "better": metric.better.value},
        },
    }


def _runner(environment: Environment) -> _Facts:
    machine, memory = environment.hard, environment.noted.memory_total_bytes
    is_gpu = isinstance(machine, GpuMachine)
    gpu: _Facts = (
        {
            "gpu_info": machine.gpu_model,
            "gpu_count": machine.gpu_count,
            "avail_gpu_mem_in_gb": machine.gpu_count * machine.gpu_memory_bytes // 2**30,
        }
        if isinstance(machine, GpuMachine)
        else {}
    )
    cores: _Facts = {} if isinstance(machine, GpuMachine) else {"cpu_count": machine.logical_cores}
    return (
        {
            "type": layout.machine_key(machine),
            "cpu_info": environment.soft.cpu_model,
            "avail_mem_in_gb": memory // 2**30,
            "extra_info": {
                "device": "cuda" if is_gpu else "cpu",
                "driver": environment.soft.driver or "",
            },
        }
        | gpu
        | cores
    )


def _dependencies(environment: Environment) -> _Facts:
    soft = environment.soft
    versions = {"torch": soft.torch, "transformers": soft.transformers, "cuda": soft.cuda}
    return {name: {"version": version} for name, version in versions.items() if version}
