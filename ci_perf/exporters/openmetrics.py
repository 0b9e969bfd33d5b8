"""OpenMetrics text, which Prometheus and its relatives read: gauges in base units.

Nothing has a timestamp of its own, which a Pushgateway and the text file collector refuse.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from ci_perf.exporters import series
from ci_perf.exporters.series import Exported, Series
from ci_perf.model.comparison import Change, Comparison, Row
from ci_perf.model.metrics import Unit
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
}
_MOST_CHARS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class _Family:
    """One name, its kind and unit, and its samples."""

    name: str
    samples: _Samples
    help: str
    kind: str = "gauge"
    unit: str = ""


def export(document: Run | Comparison) -> Exported:
    """Return one text of all metrics of a run, or of all rows of a comparison."""
    if isinstance(document, Comparison):
        return Exported(files={"": _text(_of_comparison(document))})
    return Exported(files={"": _text(_of_run(document))})


# --- a run


def _of_run(run: Run) -> Iterable[_Family]:
    yield _Family(
        name="ci_perf_run",
        kind="info",
        help="The run that the other numbers are of.",
        samples=[(_facts(run), 1.0)],
    )
    yield _Family(
        name="ci_perf_run_start_time_seconds",
        unit="seconds",
        help="When the run began, since 1970.",
        samples=[({"suite": run.suite}, series.started_s(run))],
    )
    outcomes = {workload.workload: 0.0 for workload in run.measured}
    outcomes |= {workload.workload: 1.0 for workload in run.failed}
    yield _Family(
        name="ci_perf_workload_failed",
        help="1 for a workload that failed and has no numbers, else 0.",
        samples=[
            ({"suite": run.suite, "workload": name}, is_failed)
            for name, is_failed in outcomes.items()
        ],
    )
    by_metric: dict[str, list[Series]] = {}
    for of_metric in series.of_run(run):
        by_metric.setdefault(of_metric.metric.name, []).append(of_metric)
    for every in by_metric.values():
        yield _of_metric(
            every, "", "what stands for all launches", lambda of_metric: of_metric.centre
        )
        yield _of_metric(
            every, "lowest", "the lowest launch", lambda of_metric: min(of_metric.values)
        )
        yield _of_metric(
            every, "highest", "the highest launch", lambda of_metric: max(of_metric.values)
        )


def _of_metric(
    every: Sequence[Series], part: str, meaning: str, value: Callable[[Series], float]
) -> _Family:
    metric = every[0].metric
    end, unit, factor = _UNITS.get(metric.unit, ("", "", 1.0))
    return _Family(
        name=_joined("ci_perf", metric.name.removesuffix(end), part, unit),
        unit=unit,
        help=f"{metric.title}: {meaning}; {metric.better.value} is better.",
        samples=[(_of_series(of_metric), factor * value(of_metric)) for of_metric in every],
    )


def _of_series(of_metric: Series) -> _Labels:
    return {"suite": of_metric.suite, "workload": of_metric.workload.workload}


def _facts(run: Run) -> _Labels:
    return {
        "run": run.id,
        "suite": run.suite,
        "commit": run.source.commit,
        "branch": run.source.branch,
        "dirty": str(run.source.dirty).lower(),
        "machine": provenance.machine(run.environment.hard),
        "torch": run.environment.soft.torch,
        "validity": run.validity.status.value,
    }


# --- a comparison


def _of_comparison(judged: Comparison) -> Iterable[_Family]:
    suite = {"suite": judged.suite}
    yield _Family(
        name="ci_perf_comparison",
        kind="info",
        help="The comparison that the other numbers are of.",
        samples=[(suite | {"verdict": judged.verdict.value} | _sides(judged), 1.0)],
    )
    yield _Family(
        name="ci_perf_exit_code",
        help="What ci-perf ends with: 0 no regression, 1 regression, 3 no answer.",
        samples=[(suite, float(judged.exit_code))],
    )
    yield _Family(
        name="ci_perf_verdict",
        help="1 for the verdict of each row; a row without a metric is a whole workload.",
        samples=[
            (suite | _of_row(row) | {"verdict": row.verdict.value}, 1.0) for row in judged.rows
        ],
    )
    rows = [row for row in judged.rows if isinstance(row, Change)]
    yield _changes(rows, suite, "", "head over base, above 1 is worse", lambda row: row.ratio)
    yield _changes(
        rows,
        suite,
        "lowest",
        "the lower end of its interval",
        lambda row: row.interval.low if row.interval else None,
    )
    yield _changes(
        rows,
        suite,
        "highest",
        "the upper end of its interval",
        lambda row: row.interval.high if row.interval else None,
    )
    yield _changes(rows, suite, "limit", "what unchanged is below", lambda row: 1 + row.limit)


def _changes(
    rows: Iterable[Change],
    suite: _Labels,
    part: str,
    meaning: str,
    value: Callable[[Change], float | None],
) -> _Family:
    return _Family(
        name=_joined("ci_perf_change", part, "ratio"),
        unit="ratio",
        help=f"Change of a metric: {meaning}.",
        samples=[
            ({**suite, **_of_row(row)}, number)
            for row in rows
            if (number := value(row)) is not None
        ],
    )


def _of_row(row: Row) -> dict[str, str]:
    return {"workload": row.workload, "metric": str(phrases.metric(row))}


def _sides(judged: Comparison) -> dict[str, str]:
    sides = {"base": judged.base, "head": judged.head}
    commits = {f"{name}_commit": side.source.commit for name, side in sides.items()}
    return commits | {f"{name}_run": side.run for name, side in sides.items()}


# --- the text


def _text(families: Iterable[_Family]) -> bytes:
    lines = [line for family in families if family.samples for line in _lines(family)]
    return "\n".join([*lines, "# EOF", ""]).encode(errors="replace")


def _lines(family: _Family) -> Iterable[str]:
    yield f"# TYPE {family.name} {family.kind}"
    if family.unit:
        yield f"# UNIT {family.name} {family.unit}"
    yield f"# HELP {family.name} {family.help}"
    name = f"{family.name}_info" if family.kind == "info" else family.name
    for labels, value in family.samples:
        pairs = ",".join(f'{label}="{_escaped(text)}"' for label, text in labels.items())
        yield f"{name}{{{pairs}}} {value!r}"


def _escaped(text: str) -> str:
    line = escape.clean(text, limit=_MOST_CHARS)
    return line.replace("\\", r"\\").replace('"', r"\"")


def _joined(*parts: str) -> str:
    return "_".join(filter(None, parts))
