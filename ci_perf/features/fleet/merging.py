"""Runs of several nodes and their plan in, one run per class of machines out. No files, no clock.

What no plan names, and what two runs claim, is refused: nobody could say what of it is judged. What
is planned and was measured by nobody is a failed workload: it never disappears.
"""

import hashlib
import math
import typing
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import msgspec

from ci_perf.errors import InvalidFileError
from ci_perf.features.fleet.work_plan import DETAIL_CHARS, WorkPlan, WorkUnit
from ci_perf.judging import compare, summarise
from ci_perf.model.base import LARGEST, MOST_SECONDS
from ci_perf.model.environment import CpuMachine, Environment, Noted, Software, is_same
from ci_perf.model.process import Phase
from ci_perf.model.run import (
    Checks,
    Earlier,
    Failed,
    Interleaved,
    Run,
)
from ci_perf.model.suite import Limits, Protocol, Tiers
from ci_perf.model.summary import Summary
from ci_perf.model.validity import Reason, validity_of

_NODE_CHARS = 12
# Why a node launched no more pairs: of several reasons, the first one.
_WORST_FIRST = ("interrupted", "budget", "proven", "decided")


class _Part(typing.Protocol):
    """Any part of a run that is about one workload."""

    @property
    def workload(self) -> str: ...


_P = TypeVar("_P", bound=_Part)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardRun:
    """A run of one unit, and a label (a path, mostly) that begins every message about it."""

    label: str
    run: Run


def merge(
    plan: WorkPlan, shards: Iterable[ShardRun], *, lost: Mapping[str, str] | None = None
) -> dict[str | None, Run]:
    """Merge the runs of a plan, in any order, into one per class of machines.

    `lost` says, by unit, why it brought no result. Pairs keep the number of suspects that their
    nodes have counted, added up: who knows the baselines counts anew. Raises InvalidFileError: a
    run of another commit, suite, version or class, an unplanned workload, or one measured twice.
    """
    by_class: dict[str | None, list[ShardRun]] = {name: [] for name in plan.classes()}
    measured_by: dict[tuple[str | None, str], ShardRun] = {}
    # By id, so that the order in which files are named changes nothing.
    for shard in sorted(shards, key=lambda shard: (shard.run.started_at, shard.run.id)):
        unit = check(plan, shard)
        machine_class = unit.machine_class if unit else None
        for name in shard.run.workloads():
            other = measured_by.setdefault((machine_class, name), shard)
            if other is not shard:
                raise InvalidFileError(
                    f"{shard.label}: expected workload {name!r} from one node, found it in "
                    f"{other.label} as well; leave one of the runs out"
                )
        by_class[machine_class].append(shard)
    return {
        name: _merge_shards(plan, name, placed, lost or {}) for name, placed in by_class.items()
    }


def with_suspects(run: Run, base: Summary, *, limits: Limits, tiers: Tiers) -> Run:
    """Return a merged run with its suspects counted anew, as one session counts them.

    That is before the first pair, over all workloads: they share the chance of a false alarm.
    """
    how = run.interleaved
    if how is None:
        return run
    alone = msgspec.structs.replace(run, paired=(), profiled=())
    head = summarise.run(alone, label="")
    suspects = compare.count_suspects(base, head, limits=limits, tiers=tiers)
    most = max([suspects, *(earlier.suspects for earlier in run.earlier)])
    return msgspec.structs.replace(run, interleaved=msgspec.structs.replace(how, suspects=most))


# --- what is refused


def check(plan: WorkPlan, shard: ShardRun) -> WorkUnit | None:
    """Return the unit that a run has measured; `None` where it names none, and there is one class.

    Raises InvalidFileError: the run is not of this plan.
    """
    shard.run.refuse_experiment(shard.label)
    _check_source(plan, shard)
    unit = _unit_of(plan, shard)
    planned = set(unit.workloads if unit else plan.workloads(None))
    for name in shard.run.workloads():
        if name not in planned:
            whose = f"unit {unit.id!r}" if unit else "the plan"
            raise InvalidFileError(f"{shard.label}: expected workloads of {whose}, found {name!r}")
    return unit


def _check_source(plan: WorkPlan, shard: ShardRun) -> None:
    run = shard.run
    if why := plan.find_difference(
        commit=run.source.commit, version=run.tool.version, suite=run.suite
    ):
        raise InvalidFileError(f"{shard.label}: {why}; merge runs of one plan")
    if run.merged_from:
        raise InvalidFileError(f"{shard.label}: expected the run of one node, found a merged run")
    if plan.against and run.interleaved is None and (run.measured or run.failed):
        raise InvalidFileError(
            f"{shard.label}: expected pairs against {plan.against!r}, as in the plan, found none; "
            "measure with `ci-perf fleet plan --against`"
        )
    if run.interleaved is not None and not plan.against:
        raise InvalidFileError(
            f"{shard.label}: expected no pairs, as the plan has no base, found some against "
            f"{run.interleaved.ref!r}; plan with --against"
        )


def _unit_of(plan: WorkPlan, shard: ShardRun) -> WorkUnit | None:
    """Return the unit that a run names; one that names none may only be of the only class."""
    units = {unit.id: unit for unit in plan.units}
    if shard.run.unit in units:
        return units[shard.run.unit]
    if shard.run.unit or plan.classes() != (None,):
        known = ", ".join(unit.id for unit in plan.units[:20])
        raise InvalidFileError(
            f"{shard.label}: expected a unit of the plan ({known}), found "
            f"{shard.run.unit or 'none'!r}; measure with `ci-perf fleet measure`"
        )
    return None


def _check_machine(shards: Sequence[ShardRun]) -> None:
    """Refuse runs of machines that cannot be compared with each other."""
    first = shards[0]
    for each in shards[1:]:
        if not is_same(first.run.environment.hard, each.run.environment.hard):
            raise InvalidFileError(
                f"{each.label}: expected a machine as that of {first.label} "
                f"({_spell_machine(first.run)}), found {_spell_machine(each.run)}; name each "
                "class with `ci-perf fleet plan --machine-class`"
            )


def _spell_machine(run: Run) -> str:
    """Spell the facts of a machine that decide whether it may be compared with another."""
    facts = msgspec.to_builtins(run.environment.hard)
    return ", ".join(f"{name} {value}" for name, value in facts.items())[:DETAIL_CHARS]


# --- one run of several


def _merge_shards(
    plan: WorkPlan, machine_class: str | None, shards: Sequence[ShardRun], lost: Mapping[str, str]
) -> Run:
    runs = [shard.run for shard in shards]
    if shards:
        _check_machine(shards)
    order = {name: i for i, name in enumerate(plan.workloads(machine_class))}
    return Run(
        tool=plan.tool,
        id=_identity(plan, machine_class, runs),
        started_at=min((run.started_at for run in runs), default=""),
        duration_s=_total_s(run.duration_s for run in runs),
        waited_s=_total_s(run.waited_s for run in runs),
        source=msgspec.structs.replace(
            plan.source, dirty=plan.source.dirty or any(run.source.dirty for run in runs)
        ),
        suite=plan.suite,
        selection=plan.selection,
        environment=runs[0].environment if runs else _nowhere(machine_class),
        validity=validity_of(tuple(_reasons(runs))),
        measured=_in_order(order, (each for run in runs for each in run.measured)),
        failed=_in_order(
            order,
            [
                *(failed for run in runs for failed in run.failed),
                *_find_unmeasured(plan, machine_class, runs, lost),
            ],
        ),
        interleaved=_merge_interleaved(plan, shards),
        paired=_in_order(order, (each for run in runs for each in run.paired)),
        checks=_checks(runs),
        earlier=_earlier(runs),
        same=_in_order(order, (each for run in runs for each in run.same)),
        touched=_in_order(order, (each for run in runs for each in run.touched)),
        programs=_in_order(order, (each for run in runs for each in run.programs)),
        profiled=_in_order(order, (each for run in runs for each in run.profiled)),
        merged_from=tuple(session for run in runs for session in run.sessions),
    )


def _total_s(seconds: Iterable[float]) -> float:
    """Add durations: a hostile run may name the longest that there may be, and stops no other."""
    return min(MOST_SECONDS, round(math.fsum(seconds), 3))


def _in_order(order: Mapping[str, int], parts: Iterable[_P]) -> tuple[_P, ...]:
    return tuple(sorted(parts, key=lambda part: order[part.workload]))


def _identity(plan: WorkPlan, machine_class: str | None, runs: Iterable[Run]) -> str:
    """Return the same id for the same runs in any order."""
    known = [plan.source.commit, machine_class or "", *sorted(run.id for run in runs)]
    return hashlib.sha256("\n".join(known).encode(errors="replace")).hexdigest()[:12]


def _nowhere(machine_class: str | None) -> Environment:
    """Return the environment of a class of which no node brought a result."""
    name = f"unknown machine of class {machine_class}" if machine_class else "unknown machine"
    soft = Software(
        python="",
        torch="",
        transformers=None,
        cuda=None,
        cudnn=None,
        driver=None,
        image=None,
        cpu_model=name,
        threads=0,
        kernel="",
    )
    return Environment(
        hard=CpuMachine(cpu_model=name, logical_cores=0),
        soft=soft,
        noted=Noted(host_hash="", memory_total_bytes=0, load_average=0.0, allocator=""),
    )


def _reasons(runs: Iterable[Run]) -> Iterable[Reason]:
    """Yield what speaks against each node, for the workloads that it has measured alone."""
    for run in runs:
        node = run.environment.noted.host_hash[:_NODE_CHARS]
        for reason in run.validity.reasons:
            if reason.workload:
                yield reason
                continue
            detail = f"node {node}: {reason.detail}"[:DETAIL_CHARS]
            for measured in run.measured:
                yield msgspec.structs.replace(reason, workload=measured.workload, detail=detail)


def _find_unmeasured(
    plan: WorkPlan, machine_class: str | None, runs: Iterable[Run], lost: Mapping[str, str]
) -> Iterable[Failed]:
    """Yield every workload that is planned and that no run has."""
    known = {name for run in runs for name in run.workloads()}
    for unit in plan.units:
        if unit.machine_class != machine_class:
            continue
        for name in unit.workloads:
            if name not in known:
                why = lost.get(unit.id, f"no run of unit {unit.id} has it")
                yield Failed(
                    workload=name,
                    description="",
                    parameters={},
                    launch="process",
                    world_size=1,
                    protocol=Protocol(),
                    phase=Phase.LAUNCH,
                    reason=f"no node has measured it: {why}"[:DETAIL_CHARS],
                    output="",
                )


# --- how base and head were launched


def _merge_interleaved(plan: WorkPlan, shards: Sequence[ShardRun]) -> Interleaved | None:
    known = [(each.label, each.run.interleaved) for each in shards if each.run.interleaved]
    if not known:
        return None
    label, first = known[0]
    assert first is not None
    parts = [first]
    for other, how in known[1:]:
        assert how is not None
        if how.source.commit != first.source.commit:
            raise InvalidFileError(
                f"{other}: expected pairs against commit {first.source.commit!r}, as in {label}, "
                f"found some against {how.source.commit!r}; measure again: the base has moved"
            )
        parts.append(how)
    stopped = {how.stopped for how in parts}
    return msgspec.structs.replace(
        first,
        ref=plan.against,
        suspects=min(LARGEST, sum(how.suspects for how in parts)),
        budget_s=_total_s(how.budget_s for how in parts),
        spent_s=_total_s(how.spent_s for how in parts),
        stopped=next(each for each in _WORST_FIRST if each in stopped),
        pairs=min(LARGEST, sum(how.pairs for how in parts)),
        notes=tuple(dict.fromkeys(note for how in parts for note in how.notes)),
        accepted={name: names for how in parts for name, names in how.accepted.items()},
        incomparable={name: why for how in parts for name, why in how.incomparable.items()},
        expected=tuple(dict.fromkeys(name for how in parts for name in how.expected)),
        unlaunched=tuple(dict.fromkeys(name for how in parts for name in how.unlaunched)),
    )


def _checks(runs: Iterable[Run]) -> Checks | None:
    """Return the most earlier checks that any node knows of; unknown where one does not know."""
    known = [run.checks.before for run in runs if run.checks is not None]
    if not known:
        return None
    return Checks(before=None if None in known else max(n for n in known if n is not None))


def _earlier(runs: Iterable[Run]) -> tuple[Earlier, ...]:
    """Join what each earlier run has launched: a node keeps only its own workloads of it."""
    joined: dict[str, Earlier] = {}
    for run in runs:
        for earlier in run.earlier:
            known = joined.setdefault(earlier.run, earlier)
            if known is earlier:
                continue
            there = {paired.workload for paired in known.paired}
            joined[earlier.run] = msgspec.structs.replace(
                known,
                check=max(known.check, earlier.check),
                suspects=max(known.suspects, earlier.suspects),
                said={**earlier.said, **known.said},
                paired=(
                    *known.paired,
                    *(paired for paired in earlier.paired if paired.workload not in there),
                ),
            )
    return tuple(sorted(joined.values(), key=lambda earlier: (earlier.started_at, earlier.run)))
