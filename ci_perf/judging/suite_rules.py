"""Two plans of one suite, of base and head: whether both do the same work, and the stricter rules.

What the head loosens counts after the merge; what it tightens counts now.
"""

import msgspec

from ci_perf.model.suite import Limit, Limits, Plan, PlannedWorkload, find_limit

# Of a limit, what is switched on or off.
_FLAGS = tuple(
    name for name, value in msgspec.structs.asdict(Limit()).items() if isinstance(value, bool)
)
# Numbers of two sides that differ in one of them are of different work.
_WORK = ("parameters", "launch", "world_size")
# Or a step takes another time by itself, or another time stands for it.
_TIMES = ("threads", "cpus", "seed", "allocator", "statistic")


def other_work(base: Plan, head: Plan) -> dict[str, str]:
    """Say of which workloads the two suites make different work, and by what."""
    before = {workload.id: workload for workload in base.workloads}
    said = {
        workload.id: _other_work(before[workload.id], workload)
        for workload in head.workloads
        if workload.id in before
    }
    if base.device != head.device:
        said = dict.fromkeys(said, _differs("device", base.device, head.device))
    return {name: reason for name, reason in said.items() if reason}


def _other_work(base: PlannedWorkload, head: PlannedWorkload) -> str:
    sides = [(base, head, _WORK), (base.protocol, head.protocol, _TIMES)]
    for before, after, names in sides:
        for name in names:
            if getattr(before, name) != getattr(after, name):
                return _differs(name, getattr(before, name), getattr(after, name))
    return ""


def _differs(name: str, base: object, head: object) -> str:
    return f"{name} in suite.toml: {base} → {head}"


def stricter(base: Limits, head: Limits) -> Limits:
    """Return limits of which none is looser than that of the base."""
    return Limits(
        default=_stricter(base.default, head.default),
        workloads={
            name: _stricter(base.of(name), head.of(name))
            for name in sorted(base.workloads.keys() | head.workloads.keys())
        },
        trimmed=base.trimmed,
    )


def _stricter(base: dict[str, Limit], head: dict[str, Limit]) -> dict[str, Limit]:
    both = {
        name: (find_limit(base, name), find_limit(head, name))
        for name in sorted(base.keys() | head.keys())
    }
    return {
        name: stricter_limit(before, after) if before and after else before or after or Limit()
        for name, (before, after) in both.items()
    }


def stricter_limit(base: Limit, head: Limit) -> Limit:
    """Return the sizes of the head if none is larger, else those of the base; a gate of either.

    Of two limits in different units, the smaller of each part would be a third one that nobody has
    written, and that is 0 where one has a share alone, and the other a size.
    """
    before, after = msgspec.structs.asdict(base), msgspec.structs.asdict(head)
    is_tighter = all(after[name] <= before[name] for name in before if name not in _FLAGS)
    flags = {name: before[name] or after[name] for name in _FLAGS}
    return msgspec.structs.replace(head if is_tighter else base, **flags)
