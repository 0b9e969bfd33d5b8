"""Two plans of a suite in, and what the head changes about its own gate out. No limit is judged."""

from collections.abc import Collection, Iterator, Mapping, Sequence

import msgspec

from ci_perf.model import metrics
from ci_perf.model.comparison import Change, Row
from ci_perf.model.gate_change import BaselineEdit, GateChange, GateChangeKind
from ci_perf.model.metrics import Better
from ci_perf.model.suite import FailOn, Limit, Limits, Plan, PlannedWorkload

# What `fail_on` may say, the strictest first.
STRICTEST_FIRST: tuple[FailOn, ...] = ("inconclusive", "unconfirmed", "regressed", "never")
# What a step counts, whatever the machine: a tenth of it is another step, and no faster one.
_WORK = frozenset({metrics.OPERATORS.name, metrics.FLOPS.name})
_LESS_WORK = 0.1
# A setting that is longer is cut; the diff has the whole.
_MAX_CHARS = 500
_ORDER = list(GateChangeKind)


def find(
    base: Plan | None,
    head: Plan | None,
    *,
    rows: Sequence[Row] = (),
    edits: Sequence[BaselineEdit] = (),
    own_files: Collection[str] = (),
) -> tuple[GateChange, ...]:
    """Return what the head loosens, removes or replaces, the most serious first.

    Both plans are of the whole suite, made in the same way; `None` is a side without this suite: a
    base without one has no gate yet. `edits` are of the baselines of this suite. `own_files` names
    workloads of which the file differs, in addition to those of which `rows` say so.
    """
    limits = base.limits if base else None
    own = {row.workload for row in rows if isinstance(row, Change) and row.own_file}
    changes = [
        *(change for edit in edits for change in _of_baseline(edit, limits)),
        *_less_work(rows),
        *(GateChange(kind=GateChangeKind.OWN_FILE, workload=name) for name in own.union(own_files)),
    ]
    if base is not None:
        changes += _of_suite(base, head)
    return tuple(sorted(changes, key=lambda each: (_ORDER.index(each.kind), each.workload)))


# --- what suite.toml says


def _of_suite(base: Plan, head: Plan | None) -> Iterator[GateChange]:
    if head is None:
        yield GateChange(kind=GateChangeKind.SUITE_REMOVED, name=base.suite)
        return
    if STRICTEST_FIRST.index(base.fail_on) < STRICTEST_FIRST.index(head.fail_on):
        yield GateChange(kind=GateChangeKind.FAIL_ON, before=base.fail_on, after=head.fail_on)
    yield from _different(GateChangeKind.SETTINGS, "", _settings(base), _settings(head))
    known = {workload.id: workload for workload in head.workloads}
    added = [workload for name, workload in known.items() if name not in _ids(base)]
    for workload in base.workloads:
        if after := known.get(workload.id):
            yield from _of_workload(workload, after)
            yield from _of_limits(workload.id, base, head)
        else:
            yield _gone(workload, added)


def _ids(plan: Plan) -> frozenset[str]:
    return frozenset(workload.id for workload in plan.workloads)


def _gone(workload: PlannedWorkload, added: Sequence[PlannedWorkload]) -> GateChange:
    """Say that a workload has another name now, or is not there."""
    program = _program(workload)
    for other in added:
        if _program(other) == program:
            kind = GateChangeKind.WORKLOAD_RENAMED
            return GateChange(kind=kind, workload=workload.id, after=other.id)
    return GateChange(kind=GateChangeKind.WORKLOAD_REMOVED, workload=workload.id)


def _program(workload: PlannedWorkload) -> tuple[object, ...]:
    return workload.file.rpartition("/")[2], workload.parameters, workload.launch


def _of_workload(base: PlannedWorkload, head: PlannedWorkload) -> Iterator[GateChange]:
    before, after = ({**each.parameters, "launch": each.launch} for each in (base, head))
    yield from _different(GateChangeKind.PARAMETERS, base.id, before, after)
    asked, asks = (msgspec.structs.asdict(each.protocol) for each in (base, head))
    yield from _different(GateChangeKind.PROTOCOL, base.id, asked, asks)


def _of_limits(workload: str, base: Plan, head: Plan) -> Iterator[GateChange]:
    """Compare the limits of the metrics that gate; a metric without a limit does not."""
    after = head.limits.of(workload)
    for name, old in base.limits.of(workload).items():
        new = after.get(name, Limit(gate=False))
        if not old.gate:
            continue
        if not new.gate:
            yield GateChange(kind=GateChangeKind.GATE_OFF, workload=workload, name=name)
        elif old.relative < new.relative or old.absolute < new.absolute:
            yield GateChange(
                kind=GateChangeKind.LIMIT_RAISED,
                workload=workload,
                name=name,
                before=old,
                after=new,
            )


def _settings(plan: Plan) -> dict[str, object]:
    """Return what decides, for all workloads, which code is launched and in what."""
    tables = {"setup": plan.setup, "environment": plan.tiers, "container": plan.container}
    settings: dict[str, object] = {
        f"{table}.{name}": value
        for table, struct in tables.items()
        for name, value in msgspec.structs.asdict(struct).items()
    }
    return {**settings, "python_path": plan.python_path, "canaries": plan.canaries}


def _different(
    kind: GateChangeKind, workload: str, base: Mapping[str, object], head: Mapping[str, object]
) -> Iterator[GateChange]:
    for name in sorted(base.keys() | head.keys()):
        before, after = (_spelled(side[name]) if name in side else "" for side in (base, head))
        if before != after:
            yield GateChange(kind=kind, workload=workload, name=name, before=before, after=after)


def _spelled(value: object) -> str:
    """Spell a value as TOML does: text in quotes, so that "1" is not 1."""
    return msgspec.json.encode(value).decode()[:_MAX_CHARS]


# --- what else judges, and what is judged


def _of_baseline(edit: BaselineEdit, limits: Limits | None) -> Iterator[GateChange]:
    """Say which losses of a workload a baseline brings along, or that it is gone."""
    workload = edit.workload
    if edit.before and not edit.after:
        yield GateChange(kind=GateChangeKind.BASELINE_REMOVED, workload=workload)
    for name in edit.accepted:
        before, after = edit.before.get(name), edit.after.get(name)
        gates = limits is None or limits.of(workload).get(name, Limit(gate=False)).gate
        if gates and before is not None and after is not None and _is_worse(name, before, after):
            yield GateChange(
                kind=GateChangeKind.ACCEPTED,
                workload=workload,
                name=name,
                before=before,
                after=after,
                reason=edit.reason,
            )


def _is_worse(name: str, before: float, after: float) -> bool:
    metric = metrics.BY_NAME.get(name)
    is_higher_better = metric is not None and metric.better is Better.HIGHER
    return after < before if is_higher_better else after > before


def _less_work(rows: Sequence[Row]) -> Iterator[GateChange]:
    for row in rows:
        if not isinstance(row, Change) or row.metric not in _WORK or not row.base:
            continue
        if row.head <= _LESS_WORK * row.base:
            yield GateChange(
                kind=GateChangeKind.LESS_WORK,
                workload=row.workload,
                name=row.metric,
                before=row.base,
                after=row.head,
            )
