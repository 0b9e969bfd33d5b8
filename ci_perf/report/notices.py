"""What to know before the table: who moved, where it was not this change."""

from collections.abc import Iterable

from ci_perf.errors import ExitCode
from ci_perf.model.comparison import Change, Comparison, Drifted, Severity, Stale, severity_of
from ci_perf.model.metrics import Unit
from ci_perf.report import differences, remarks, words
from ci_perf.report.escape import Words
from ci_perf.report.words import Phrase

# What fails a job by itself.
_PROVES = frozenset({Severity.REGRESSED, Severity.NUMERICS_CHANGED, Severity.NUMERICS_VARY})
_DATE = len("2026-11-21")


def of(comparison: Comparison) -> list[Phrase]:
    """Say who moved, why nothing proven fails the job, and what else differs."""
    said = (
        _fails_unproven(comparison),
        _cleared(comparison),
        _drifted(comparison.drifted),
        *differences.of(comparison),
    )
    return [phrase for phrase in said if phrase]


def _fails_unproven(comparison: Comparison) -> Phrase:
    """Explain a red job without a culprit: only `fail_on` can ask for that."""
    if comparison.exit_code != ExitCode.REGRESSED:
        return ()
    if any(row.gate and severity_of(row) in _PROVES for row in comparison.rows):
        return ()
    return (Words("⚠️ Nothing is proven: `fail_on` asks that the job fails all the same."),)


def _cleared(comparison: Comparison) -> Phrase:
    """Name the suspects that pairs cleared: they must not drown among the unchanged."""
    rows = [
        row
        for row in comparison.rows
        if isinstance(row, Change) and row.gate and row.code == remarks.NOT_CONFIRMED
    ]
    if comparison.stale is not None:
        return _stale(comparison.stale, rows)
    if not rows:
        return ()
    many = len(rows) != 1
    opening = (
        f"ℹ️ {len(rows):,} suspect{'s differ' if many else ' differs'} from "  # noqa: RUF001  an icon, not an i
        f"{'their' if many else 'its'} history, and not from the base that was launched beside "
        f"{'them' if many else 'it'}: "
    )
    return (
        Words(opening),
        *words.joined(map(_moved, _furthest_first(rows))),
        Words(". The machine or the baseline moved, not this change."),
    )


def _stale(found: Stale, rows: list[Change]) -> Phrase:
    """Say that they all moved in one direction, which no single suspect shows."""
    cleared = max(found.cleared, len(rows))
    which = "all of them" if cleared == found.cleared else f"{found.cleared:,} of them"
    opening = (
        f"⚠️ {cleared:,} of {found.suspects:,} suspects do not differ from the base that was "
        f"launched beside them, and {which} moved alike: {_direction(found, rows)} than in the "
        f"history ({words.moved('', found.ratio)}, typically). The machine or the baseline has "
        "moved, not this change"
    )
    if not rows:
        return (Words(f"{opening}."),)
    return (
        Words(f"{opening}: "),
        *words.joined(map(_moved, _furthest_first(rows))),
        Words("."),
    )


def _direction(found: Stale, rows: Iterable[Change]) -> str:
    """Name the direction; only times are slow."""
    is_time = all(words.unit(row.metric) is Unit.SECOND for row in rows)
    if found.ratio > 1:
        return "slower" if is_time else "worse"
    return "faster" if is_time else "better"


def _furthest_first(rows: Iterable[Change]) -> list[Change]:
    return sorted(rows, key=lambda row: -abs((row.drift or 1.0) - 1))


def _moved(row: Change) -> Phrase:
    return (*words.titled(row), Words(remarks.drift(row)))


def _drifted(found: tuple[Drifted, ...]) -> Phrase:
    """Say that main itself is no longer where its baseline began."""
    if not found:
        return ()
    return (
        Words("⚠️ Main itself has drifted away from its baseline, in steps too small to be seen: "),
        *words.joined(map(_drift, found)),
        Words("."),
    )


def _drift(one: Drifted) -> Phrase:
    return (
        one.workload,
        Words(" "),
        words.metric_title(one.metric),
        Words(f" {words.moved(one.metric, one.ratio)} over {one.sessions:,} sessions since "),
        one.since[:_DATE],
    )
