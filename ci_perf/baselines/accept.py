"""Decide what a run changes in the baselines, refuse bad runs, and write the files that change."""

import datetime as dt
import statistics
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

import msgspec

from ci_perf.baselines import layout
from ci_perf.errors import RefusedError, UsageError
from ci_perf.judging import canaries, comparability, launch_numbers, metric_values
from ci_perf.model import codec, metrics
from ci_perf.model.baseline import Baseline, RecordedSession
from ci_perf.model.comparison import (
    Change,
    Code,
    Comparison,
    Numerics,
    Row,
    Uncompared,
    Verdict,
)
from ci_perf.model.process import Fingerprint
from ci_perf.model.program import Program
from ci_perf.model.run import Measured, Run
from ci_perf.model.suite import is_selected
from ci_perf.model.summary import Numbers
from ci_perf.model.validity import HostEvidence, Status

# Clocks of two machines differ by seconds, or by hours where one takes local time for UTC.
_CLOCK_TOLERANCE = dt.timedelta(days=1)
# A sentence or two for the reviewer of the diff; more belongs into the commit message.
MAX_REASON_CHARS = 500
# The number of a process comes from one of its blocks, mostly the middle one. Where tasks waited
# for more than half of the timed region, the middle block was disturbed as well, and the number
# says how busy the machine was.
HEAVY_PRESSURE = 0.5


class Mode(Enum):
    """What happens to a baseline that the run does not differ from."""

    KEEP = "keep"  # left as it is, to the byte
    APPEND = "append"  # this session joins its history
    REPLACE = "replace"  # this session becomes its only one


class Action(Enum):
    """What happens to one file."""

    CREATED = "created"
    REPLACED = "replaced"  # its history begins anew: the old numbers cannot be compared
    NEW_EPOCH = "moved on"  # this session begins a new epoch of some metrics
    APPENDED = "appended"  # this session joins every current epoch
    KEPT = "kept"
    REMOVED = "removed"  # no workload of the suite has this name any more


# What a judge says of a metric whose epoch is over, if somebody accepts it.
_PROVEN = frozenset({Verdict.REGRESSED, Verdict.IMPROVED})
# The same, where a person accepts the run rather than collects it.
_SUSPECTED = frozenset({Code.HISTORY_ALONE, Code.OTHER_PACKAGES})
_FOLLOWERS = frozenset({metrics.STEP_P95.name, metrics.FIRST_STEP.name})
_JOINS = frozenset({Action.NEW_EPOCH, Action.APPENDED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Acceptance:
    """What accepting a run does to the baseline of one workload.

    ``before`` and ``after`` are headlines; ``before`` may be empty. ``began`` names the metrics of
    which a new epoch begins. ``program`` is the record of what was measured, if the run has one.
    """

    workload: str
    path: Path
    action: Action
    before: Numbers
    after: Numbers
    began: tuple[str, ...]
    changed_numerics: bool
    baseline: Baseline
    program: Program | None


def prepare(
    root: Path,
    run: Run,
    comparison: Comparison,
    *,
    workloads: Sequence[str] = (),
    reason: str = "",
    mode: Mode = Mode.KEEP,
    force: bool = False,
    until: str = "",
    now: Callable[[], dt.datetime] = lambda: dt.datetime.now(dt.UTC),
) -> tuple[Acceptance, ...]:
    """Say what accepting `run` does to the files below `root`; writes nothing.

    Raises RefusedError (invalid or failed run, a start that lies in the future, a machine under
    heavy pressure unless `force`) and UsageError (no such workload in the run, a worse number
    without a reason, a day `until` which a loss cannot be accepted).
    """
    if len(reason) > MAX_REASON_CHARS:
        raise UsageError(
            f"--reason: expected at most {MAX_REASON_CHARS} characters, found {len(reason)}"
        )
    if until:
        _refuse_bad_day(until, reason, now().date())
    run.refuse_experiment(f"run {run.id}")
    chosen = _choose_workloads(run, tuple(workloads))
    rows: dict[str, list[Row]] = {}
    for row in comparison.rows:
        rows.setdefault(row.workload, []).append(row)
    _refuse_invalid(run)
    _refuse_future(run, now())
    _refuse_failed(run, tuple(workloads))
    accepted = tuple(
        _accept_one(root, run, workload, rows.get(workload.workload, []), reason, mode, until)
        for workload in chosen
    )
    if until and not any(until in each.baseline.sessions[-1].until.values() for each in accepted):
        raise UsageError(
            f"--until {until}: expected a metric that begins a new epoch, found none; to move the "
            "day of a loss that is accepted already, add --append"
        )
    if not reason.strip():
        _refuse_without_reason(accepted, rows)
    if not force and any(acceptance.action is not Action.KEPT for acceptance in accepted):
        _refuse_pressure(run)
    return accepted


def find_orphans(root: Path, suite: str, workloads: Collection[str]) -> tuple[Acceptance, ...]:
    """Return the removal of each file below `root` of which the suite has no workload any more."""
    return tuple(
        Acceptance(
            workload=baseline.workload,
            path=layout.path(root, baseline.machine, suite, baseline.workload),
            action=Action.REMOVED,
            before=baseline.headline,
            after={},
            began=(),
            changed_numerics=False,
            baseline=baseline,
            program=None,
        )
        for baseline in layout.read_everything(root, suite)
        if baseline.workload not in workloads
    )


def write(root: Path, accepted: Sequence[Acceptance]) -> None:
    """Write the files that change, and remove those that nobody needs any more."""
    for acceptance in accepted:
        if acceptance.action is Action.REMOVED:
            acceptance.path.unlink()
            layout.program_file(acceptance.path).unlink(missing_ok=True)
        elif acceptance.action is not Action.KEPT:
            file = layout.write(root, acceptance.baseline)
            if acceptance.program is not None:
                layout.write_program(layout.program_file(file), acceptance.program)


def _choose_workloads(run: Run, names: tuple[str, ...]) -> list[Measured]:
    known = [w.workload for w in run.measured] + [f.workload for f in run.failed]
    for name in names:
        if not any(is_selected(workload, (name,)) for workload in known):
            hint = codec.did_you_mean(name, known)
            raise UsageError(f"run {run.id} has no workload {name!r}; {hint}")
    return [workload for workload in run.measured if is_selected(workload.workload, names)]


def _refuse_invalid(run: Run) -> None:
    if run.validity.status is Status.INVALID:
        reasons = "; ".join(f"{r.code}: {r.detail}" for r in run.validity.reasons)
        raise RefusedError(
            f"run {run.id}: expected a valid run, found an invalid one ({reasons}); "
            "measure again: a baseline is never written from an invalid run"
        )


def _refuse_future(run: Run, now: dt.datetime) -> None:
    """Refuse a session that would stay the newest of its history until its date has come."""
    latest = (now + _CLOCK_TOLERANCE).isoformat(timespec="seconds").replace("+00:00", "Z")
    if run.started_at > latest:
        raise RefusedError(
            f"run {run.id}: expected a start before now ({now:%Y-%m-%d %H:%M} UTC), found "
            f"{run.started_at}; set the clock of the machine that measured, and measure again"
        )


def _refuse_failed(run: Run, names: tuple[str, ...]) -> None:
    failed = [f for f in run.failed if is_selected(f.workload, names)]
    if failed:
        listed = "; ".join(f"{f.workload}: {f.reason}" for f in failed)
        raise RefusedError(
            f"run {run.id}: expected every workload measured, found {len(failed)} failed "
            f"({listed}); fix them, or accept the others by name with --workload"
        )


def heavy_pressure(run: Run) -> str:
    """Say what pressure the median process met, if it was heavy; else an empty string.

    The median, because a single workload may keep all CPUs busy by itself.
    """
    shares = [f"{what} {share:.0%} of the timed region" for what, share in _shares(run)]
    return " and ".join(shares)


def _refuse_pressure(run: Run) -> None:
    if pressure := heavy_pressure(run):
        raise RefusedError(
            f"run {run.id}: the machine was too busy: {pressure} (median of the processes of all "
            f"workloads, expected at most {HEAVY_PRESSURE:.0%}); measure again when the machine is "
            "quiet (`ci-perf run --wait 10m`), or accept these numbers with `--force`"
        )


def _shares(run: Run) -> Iterator[tuple[str, float]]:
    """Yield what took a heavy share of the timed region, and the share."""
    hosts = list(_hosts(run))
    # Ranks that end a step together wait for a CPU without anybody else's fault.
    alone = list(_hosts(run, world_size=1))
    seen = {
        "tasks waited for a CPU": [host.cpu_pressure for host in alone],
        "tasks waited for memory": [host.memory_pressure for host in hosts],
        "the CPU quota took": [_find_throttled_share(host) for host in hosts],
    }
    for what, shares in seen.items():
        known = [share for share in shares if share is not None]
        if known and statistics.median(known) > HEAVY_PRESSURE:
            yield what, statistics.median(known)


def _hosts(run: Run, *, world_size: int | None = None) -> Iterator[HostEvidence]:
    for workload in run.measured:
        if world_size in {None, workload.world_size}:
            for process in workload.processes:
                if process.evidence is not None:
                    yield process.evidence.host


def _find_throttled_share(host: HostEvidence) -> float | None:
    if host.throttled_s is None or not host.wall_s:
        return None
    return host.throttled_s / host.wall_s


def _refuse_without_reason(
    accepted: Sequence[Acceptance], rows: Mapping[str, Sequence[Row]]
) -> None:
    """Refuse to leave a baseline behind for a worse number, or for one that cannot be compared.

    A number that no longer stands for the same thing may hide any loss, so it counts as well.
    """
    changed = [a for a in accepted if a.action is not Action.KEPT]
    unexplained = [
        _spell(row) for a in changed for row in rows.get(a.workload, []) if _needs_reason(row, a)
    ]
    if unexplained:
        raise UsageError(
            "expected a reason for every number that gets worse or loses its history, found none "
            f'for: {", ".join(unexplained)}; say why with --reason "…": it is kept in the baseline'
        )


def _needs_reason(row: Row, accepted: Acceptance) -> bool:
    if accepted.action is Action.CREATED:
        # There is no history: the pairs with the base have said so.
        return isinstance(row, Change) and row.gate and row.verdict is Verdict.REGRESSED
    if isinstance(row, Change):
        is_worse = row.verdict is Verdict.REGRESSED or (row.ratio is not None and row.ratio > 1)
        return row.gate and is_worse and row.metric in accepted.began
    if isinstance(row, Numerics):
        # Without a gate, `--append` adds other numerics, and the speed keeps its history.
        return row.gate and row.code is Code.BEYOND_LIMIT
    # A history that does not compare is left behind, also where pairs have judged this run.
    return (row.gate and row.code is Code.MISSING) or row.code is Code.NOT_COMPARABLE


def _spell(row: Row) -> str:
    if isinstance(row, Numerics):
        return f"{row.workload} ({row.verdict.value.replace('_', ' ')})"
    if not isinstance(row, Change):
        return f"{row.workload} ({row.note or f'{row.code}: {row.metric}'})"
    if row.ratio is None:
        return f"{row.workload} {row.metric} {row.base:g} → {row.head:g}"
    return f"{row.workload} {row.metric} {row.ratio - 1:+.1%}"


def _refuse_bad_day(until: str, reason: str, today: dt.date) -> None:
    """Refuse what is no day to come, and an acceptance for a time that nobody explains."""
    try:
        is_day = dt.date.fromisoformat(until).isoformat() == until
    except ValueError:
        is_day = False
    if not is_day or until < today.isoformat():
        raise UsageError(f"--until: expected {today} (today) or a later day, found {until!r}")
    if not reason.strip():
        raise UsageError('--until accepts a loss for a time: say why with --reason "…"')


def _accept_one(
    root: Path, run: Run, workload: Measured, rows: list[Row], reason: str, mode: Mode, until: str
) -> Acceptance:
    path = layout.path(root, run.environment.hard, run.suite, workload.workload)
    before = layout.read(path) if path.exists() else None
    moved = _with_followers([name for row in rows if (name := _find_moved_metric(row, mode))], rows)
    action = _action(before, run, rows, moved, mode)
    history = before.sessions if before and action in _JOINS else ()
    began = tuple(sorted(moved)) if action in _JOINS else ()
    session = _session(run, workload, reason, _epochs(history, began))
    session = msgspec.structs.replace(session, until=_find_days(history, began, session, until))
    if before and action is Action.KEPT:
        after = before
    else:
        after = _baseline(run, workload, layout.newest_sessions((*history, session)))
    return Acceptance(
        workload=workload.workload,
        path=path,
        action=action,
        before=before.headline if before else {},
        after=after.headline,
        began=began,
        changed_numerics=any(row.verdict is Verdict.NUMERICS_CHANGED for row in rows),
        baseline=after,
        program=next((p for p in run.programs if p.workload == workload.workload), None),
    )


def _action(
    before: Baseline | None, run: Run, rows: list[Row], moved: Sequence[str], mode: Mode
) -> Action:
    if before is None:
        return Action.CREATED
    if any(session.run == run.id for session in before.sessions):
        # Accepted already: doing it again must change nothing.
        is_whole_history = mode is not Mode.REPLACE or len(before.sessions) == 1
        return Action.KEPT if is_whole_history else Action.REPLACED
    if mode is Mode.REPLACE or any(row.code is Code.NOT_COMPARABLE for row in rows):
        return Action.REPLACED
    if mode is Mode.APPEND or any(_asks_for_it(row) for row in rows):
        has_begun = any(name != metrics.FINGERPRINT for name in moved)
        return Action.NEW_EPOCH if has_begun else Action.APPENDED
    return Action.KEPT


def _asks_for_it(row: Row) -> bool:
    """Whether a row that gates shows that the baseline no longer describes this run."""
    if isinstance(row, Uncompared) and row.head and not row.base:
        return True  # it gets its first number
    return row.gate and bool(_find_moved_metric(row, Mode.KEEP))


def _find_moved_metric(row: Row, mode: Mode) -> str:
    """Return the metric whose old values describe another speed than this run's; else nothing.

    A suspected change counts where a person says "this is the new baseline". Where sessions are
    only collected, it is how sessions differ, and a history shows just that.
    """
    if isinstance(row, Numerics):
        # Numerics that vary from process to process would differ from any baseline.
        return metrics.FINGERPRINT if row.code is Code.BEYOND_LIMIT else ""
    if isinstance(row, Change):
        is_suspected = row.verdict is Verdict.LIKELY_SLOWER or row.code in _SUSPECTED
        is_meant = is_suspected and mode is Mode.KEEP
        return row.metric if row.verdict in _PROVEN or is_meant else ""
    return row.metric if row.gate and row.code is Code.MISSING else ""


def _with_followers(moved: Sequence[str], rows: Iterable[Row]) -> list[str]:
    """Return the metrics that have moved; tail and first step move with the time of a step.

    Nothing proves that of them, and their old values would stay in their headlines.
    """
    measured = {row.metric for row in rows if isinstance(row, Change)}
    follows = _FOLLOWERS & measured if metrics.STEP_TIME.name in moved else frozenset()
    return [*moved, *sorted(follows.difference(moved))]


def _epochs(history: Sequence[RecordedSession], began: Sequence[str]) -> dict[str, int]:
    """Return the epoch of each metric from this session on; 0 stays unwritten."""
    known = {name for session in history for name in session.epochs}
    return {
        name: metric_values.current_epoch(history, name) + (name in began)
        for name in sorted({*known, *began})
    }


def _find_days(
    history: Sequence[RecordedSession], began: Sequence[str], session: RecordedSession, until: str
) -> dict[str, str]:
    """Return the last day of each accepted loss from this session on.

    An improvement, which needs no reason, does not make a loss accepted for good.
    """
    days = dict(history[-1].until) if history else {}
    if until:
        whole = () if history else (metric.name for metric in metric_values.find_judged([session]))
        return dict.fromkeys(sorted({*days, *began, *whole}), until)
    return {name: day for name, day in days.items() if not (session.reason and name in began)}


def _session(run: Run, workload: Measured, reason: str, epochs: dict[str, int]) -> RecordedSession:
    session = next(each for each in run.sessions if workload.workload in each.workloads)
    return RecordedSession(
        recorded_at=session.started_at,
        source=run.source,
        run=run.id,
        node=session.node,
        launch_s=launch_numbers.launch_s(workload),
        reason=reason.strip(),
        epochs=epochs,
        tool_version=run.tool.version,
        soft=session.soft,
        canaries=layout.round_numbers(canaries.readings(session.canaries)),
        fingerprint=_fingerprint(workload),
        processes=tuple(
            layout.round_numbers(process_numbers)
            for process_numbers in launch_numbers.list_workload_numbers(workload, run)
        ),
    )


def _fingerprint(workload: Measured) -> Fingerprint | None:
    """Return the first process's fingerprint; `None` where the workload computes no numbers."""
    fingerprints = (process.fingerprint for process in workload.processes)
    first = next(filter(comparability.numeric_values, fingerprints), None)
    return layout.round_fingerprint(first) if first else None


def _baseline(run: Run, workload: Measured, history: tuple[RecordedSession, ...]) -> Baseline:
    baseline = Baseline(
        headline={},
        workload=workload.workload,
        suite=run.suite,
        parameters=dict(sorted(workload.parameters.items())),
        items_per_step=workload.items_per_step,
        item_unit=workload.item_unit,
        statistic=workload.protocol.statistic,
        threads=workload.describe_threads(),
        machine=run.environment.hard,
        sessions=history,
    )
    return layout.with_headline(baseline)
