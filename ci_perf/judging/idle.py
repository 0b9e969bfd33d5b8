"""What keeps a step from being faster: why its device is idle, or where the host's time goes.

The shares are of profiled steps, in which the host is slower than usual: they say what to try
first, and two sides profiled alike can be compared.
"""

import math
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import msgspec

from ci_perf.model.explanation import (
    MOST_LIMITS,
    Cure,
    LimitReason,
    StepLimit,
    StepLimits,
)
from ci_perf.model.step_profile import (
    DeviceTimes,
    FunctionUse,
    HostTimes,
    LoaderKind,
    ProfiledPair,
    StepProfile,
)

# Of the time: less would not be worth a person's look.
_LEAST_SHARE = 0.05
# By how much of the time a reason must have grown, and in how many pairs: times of fewer are not
# believed.
_LEAST_GROWTH = 0.03
_FEWEST_PAIRS = 3
# A call of an operator on a CPU that costs no more is mostly the cost of calling it: 1 to 5 us.
_SMALL_OPERATOR_S = 10e-6
_MAX_CHARS, _MAX_PATH_CHARS = 200, 1_000
_DATA_PHASE = "data"
# What a DataLoader calls of a data set.
_LOADS = ("__getitem__", "__getitems__")
# Those that copy from or to the device where they wait.
_COPIES = frozenset({"aten::copy_", "aten::_to_copy", "aten::to"})
_NO_WAIT: tuple[Cure, ...] = ("no_wait",)
_NOTHING = "the profile has no trace of torch's profiler"


def limits(profile: StepProfile) -> StepLimits:
    """Return what limits a step, the largest share first."""
    whole = _all_of(profile)
    return msgspec.structs.replace(
        whole, limits=_largest(whole.limits, lambda limit: limit.share, _LEAST_SHARE)
    )


def growth(pairs: Sequence[ProfiledPair]) -> StepLimits | None:
    """Return which reasons grew from base to head, the largest growth first.

    Shares are medians over the pairs, at least three; each of the head is beyond all of the base.
    `None` where a side has no trace, or nothing grew.
    """
    if len(pairs) < _FEWEST_PAIRS:
        return None
    sides = [(_all_of(pair.base), _all_of(pair.head)) for pair in pairs]
    parts = {side.part for both in sides for side in both}
    if len(parts) != 1 or parts == {""}:
        return None
    bases = [{limit.reason: limit for limit in base.limits} for base, _ in sides]
    heads = [{limit.reason: limit for limit in head.limits} for _, head in sides]
    candidates = (
        _grown(bases, heads, reason) for reason in {reason for head in heads for reason in head}
    )
    grown = [limit for limit in candidates if limit is not None]
    if not grown:
        return None
    return StepLimits(
        part=sides[0][1].part,
        step_s=statistics.median(head.step_s for _, head in sides),
        busy=statistics.median(head.busy for _, head in sides),
        busy_base=statistics.median(base.busy for base, _ in sides),
        limits=_largest(grown, lambda limit: limit.share - (limit.share_base or 0.0), 0.0),
    )


_ByReason = Mapping[LimitReason, StepLimit]


def _grown(
    bases: Sequence[_ByReason], heads: Sequence[_ByReason], reason: LimitReason
) -> StepLimit | None:
    """Return a reason as it is in the head, if it grew."""
    before = [base[reason].share if reason in base else 0.0 for base in bases]
    after = [head[reason].share if reason in head else 0.0 for head in heads]
    if min(after) - max(before) < _LEAST_GROWTH:
        return None
    return msgspec.structs.replace(
        heads[-1][reason],
        share=statistics.median(after),
        share_base=statistics.median(before),
    )


def _all_of(profile: StepProfile) -> StepLimits:
    """Return all reasons, also those that do not limit a step."""
    device, host = profile.device, profile.host
    if device is not None and device.span_s > 0:
        return StepLimits(
            part="device",
            step_s=device.span_s,
            busy=device.busy_s / device.span_s,
            limits=tuple(_of_device(profile, device))[:MOST_LIMITS],
        )
    if host is not None and host.step_s > 0:
        return StepLimits(
            part="host",
            step_s=host.step_s,
            busy=host.operators_s / host.step_s,
            limits=tuple(_of_host(profile, host)),
        )
    if data_s := _loading_s(profile):
        share = min(data_s / profile.step_s, 1.0) if profile.step_s else 0.0
        limit = StepLimit(reason="data", seconds=data_s, share=share)
        return StepLimits(
            part="host", step_s=profile.step_s or 0.0, limits=(_of_data(profile, limit, ()),)
        )
    return StepLimits(absent=profile.missing.get("trace") or profile.absent or _NOTHING)


def _bounded(limit: StepLimit) -> StepLimit:
    """Cut what measured code has named: a report holds many of these."""
    place = limit.place
    if place and (len(place.function) > _MAX_CHARS or len(place.file) > _MAX_PATH_CHARS):
        place = None
    return msgspec.structs.replace(
        limit,
        place=place,
        operator=limit.operator[:_MAX_CHARS],
        call=limit.call[:_MAX_CHARS],
        waits_in=limit.waits_in[:_MAX_CHARS],
    )


def _largest(
    every: Iterable[StepLimit], size: Callable[[StepLimit], float], least: float
) -> tuple[StepLimit, ...]:
    kept = [_bounded(limit) for limit in every if size(limit) >= least]
    return tuple(sorted(kept, key=lambda limit: (-size(limit), limit.reason)))


def _of_device(profile: StepProfile, device: DeviceTimes) -> Iterator[StepLimit]:
    """Yield why the device is idle, and how long it only copies."""
    pinned: tuple[Cure, ...] = ("pin_memory",) if device.pageable_s > 0 else ()
    for idle in device.idle:
        limit = StepLimit(
            reason=idle.reason,
            seconds=idle.idle_s,
            share=idle.idle_s / device.span_s,
            operator=idle.operator,
            call=idle.call,
        )
        match idle.reason:
            case "data":
                yield _of_data(profile, limit, pinned)
            case "synchronisation":
                is_copy = idle.operator in _COPIES
                cures = pinned if is_copy and pinned else _NO_WAIT
                yield _placed(profile, limit, cures)
            case "operators":
                yield msgspec.structs.replace(limit, cures=("small_operators", "graphs"))
            case "outside":
                yield _of_python(profile, limit)
            case "device":
                yield msgspec.structs.replace(limit, cures=("graphs",))
            case "unlinked":
                yield limit
    if device.copying_s > 0:
        yield StepLimit(
            reason="copies",
            seconds=device.copying_s,
            share=device.copying_s / device.span_s,
            cures=pinned or ("overlap_copies",),
        )


def _of_host(profile: StepProfile, host: HostTimes) -> Iterator[StepLimit]:
    """Yield where the time of a step goes that runs on the host alone, but in long operators."""
    outside_s = host.step_s - host.data_s - host.waiting_s - host.operators_s
    yield _of_data(profile, _limit("data", host.data_s, host), ())
    yield _limit("synchronisation", host.waiting_s, host)
    yield _of_python(profile, _limit("outside", max(outside_s, 0.0), host))
    small = [use for use in host.operators if 0 < use.host_s < use.calls * _SMALL_OPERATOR_S]
    small_s = min(math.fsum(use.host_s for use in small), host.operators_s)
    if small:
        most = max(small, key=lambda use: (use.host_s, use.operator))
        limit = _limit("operators", small_s, host)
        yield msgspec.structs.replace(limit, operator=most.operator, cures=("small_operators",))


def _limit(reason: LimitReason, seconds: float, host: HostTimes) -> StepLimit:
    return StepLimit(reason=reason, seconds=seconds, share=seconds / host.step_s)


def _of_data(profile: StepProfile, limit: StepLimit, further: tuple[Cure, ...]) -> StepLimit:
    """Say who loads the data, and how it may be loaded earlier."""
    loader = profile.host.loader if profile.host else ""
    cure: dict[LoaderKind, Cure] = {"process": "workers", "workers": "more_workers"}
    use = _slowest(use for use in profile.functions if use.phase == _DATA_PHASE)
    calls = [each for each in profile.operators if each.phase == _DATA_PHASE and each.caller]
    most = max(calls, key=lambda each: each.calls, default=None)
    is_waiting = use is not None and (use.waiting_s or 0.0) > (use.working_s or 0.0)
    return msgspec.structs.replace(
        limit,
        loader=loader,
        place=use.function if use else most.caller if most else None,
        line=0 if use or not most else most.line,
        waits_in=use.waits_in if use and is_waiting else "",
        cures=(cure.get(loader, "load_ahead"), *further),
    )


def _of_python(profile: StepProfile, limit: StepLimit) -> StepLimit:
    """Name the function of the repository whose own time is longest.

    One that loads data is no Python of the step, which somebody could compile.
    """
    use = _slowest(use for use in profile.functions if use.phase != _DATA_PHASE)
    if use and use.function.function.endswith(_LOADS):
        return limit
    return msgspec.structs.replace(
        limit,
        place=use.function if use else None,
        waits_in=use.waits_in if use else "",
        cures=("python",),
    )


def _placed(profile: StepProfile, limit: StepLimit, cures: tuple[Cure, ...]) -> StepLimit:
    """Find the line of the repository that dispatches the operator most often."""
    uses = [use for use in profile.operators if use.operator == limit.operator and use.caller]
    most = max(uses, key=lambda use: use.calls, default=None)
    return msgspec.structs.replace(
        limit,
        place=most.caller if most else None,
        line=most.line if most else 0,
        cures=cures,
    )


def _loading_s(profile: StepProfile) -> float:
    """Return the time of the functions that load, where no trace tells: a step may be too long."""
    if not profile.step_s:
        return 0.0
    loading = [use for use in profile.functions if use.phase == _DATA_PHASE]
    return math.fsum(_own_s(use) for use in loading)


def _slowest(uses: Iterable[FunctionUse]) -> FunctionUse | None:
    """Return the function that takes longest; `None` where no function was timed."""
    timed = [use for use in uses if use.working_s is not None]
    return max(timed, key=_own_s, default=None)


def _own_s(use: FunctionUse) -> float:
    return (use.working_s or 0.0) + (use.waiting_s or 0.0)
