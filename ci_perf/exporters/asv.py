"""airspeed velocity: the results folder that `asv publish` reads, one file per commit and suite."""

from ci_perf.baselines import layout
from ci_perf.errors import UsageError
from ci_perf.exporters import series
from ci_perf.exporters.series import Exported, Series
from ci_perf.model.environment import CpuMachine, Machine
from ci_perf.model.metrics import Metric, Unit
from ci_perf.model.run import UNKNOWN_COMMIT, Run

_RESULTS, _BENCHMARKS, _MACHINE = 2, 2, 1  # versions of these files
_UNITS = {Unit.SECOND: "seconds", Unit.BYTE: "bytes"}
_TYPES = {Unit.SECOND: "time", Unit.BYTE: "memory"}
_COLUMNS = ("result", "params", "version", "samples")
# Of a benchmark: another one would make asv ignore all results before it.
_VERSION = "ci-perf-1"

_Facts = dict[str, object]


def export(run: Run) -> Exported:
    """Return the results of a run, its benchmarks and its machine. Raises UsageError.

    asv puts results on the time axis by the commit and knows nothing of changes on top of it.
    """
    commit = run.source.commit
    if commit == UNKNOWN_COMMIT or run.source.dirty:
        state = "changes that no commit has" if run.source.dirty else "none"
        raise UsageError(
            f"--format asv: expected a run of a commit, found {state}: asv draws results by their "
            "commit; measure a clean checkout of a git repository"
        )
    every, higher = series.of_judged_lower(run)
    machine = layout.machine_key(run.environment.hard)
    environment = f"ci-perf-{run.suite.replace(':', '-')}"
    documents = {
        "benchmarks.json": _benchmarks(every),
        f"{machine}/machine.json": _machine(machine, run.environment.hard),
        f"{machine}/{commit[:8]}-{environment}.json": _results(every, run, machine, environment),
    }
    return Exported(
        files={name: series.as_json(document) for name, document in documents.items()},
        left_out=(*series.without_numbers(run), *higher),
        joined=("benchmarks.json",),
    )


def _benchmarks(every: list[Series]) -> _Facts:
    return {_name(of_metric): _benchmark(of_metric) for of_metric in every} | {
        "version": _BENCHMARKS
    }


def _benchmark(of_metric: Series) -> _Facts:
    metric = of_metric.metric
    return {
        "name": _name(of_metric),
        "pretty_name": f"{of_metric.workload.workload}: {metric.title}",
        "code": of_metric.workload.description,
        "type": _TYPES.get(metric.unit, "track"),
        "unit": _unit(metric),
        "version": _VERSION,
        "params": [],
        "param_names": [],
    }


def _unit(metric: Metric) -> str:
    return _UNITS.get(metric.unit, metric.unit.value)


def _machine(key: str, machine: Machine) -> _Facts:
    facts: _Facts = {"machine": key, "version": _MACHINE}
    if isinstance(machine, CpuMachine):
        return facts | {"cpu": machine.cpu_model, "num_cpu": str(machine.logical_cores)}
    return facts | {"gpu": machine.gpu_model, "num_gpu": str(machine.gpu_count)}


def _results(every: list[Series], run: Run, machine: str, environment: str) -> _Facts:
    return {
        "version": _RESULTS,
        "commit_hash": run.source.commit,
        "env_name": environment,
        "date": round(1000 * series.started_s(run)),
        # What asv draws lines of its own for: the software changes from one point to the next.
        "params": {"machine": machine},
        "python": run.environment.soft.python,
        "requirements": {},
        "env_vars": {},
        "result_columns": _COLUMNS,
        "results": {
            _name(of_metric): [[of_metric.centre], [], _VERSION, [of_metric.values]]
            for of_metric in every
        },
        "durations": {},
    }


def _name(of_metric: Series) -> str:
    """Name a benchmark as asv groups them: by what stands before a dot."""
    return of_metric.name.replace("/", ".")
