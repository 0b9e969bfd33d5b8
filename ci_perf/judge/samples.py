"""Samples of any harness in, a comparison out: screened all together, suspects confirmed by pairs.

A launch counts once, by the median of its steps; the judge works with the logarithm of that.
"""

import math
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, assert_never

from ci_perf.errors import ExitCode
from ci_perf.judge import compare, verdicts
from ci_perf.judge.confirm import Confirmation, Outcome, share_alpha
from ci_perf.judge.evidence import Estimate
from ci_perf.judge.limits import DEFAULT
from ci_perf.judge.modes import two_modes
from ci_perf.judge.policy import PREDICTING_SESSIONS, Policy, PolicyKind, Preset, policy
from ci_perf.judge.predict import predict
from ci_perf.judge.screen import Screened, screen
from ci_perf.model import metrics, validity
from ci_perf.model.comparison import (
    WORST_FIRST,
    Change,
    Comparison,
    Interval,
    Row,
    Side,
    Uncompared,
    Verdict,
)
from ci_perf.model.metrics import Better
from ci_perf.model.run import Source, Tool
from ci_perf.model.samples import SUITE, Launch, Sampled, Samples
from ci_perf.model.suite import Limit
from ci_perf.version import __version__

FailOn = Literal["regressed", "unconfirmed", "inconclusive", "never"]
"""The mildest finding that ends with exit code 1. A gain that is only predicted never does."""

# Reason codes of a judge that screens and confirms; docs/judging.md explains them.
SCREENED, CONFIRMED, NOT_CONFIRMED = "screened", "confirmed", "not_confirmed"
PREDICTED, TOO_FEW_SESSIONS, TOO_FEW_PAIRS = "predicted", "too_few_sessions", "too_few_pairs"
TWO_MODES = "two_modes"
CODES = (SCREENED, CONFIRMED, NOT_CONFIRMED, PREDICTED, TOO_FEW_SESSIONS, TOO_FEW_PAIRS, TWO_MODES)
_UNDECIDED = "spread"
# What is exact and needs room all the same: the allocator's rounding. Counts need none.
_EXACT_LIMITS = {metrics.PEAK_ALLOCATED.name: DEFAULT[metrics.PEAK_ALLOCATED.name]}
_LARGEST = 700.0  # exp(709) is the largest float


@dataclass(frozen=True, slots=True, kw_only=True)
class _Costs:
    """A noisy metric: logarithms, one per launch, of a quantity of which less is better."""

    sampled: Sampled
    policy: Policy
    history: list[list[float]]
    head: list[float]
    pairs: list[tuple[float, float]]

    def shown(self, log_cost: float) -> float:
        """Turn back into the metric's own unit."""
        is_higher = self.sampled.metric.known().better is Better.HIGHER
        return math.exp(-log_cost if is_higher else log_cost)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shares:
    """What each may spend of alpha: a suspect in its pairs, any workload in a prediction."""

    confirm: float
    predict: float


def judge(
    samples: Samples,
    *,
    base: str,
    head: str,
    preset: Preset = "default",
    fail_on: FailOn = "regressed",
) -> Comparison:
    """Judge every workload of `samples`; `base` and `head` say where the launches come from."""
    noisy = [_costs(one, preset) for one in samples.workloads if one.metric.kind != "exact"]
    exact = [one for one in samples.workloads if one.metric.kind == "exact"]
    rows = sorted([*_noisy(noisy), *map(_exact, exact)], key=_severity)
    verdict = min((row.verdict for row in rows), key=WORST_FIRST.index, default=Verdict.MISSING)
    sessions = max((len(one.history) for one in samples.workloads), default=0)
    return Comparison(
        tool=Tool(version=__version__),
        suite=SUITE,
        selection=(),
        verdict=verdict,
        exit_code=_exit_code(verdict, rows, fail_on),
        base=_side(base, sessions),
        head=_side(head, 1 if rows else 0),
        validity=validity.of(()),
        differences=(),
        rows=tuple(rows),
    )


def summary(launch: Launch) -> float:
    """Return the one number that stands for a launch: the median of its steps."""
    return statistics.median(launch) if isinstance(launch, tuple) else launch


def _exit_code(verdict: Verdict, rows: list[Row], fail_on: FailOn) -> int:
    code = compare.exit_code(verdict, rows)
    match fail_on:
        case "regressed":
            return code
        case "never":
            return ExitCode.OK if code == ExitCode.REGRESSED else code
        case "unconfirmed":
            suspected = any(_is_suspected(row) for row in rows)
        case "inconclusive":
            suspected = any(
                _is_suspected(row) or row.verdict is Verdict.INCONCLUSIVE for row in rows
            )
        case _:
            assert_never(fail_on)
    return ExitCode.REGRESSED if suspected and code == ExitCode.OK else code


def _is_suspected(row: Row) -> bool:
    is_worse = isinstance(row, Change) and row.ratio is not None and row.ratio > 1
    return row.verdict is Verdict.UNCONFIRMED and is_worse


def _side(label: str, sessions: int) -> Side:
    """Describe a side of which only the numbers are known."""
    source = Source(commit="unknown", branch="unknown", dirty=False)
    return Side(
        label=label, run="", source=source, machine=None, sessions=sessions, oldest="", newest=""
    )


def _severity(row: Row) -> tuple[int, float, str]:
    """Worst verdict first, large changes before small ones."""
    size = -abs(row.ratio - 1) if isinstance(row, Change) and row.ratio else 0.0
    return WORST_FIRST.index(row.verdict), size, row.workload


# --- noisy kinds


def _costs(sampled: Sampled, preset: Preset) -> _Costs:
    sign = -1.0 if sampled.metric.direction == "higher" else 1.0

    def log_cost(launch: Launch) -> float:
        return sign * math.log(summary(launch))

    return _Costs(
        sampled=sampled,
        policy=policy(PolicyKind(sampled.metric.kind), preset),
        history=[[log_cost(launch) for launch in session] for session in sampled.history],
        head=[log_cost(launch) for launch in sampled.head],
        pairs=[(log_cost(base), log_cost(head)) for base, head in sampled.pairs],
    )


def _noisy(workloads: Sequence[_Costs]) -> Iterator[Row]:
    """Screen first, for the whole file; alpha is shared before any pair is looked at."""
    screened = _screened(workloads)
    suspects = sum(_is_to_confirm(screened[i], one) for i, one in enumerate(workloads))
    tested = sum(found is not None for found in screened)
    shares = _Shares(confirm=share_alpha(max(suspects, 1)), predict=share_alpha(max(tested, 1)))
    for found, one in zip(screened, workloads, strict=True):
        yield _row(one, found, shares)


def _screened(workloads: Sequence[_Costs]) -> list[Screened | None]:
    """Screen all workloads of one kind together: they share what they know of the noise."""
    found: list[Screened | None] = [None] * len(workloads)
    for kind in PolicyKind:
        of_kind = [
            i
            for i, one in enumerate(workloads)
            if one.sampled.metric.kind == kind.value and one.history and one.head
        ]
        items = [(workloads[i].history, workloads[i].head) for i in of_kind]
        if items:
            results = screen(items, workloads[of_kind[0]].policy)
            for i, result in zip(of_kind, results, strict=True):
                found[i] = result
    return found


def _is_to_confirm(found: Screened | None, one: _Costs) -> bool:
    """Whether history could not clear it: what was never screened is a suspect, too."""
    return bool(one.pairs) if found is None else found.is_suspect


def _row(one: _Costs, found: Screened | None, shares: _Shares) -> Row:
    if one.pairs and _is_to_confirm(found, one):
        return _confirmed(one, found, shares.confirm)
    if found is not None:
        return _from_history(one, found, shares.predict)
    return _uncompared(one.sampled, one.shown(_centre(one.history or [one.head])))


def _from_history(one: _Costs, found: Screened, alpha: float) -> Change:
    """Say what the committed sessions allow: no change, a prediction, or nothing."""
    verdict, code = _predicted(one, found, alpha)
    estimate = Estimate(found.difference, found.error, found.df)
    return _change(
        one,
        base=one.history,
        head=one.head,
        estimate=found.difference,
        interval=estimate.interval(one.policy.floor),
        verdict=verdict,
        code=code,
    )


def _predicted(one: _Costs, found: Screened, alpha: float) -> tuple[Verdict, str]:
    match predict(found, one.policy, alpha):
        case "unchanged":
            return Verdict.UNCHANGED, SCREENED
        case "unconfirmed":
            return Verdict.UNCONFIRMED, PREDICTED
        case "inconclusive":
            is_short = found.sessions < PREDICTING_SESSIONS
            return Verdict.INCONCLUSIVE, TOO_FEW_SESSIONS if is_short else _undecided(one)


def _confirmed(one: _Costs, found: Screened | None, alpha: float) -> Change:
    """Let the pairs decide, in their order; those after the decision are left alone."""
    confirmation = Confirmation(
        policy=one.policy,
        alpha=alpha,
        prior_variance=found.prior_variance if found else 0.0,
        prior_df=found.prior_df if found else 0.0,
    )
    for base, head in one.pairs:
        if confirmation.add(head - base) is not None:
            break
    outcome = confirmation.finish()
    interval = _interval(outcome, confirmation.smallest_detectable())
    code = _code(one, outcome, interval, was_screened=found is not None)
    return _change(
        one,
        base=[[base for base, _ in one.pairs[: outcome.pairs]]],
        head=[head for _, head in one.pairs[: outcome.pairs]],
        estimate=outcome.estimate,
        interval=interval,
        verdict=Verdict(outcome.call),
        code=code,
    )


def _code(one: _Costs, outcome: Outcome, interval: Interval | None, *, was_screened: bool) -> str:
    if outcome.call == "inconclusive":
        return TOO_FEW_PAIRS if interval is None else _undecided(one)
    if outcome.call == "unchanged" and was_screened:
        return NOT_CONFIRMED
    return CONFIRMED


def _undecided(one: _Costs) -> str:
    """Say what kept the answer away: launches of one session that have two speeds, or a spread."""
    sessions = [*one.history, one.head, *([list(side) for side in zip(*one.pairs, strict=True)])]
    floor = one.policy.floor
    found = any(two_modes(session, smallest_gap=floor) for session in sessions if session)
    return TWO_MODES if found else _UNDECIDED


def _interval(outcome: Outcome, smallest_detectable: float) -> Interval | None:
    """Turn logarithms into ratios; nothing while nothing is known of the spread."""
    if not all(map(math.isfinite, (outcome.low, outcome.high, smallest_detectable))):
        return None
    return Interval(
        low=_exp(outcome.low),
        high=_exp(outcome.high),
        smallest_detectable=_exp(smallest_detectable) - 1,
    )


def _exp(logarithm: float) -> float:
    """Stay finite: of launches that differ a billionfold nothing more has to be said."""
    return math.exp(min(logarithm, _LARGEST))


def _centre(sessions: Sequence[Sequence[float]]) -> float:
    return statistics.fmean(statistics.fmean(session) for session in sessions)


def _change(
    one: _Costs,
    *,
    base: list[list[float]],
    head: list[float],
    estimate: float,
    interval: Interval | None,
    verdict: Verdict,
    code: str,
) -> Change:
    return Change(
        workload=one.sampled.workload,
        metric=one.sampled.metric.known().name,
        base=one.shown(_centre(base)),
        head=one.shown(_centre([head])),
        base_processes=sum(map(len, base)),
        head_processes=len(head),
        base_sessions=len(base),
        items_per_step=1.0,
        item_unit="step",
        ratio=math.exp(estimate),
        interval=interval,
        limit=one.policy.floor,
        gate=True,
        verdict=verdict,
        code=code,
    )


# --- exact kinds, and what has no partner


def _exact(sampled: Sampled) -> Row:
    """Compare ranges. Where there are pairs, they count: both sides met the same machine."""
    base = [[summary(launch) for launch in session] for session in sampled.history]
    head = [summary(launch) for launch in sampled.head]
    if sampled.pairs:
        base = [[summary(before) for before, _ in sampled.pairs]]
        head = [summary(after) for _, after in sampled.pairs]
    metric = sampled.metric.known()
    if not (base and head):
        return _uncompared(sampled, max(value for session in (*base, head) for value in session))
    ruling = verdicts.rule(metric, _EXACT_LIMITS.get(metric.name, Limit()), base, head)
    return Change(
        workload=sampled.workload,
        metric=metric.name,
        base=ruling.base,
        head=ruling.head,
        base_processes=sum(map(len, base)),
        head_processes=len(head),
        base_sessions=len(base),
        items_per_step=1.0,
        item_unit="step",
        ratio=ruling.ratio,
        interval=None,
        limit=ruling.limit,
        gate=True,
        verdict=ruling.verdict,
        code=ruling.code,
    )


def _uncompared(sampled: Sampled, centre: float) -> Uncompared:
    """Say that a side is empty, so that nothing ever vanishes."""
    is_missing = bool(sampled.history)
    metric = sampled.metric.known().name
    return Uncompared(
        workload=sampled.workload,
        metric=metric,
        verdict=Verdict.MISSING if is_missing else Verdict.NEW,
        code="metric_missing" if is_missing else "metric_new",
        base={metric: centre} if is_missing else {},
        head={} if is_missing else {metric: centre},
        gate=True,
        note="",
        output="",
        parameters={},
    )
