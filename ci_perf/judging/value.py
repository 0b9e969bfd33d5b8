"""Runs of one suite on several machines, and prices, in; items per second and per money out."""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec

from ci_perf.judging import distributions, launch_numbers
from ci_perf.model import metrics
from ci_perf.model.environment import Machine
from ci_perf.model.hardware import (
    Estimate,
    Hardware,
    HardwareClass,
    HardwareFigures,
    HardwareWorkload,
    Price,
)
from ci_perf.model.run import Measured, Run, Tool
from ci_perf.model.summary import Numbers
from ci_perf.version import __version__

HOUR_S = 3600
MILLION = 1e6
# Of an interval of 95 %.
_TAIL = 0.025
# Launches of one session are alike; with so many sessions, these say how much days differ.
_SESSIONS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class PricedClass:
    """A class of machines: its runs, and its price, if it has one; ``age_days`` is the price's."""

    name: str
    machine: str
    hard: Machine
    runs: tuple[Run, ...]
    price: Price | None = None
    age_days: int | None = None


def of(classes: Sequence[PricedClass], *, currency: str, notes: Sequence[str] = ()) -> Hardware:
    """Compare classes, each with at least one run of the same suite and commit."""
    per_class = [_measured(each) for each in classes]
    names = list(
        dict.fromkeys(name for each in classes for run in each.runs for name in run.workloads())
    )
    workloads = [_workload(name, classes, per_class) for name in names]
    shared = [each for each in workloads if each.is_shared]
    speeds = [_mean([_speed(each, at) for each in shared]) for at in range(len(classes))]
    values = [_per_money(speed, each.price) for speed, each in zip(speeds, classes, strict=True)]
    first, machines = classes[0].runs[0], [each.machine for each in classes]
    return Hardware(
        tool=Tool(version=__version__),
        suite=first.suite,
        source=first.source,
        currency=currency,
        classes=tuple(
            HardwareClass(
                name=each.name,
                machine=each.machine,
                hard=each.hard,
                runs=len(each.runs),
                launches=sum(len(w.processes) for run in each.runs for w in run.measured),
                price=each.price,
                age_days=each.age_days,
                speed=speed,
                speed_rank=speed_rank,
                value=value,
                value_rank=value_rank,
            )
            for each, speed, speed_rank, value, value_rank in zip(
                classes,
                _relative(speeds),
                ranks(speeds, machines),
                _relative(values),
                ranks(values),
                strict=True,
            )
        ),
        workloads=tuple(workloads),
        notes=tuple(notes),
    )


def ranks(
    estimates: Sequence[Estimate | None], machines: Sequence[str] | None = None
) -> list[int | None]:
    """Return the rank of each, largest first: those that are surely larger, and one.

    Intervals that overlap share a rank. Of a single launch nobody knows a range, so nothing is
    surely larger or smaller than it. Estimates of the same one of `machines` count once.
    """
    of = machines or [str(at) for at in range(len(estimates))]
    return [
        None
        if own is None
        else 1
        + len(
            {
                machine
                for other, machine in zip(estimates, of, strict=True)
                if _is_surely_larger(other, own)
            }
        )
        for own in estimates
    ]


def _is_surely_larger(other: Estimate | None, than: Estimate) -> bool:
    if other is None or other.low is None or than.high is None:
        return False
    return other.low > than.high


# --- one workload


@dataclass(frozen=True, slots=True)
class _Launches:
    """The launches of a workload on one class: the sessions, and what each launch showed."""

    workload: Measured
    sessions: tuple[tuple[Numbers, ...], ...]


def _measured(each: PricedClass) -> dict[str, _Launches]:
    """Return what was measured, by workload, without what cannot be trusted."""
    known: dict[str, _Launches] = {}
    for run in each.runs:
        for workload in run.measured:
            if run.validity.against(workload.workload) is not None:
                continue
            before = known.get(workload.workload)
            session = launch_numbers.of_workload(workload, run)
            sessions = (*(before.sessions if before else ()), session)
            known[workload.workload] = _Launches(workload, sessions)
    return known


def _workload(
    name: str, classes: Sequence[PricedClass], measured: Sequence[Mapping[str, _Launches]]
) -> HardwareWorkload:
    figures = [
        _figures(of_class[name], each.price)
        if name in of_class
        else HardwareFigures(absent=_absent(name, each))
        for each, of_class in zip(classes, measured, strict=True)
    ]
    by_speed = ranks([each.items_per_s for each in figures], [each.machine for each in classes])
    by_money = ranks([each.per_money for each in figures])
    known = next((of[name].workload.item_unit for of in measured if name in of), "item")
    return HardwareWorkload(
        workload=name,
        item_unit=known,
        figures=tuple(
            msgspec.structs.replace(each, rank=speed, per_money_rank=money)
            for each, speed, money in zip(figures, by_speed, by_money, strict=True)
        ),
    )


def _absent(name: str, each: PricedClass) -> str:
    """Say why a class has no numbers of a workload."""
    for run in each.runs:
        reason = run.validity.against(name)
        if reason is not None:
            return f"not trusted: {reason.code}: {reason.detail}"
        for failed in run.failed:
            if failed.workload == name:
                return f"{failed.phase.value}: {failed.reason}"
    return "not measured"


def _figures(launches: _Launches, price: Price | None) -> HardwareFigures:
    items = launches.workload.items_per_step
    speed = _estimate(
        [
            [math.log(items / numbers[metrics.STEP_TIME.name]) for numbers in session]
            for session in launches.sessions
        ]
    )
    per_money = _per_money(speed, price)
    return HardwareFigures(
        items_per_s=speed,
        energy_j=_median(launches, metrics.ENERGY.name),
        mfu=_median(launches, metrics.MFU.name),
        per_money=per_money,
        million_cost=_cost(per_money),
    )


def _estimate(sessions: Sequence[Sequence[float]]) -> Estimate:
    """Return the geometric mean of logarithms, and Student's interval of 95 % around it.

    Of the means of sessions, where there are three; of the launches, where there are fewer.
    """
    means = [statistics.fmean(session) for session in sessions]
    values = (
        means if len(means) >= _SESSIONS else [each for session in sessions for each in session]
    )
    centre = statistics.fmean(values)
    if len(values) < 2:
        return Estimate(value=math.exp(centre))
    reach = (
        distributions.student_quantile(_TAIL, len(values) - 1)
        * statistics.stdev(values)
        / math.sqrt(len(values))
    )
    return _of_logarithms(centre, centre - reach, centre + reach)


def _of_logarithms(centre: float, low: float, high: float) -> Estimate:
    # A range that is wider than any number says no more than this.
    bounded = (max(-600.0, min(600.0, each)) for each in (centre, low, high))
    value, least, most = map(math.exp, bounded)
    return Estimate(value=value, low=least, high=most)


def _median(launches: _Launches, name: str) -> float | None:
    values = [numbers[name] for each in launches.sessions for numbers in each if name in numbers]
    return statistics.median(values) if values else None


# --- money


def _per_money(speed: Estimate | None, price: Price | None) -> Estimate | None:
    """Return how many items a unit of money buys."""
    return None if speed is None or price is None else _times(speed, HOUR_S / price.per_hour)


def _cost(per_money: Estimate | None) -> Estimate | None:
    """Return what a million items cost; the ends change places."""
    if per_money is None:
        return None
    low, high = per_money.low, per_money.high
    return Estimate(
        value=MILLION / per_money.value,
        low=None if high is None else MILLION / high,
        high=None if low is None else MILLION / low,
    )


def _times(estimate: Estimate, factor: float) -> Estimate:
    low, high = estimate.low, estimate.high
    return Estimate(
        value=estimate.value * factor,
        low=None if low is None else low * factor,
        high=None if high is None else high * factor,
    )


# --- the whole suite


def _speed(workload: HardwareWorkload, at: int) -> Estimate:
    speed = workload.figures[at].items_per_s
    assert speed is not None  # it is shared
    return speed


def _mean(speeds: Sequence[Estimate]) -> Estimate | None:
    """Return the geometric mean; its ends are those of all workloads together.

    That is wider than independent errors would be: launches of one session err together.
    """
    if not speeds:
        return None
    centre = statistics.fmean(math.log(each.value) for each in speeds)
    known = [(each.low, each.high) for each in speeds if each.low and each.high]
    if len(known) < len(speeds):
        return Estimate(value=math.exp(centre))
    low, high = (statistics.fmean(math.log(ends[at]) for ends in known) for at in (0, 1))
    return _of_logarithms(centre, low, high)


def _relative(estimates: Sequence[Estimate | None]) -> list[Estimate | None]:
    """Return each as a multiple of the first one that is known."""
    first = next((each.value for each in estimates if each is not None), 1.0)
    return [None if each is None else _times(each, 1 / first) for each in estimates]
