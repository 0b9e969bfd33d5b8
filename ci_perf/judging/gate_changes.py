"""Two plans of a suite in, and what the head changes about its own gate out. No limit is judged."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from types import MappingProxyType

import msgspec

from ci_perf.model import metrics
from ci_perf.model.comparison import Change, Row
from ci_perf.model.gate_change import BaselineEdit, GateChange, GateKind
from ci_perf.model.metrics import Better
from ci_perf.model.suite import FailOn, Limit, Limits, Plan, PlannedWorkload, find_limit

# What `fail_on` may say, the strictest first.
STRICTEST_FIRST: tuple[FailOn, ...] = ("unanswered", "likely", "proven", "never")
# What a step counts, whatever the machine: a tenth of it is another step, and no faster one.
_WORK = frozenset({metrics.OPERATORS.name, metrics.FLOPS.name})
_LESS_WORK = 0.1
# A setting that is longer is cut; the diff has the whole.
_MAX_CHARS = 500
_ORDER = list(GateKind)


def find(
    base: Plan | None,
    head: Plan | None,
    *,
    rows: Sequence[Row] = (),
    edits: Sequence[BaselineEdit] = (),
    own_files: Collection[str] = (),
    test_files: Collection[str] = (),
    unmeasured: Mapping[str, str] = MappingProxyType({}),
) -> tuple[GateChange, ...]:
    """Return what the head loosens, removes or replaces, the most serious first.

    Both plans are of the whole suite, made in the same way; `None` is a side without this suite: a
    base without one has no gate yet. `edits` are of the baselines of this suite. `own_files` names
    workloads of which the file differs, in addition to those of which `rows` say so; `test_files`
    are files of tests that differ. `unmeasured` are tests that the head lost, with the reasons.
    """
    limits = base.limits if base else None
    judged = [row for row in rows if isinstance(row, Change)]
    own = {row.workload for row in judged if row.own_file}
    changes = [
        *(change for edit in edits for change in _compare_baseline(edit, limits)),
        *(
            GateChange(
                kind=GateKind.LESS_WORK,
                workload=row.workload,
                name=row.metric,
                before=row.base,
                after=row.head,
            )
            for row in judged
            if row.metric in _WORK and row.base > 0 and row.head <= _LESS_WORK * row.base
        ),
        *(GateChange(kind=GateKind.OWN_FILE, workload=name) for name in own.union(own_files)),
        *(GateChange(kind=GateKind.OWN_FILE, name=file) for file in test_files),
        *(
            GateChange(kind=GateKind.REMOVED, workload=name, reason=why)
            for name, why in unmeasured.items()
        ),
        *(_compare_suites(base, head) if base else ()),
    ]
    return tuple(sorted(changes, key=lambda each: (_ORDER.index(each.kind), each.workload)))


# --- what suite.toml says


def _compare_suites(base: Plan, head: Plan | None) -> Iterator[GateChange]:
    if head is None:
        yield GateChange(kind=GateKind.SUITE, name=base.suite)
        return
    if STRICTEST_FIRST.index(base.fail_on) < STRICTEST_FIRST.index(head.fail_on):
        yield GateChange(kind=GateKind.FAIL_ON, before=base.fail_on, after=head.fail_on)
    yield from _different("", _describe_suite_settings(base), _describe_suite_settings(head))
    yield from _compare_tests(base, head)
    known = {workload.id: workload for workload in head.workloads}
    added = known.keys() - {workload.id for workload in base.workloads}
    for before in base.workloads:
        name = before.id
        if after := known.get(name):
            yield from _different(
                name, _describe_workload_settings(before), _describe_workload_settings(after)
            )
            yield from _compare_limits(name, base.limits.of(name), head.limits.of(name))
        elif other := [new for new in sorted(added) if _is_alike(before, known[new])]:
            yield GateChange(kind=GateKind.RENAMED, workload=name, after=other[0])
        else:
            yield GateChange(kind=GateKind.REMOVED, workload=name)


def _compare_tests(base: Plan, head: Plan) -> Iterator[GateChange]:
    """Compare the tables that collect tests; of the head, one with the same words is the same."""
    if base.tests and head.tests:
        yield from _compare_limits("", base.limits.default, head.limits.default)
    new = [table for table in head.tests if table not in base.tests]
    for before in (table for table in base.tests if table not in head.tests):
        name = " ".join((before.id, *before.collects))
        if not new:
            yield GateChange(kind=GateKind.REMOVED, workload=name[:_MAX_CHARS])
            continue
        after = next((table for table in new if table.collects == before.collects), new[0])
        new.remove(after)
        yield from _different(
            before.id, _describe_workload_settings(before), _describe_workload_settings(after)
        )


def _is_alike(base: PlannedWorkload, head: PlannedWorkload) -> bool:
    """Whether two workloads are the same file with the same parameters."""
    is_file_same = base.file.rpartition("/")[2] == head.file.rpartition("/")[2]
    return is_file_same and base.parameters == head.parameters


def _compare_limits(
    workload: str, base: Mapping[str, Limit], head: Mapping[str, Limit]
) -> Iterator[GateChange]:
    """Compare the limits of the metrics that gate; a metric without a limit does not."""
    for name in sorted(base.keys() | head.keys()):
        old = find_limit(base, name) or Limit(gate=False)
        new = find_limit(head, name) or Limit(gate=False)
        if old.gate and not new.gate:
            yield GateChange(kind=GateKind.GATE, workload=workload, name=name)
        elif old.require and not new.require:
            yield GateChange(kind=GateKind.REQUIRE, workload=workload, name=name)
        elif old.gate and (old.relative < new.relative or old.absolute < new.absolute):
            kind = GateKind.LIMIT
            yield GateChange(kind=kind, workload=workload, name=name, before=old, after=new)


def _describe_suite_settings(plan: Plan) -> dict[str, str]:
    """Return what decides, for all workloads, which code is launched and in what."""
    top = {"python_path": plan.python_path, "canaries": plan.canaries}
    tables = {"setup": plan.setup, "environment": plan.tiers, "container": plan.container}
    return _settings({"": top, **tables})


def _describe_workload_settings(workload: PlannedWorkload) -> dict[str, str]:
    top = {"launch": workload.launch, "inputs": workload.inputs, "collects": workload.collects}
    return _settings({"": top, "parameters": workload.parameters, "protocol": workload.protocol})


def _settings(tables: Mapping[str, object]) -> dict[str, str]:
    """Spell the settings of tables as TOML does: text in quotes, so that "1" is not 1."""
    return {
        f"{table}.{name}".lstrip("."): msgspec.json.encode(value).decode()
        for table, settings in tables.items()
        for name, value in msgspec.to_builtins(settings).items()
    }


def _different(
    workload: str, base: Mapping[str, str], head: Mapping[str, str]
) -> Iterator[GateChange]:
    kind = GateKind.SETTING
    for name in sorted(base.keys() | head.keys()):
        old, new = base.get(name, ""), head.get(name, "")
        if old != new:
            before, after = old[:_MAX_CHARS], new[:_MAX_CHARS]
            yield GateChange(kind=kind, workload=workload, name=name, before=before, after=after)


# --- what else judges, and what is judged


def _compare_baseline(edit: BaselineEdit, limits: Limits | None) -> Iterator[GateChange]:
    """Say which losses of a workload a baseline brings along, or what of it is gone."""
    workload, kind = edit.workload, GateKind.ACCEPTED
    if edit.before and not edit.after:
        yield GateChange(kind=GateKind.BASELINE, workload=workload)
    known = limits.of(workload) if limits else {}
    for name in sorted(edit.before.keys() & {*edit.accepted}):
        old, new = edit.before[name], edit.after.get(name, "gone")
        is_lost = isinstance(new, str) or _is_worse(name, old, new)
        if is_lost and (find_limit(known, name) or Limit()).gate:
            yield GateChange(
                kind=kind, workload=workload, name=name, before=old, after=new, reason=edit.reason
            )


def _is_worse(name: str, before: float, after: float) -> bool:
    is_higher_better = metrics.metric_of(name).better is Better.HIGHER
    return after < before if is_higher_better else after > before
