"""OpenMetrics text, which Prometheus and its relatives read: gauges in base units.

Nothing has a timestamp of its own, which a Pushgateway and the text file collector refuse.
"""

import functools
import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from ci_perf.judging import launch_numbers, metric_values
from ci_perf.model import metrics
from ci_perf.model.comparison import Change, Comparison
from ci_perf.model.metrics import Metric, Unit
from ci_perf.model.run import Run
from ci_perf.report import escape, phrases, provenance

_Labels = Mapping[str, str]
_Samples = Sequence[tuple[_Labels, float]]

# The end of our name for a metric, the base unit of OpenMetrics, and the factor to it.
_UNITS: dict[Unit, tuple[str, str, float]] = {
    Unit.SECOND: ("_s", "seconds", 1.0),
    Unit.BYTE: ("_bytes", "bytes", 1.0),
    Unit.SHARE: ("", "ratio", 1.0),
    Unit.JOULE: ("_j", "joules", 1.0),
    Unit.WATT: ("_w", "watts", 1.0),
    Unit.MEGAHERTZ: ("_mhz", "hertz", 1e6),
    Unit.FLOP_PER_SECOND: ("flop_per_s", "flop_per_second", 1.0),
    Unit.ITEM_PER_SECOND: ("items_per_s", "items_per_second", 1.0),
}
_CHANGES = {
    "": "Head over base",
    "lowest": "The lower end of its interval",
    "highest": "The upper end of its interval",
    "limit": "What unchanged is below",
}
_MOST_CHARS = 200


def render(document: Run | Comparison) -> str:
    """Return one text of all metrics of a run, or of all rows of a comparison."""
    families = _render_run(document) if isinstance(document, Run) else _render_comparison(document)
    return "".join(families) + "# EOF\n"


def values_of(run: Run) -> dict[Metric, dict[str, list[float]]]:
    """Return, by metric and workload, the value of each launch."""
    values: dict[Metric, dict[str, list[float]]] = {}
    for workload in run.measured:
        launches = launch_numbers.list_workload_numbers(workload, run)
        for metric in (*metrics.ALL, *metrics.find_own(itertools.chain(*launches))):
            of_launches = [launch[metric.name] for launch in launches if metric.name in launch]
            if of_launches:
                values.setdefault(metric, {})[workload.workload] = of_launches
    return values


def centre(metric: Metric, values: Sequence[float]) -> float:
    """Return the value that stands for all launches, as in a report; between the outermost."""
    return min(max(metric_values.centre(metric.kind, [values]), min(values)), max(values))


def _render_run(run: Run) -> Iterator[str]:
    suite = {"suite": run.suite}
    facts = {
        "run": run.id,
        "commit": run.source.commit,
        "branch": run.source.branch,
        "dirty": str(run.source.dirty).lower(),
        "started_at": run.started_at,
        "machine": provenance.machine(run.environment.hard),
        "torch": run.environment.soft.torch,
        "validity": run.validity.status.value,
    }
    yield _info("run", "The run that the other numbers are of.", suite | facts)
    outcomes = {workload.workload: 0 for workload in run.measured}
    outcomes |= {workload.workload: 1 for workload in run.failed}
    failed = [(suite | {"workload": name}, is_failed) for name, is_failed in outcomes.items()]
    yield _gauge("workload_failed", "1 for a workload that has no numbers, else 0.", failed)
    for metric, by_workload in values_of(run).items():
        end, unit, factor = _UNITS.get(metric.unit, ("", "", 1.0))
        parts: tuple[tuple[str, str, Callable[[Sequence[float]], float]], ...] = (
            ("", "what stands for all launches", functools.partial(centre, metric)),
            ("lowest", "the lowest launch", min),
            ("highest", "the highest launch", max),
        )
        for part, meaning, choose in parts:
            yield _gauge(
                _join_name(metric.name.removesuffix(end), part, unit),
                f"{metric.title}: {meaning}; {metric.better.value} is better.",
                [
                    (suite | {"workload": name}, factor * choose(values))
                    for name, values in by_workload.items()
                ],
                unit=unit,
            )


def _render_comparison(judged: Comparison) -> Iterator[str]:
    suite = {"suite": judged.suite}
    facts = {
        "verdict": judged.verdict.value,
        "base_commit": judged.base.source.commit,
        "head_commit": judged.head.source.commit,
        "base_run": judged.base.run,
        "head_run": judged.head.run,
    }
    yield _info("comparison", "The comparison that the other numbers are of.", suite | facts)
    help_text = "What ci-perf ends with: 0 no regression, 1 regression, 3 no answer."
    yield _gauge("exit_code", help_text, [(suite, judged.exit_code)])
    verdicts = []
    changes: dict[str, list[tuple[_Labels, float]]] = {part: [] for part in _CHANGES}
    for row in judged.rows:
        labels = suite | {"workload": row.workload, "metric": str(phrases.metric(row))}
        verdicts.append((labels | {"verdict": row.verdict.value}, 1))
        if isinstance(row, Change):
            changes["limit"].append((labels, 1 + row.limit))
            if row.ratio is not None:
                changes[""].append((labels, row.ratio))
            if row.interval is not None:
                changes["lowest"].append((labels, row.interval.low))
                changes["highest"].append((labels, row.interval.high))
    help_text = "1 for the verdict of each row; a row without a metric is a whole workload."
    yield _gauge("verdict", help_text, verdicts)
    for part, samples in changes.items():
        help_text = f"{_CHANGES[part]}; above 1 is worse."
        yield _gauge(_join_name("change", part, "ratio"), help_text, samples, unit="ratio")


# --- the text


def _info(name: str, meaning: str, labels: _Labels) -> str:
    head = f"# TYPE ci_perf_{name} info\n# HELP ci_perf_{name} {meaning}\n"
    return head + _sample(f"{name}_info", labels, 1)


def _gauge(name: str, meaning: str, samples: _Samples, unit: str = "") -> str:
    if not samples:
        return ""
    head = f"# TYPE ci_perf_{name} gauge\n"
    if unit:
        head += f"# UNIT ci_perf_{name} {unit}\n"
    head += f"# HELP ci_perf_{name} {meaning}\n"
    return head + "".join(_sample(name, labels, value) for labels, value in samples)


def _sample(name: str, labels: _Labels, value: float) -> str:
    pairs = ",".join(f'{label}="{_escape_text(text)}"' for label, text in labels.items())
    return f"ci_perf_{name}{{{pairs}}} {float(value)!r}\n"


def _escape_text(text: str) -> str:
    line = escape.clean(text, limit=_MOST_CHARS)
    return line.replace("\\", r"\\").replace('"', r"\"")


def _join_name(*parts: str) -> str:
    """Join the parts of a family's name; the user's own names may have other characters."""
    return re.sub(r"\W", "_", "_".join(filter(None, parts)), flags=re.ASCII)
