"""Kinds of noise, as machines make it: sessions, launches in a session, steps in a launch.

All deviations are of natural logs: 0.01 is one percent. What they rest on: launches of MLPerf
Training v4.0 on H100, H200 and L40S differ by 0.13 % (0.03 to 0.66), runs of CPython's benchmark
machines on different days by 1 to 2 %, GPU runners jump by some percent between jobs.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from benchmarks.verdicts.observed import Array, Observed

# Of the variance between sessions, what all workloads of a machine have in common: heat, clocks.
COMMON_SHARE = 0.5
# A slow step is often followed by another one.
STEP_CORRELATION = 0.3
JUMP = 0.03
SPREAD_OUTLIER = 6.0

OLDER_SESSIONS = 25
SESSIONS = 5
LAUNCHES = 5
PAIRS = 18
STEPS = 30

Range = tuple[float, float]


@dataclass(frozen=True)
class Regime:
    """A kind of machine; each workload draws its own deviations from the ranges."""

    name: str
    session: Range
    launch: Range
    step: Range
    # Launches in a second, slower mode: how many, and by how much.
    second_mode_share: Range = (0.0, 0.0)
    second_mode_gap: Range = (0.0, 0.0)
    # The deviation of a linear trend from the first to the last launch of a job.
    trend: float = 0.0
    # Sessions that lie by JUMP to one side.
    jump_share: float = 0.0
    slow_step_share: float = 0.01
    slow_step: float = 0.05
    # Launches that are slow throughout, and by how much in the mean.
    slow_launch_share: float = 0.0
    slow_launch: float = 0.05
    # Launches whose own deviation is SPREAD_OUTLIER times as large.
    spread_outlier_share: float = 0.0
    # The correlation of the two launches of a pair: what resident pairs have in common.
    pair_correlation: float = 0.0
    # Today: how many times as much launches differ as in the history, and how much slower all are.
    today_spread: float = 1.0
    today_shift: float = 0.0


_QUIET: tuple[Range, Range, Range] = ((0.002, 0.005), (0.001, 0.003), (0.003, 0.008))
_TYPICAL: tuple[Range, Range, Range] = ((0.003, 0.012), (0.002, 0.008), (0.005, 0.015))


def two_modes(name: str, *, share: float, gap: float) -> Regime:
    """Return a quiet machine on which each launch is in one of two modes."""
    return Regime(
        f"two modes, {name}",
        *_QUIET,
        second_mode_share=(share, share),
        second_mode_gap=(gap, gap),
    )


# As machines mostly are: here the rules of other tools are judged, too.
ORDINARY = (
    Regime("quiet", *_QUIET),
    Regime("typical", *_TYPICAL),
    Regime("noisy", (0.01, 0.03), (0.005, 0.015), (0.01, 0.03)),
    Regime("drift", *_TYPICAL, trend=0.015, jump_share=0.1),
    Regime("bimodal", *_TYPICAL, second_mode_share=(0.05, 0.3), second_mode_gap=(0.02, 0.04)),
    Regime("heavy", *_TYPICAL, slow_step_share=0.05, slow_step=0.15, slow_launch_share=0.05),
)
# Made to mislead a judge: what outsiders found, and what nobody promises to be spared.
HARSH = (
    two_modes("50/50, 3 % apart", share=0.5, gap=0.03),
    two_modes("50/50, 8 % apart", share=0.5, gap=0.08),
    two_modes("30/70, 5 % apart", share=0.3, gap=0.05),
    Regime("correlated pairs", (0.01, 0.03), (0.01, 0.04), (0.01, 0.03), pair_correlation=0.8),
    Regime("noisy today", *_TYPICAL, today_spread=3.0),
    Regime("slower today", *_TYPICAL, today_shift=0.02),
    Regime("outliers", *_TYPICAL, spread_outlier_share=0.15),
)
# Other programs make half of the launches longer, never shorter: all twenty workloads get all their
# pairs, so it is judged with `--full` alone.
CROWDED = Regime(
    "crowded",
    (0.02, 0.06),
    (0.02, 0.05),
    (0.03, 0.1),
    slow_launch_share=0.5,
    slow_launch=0.15,
)
REGIMES = (*ORDINARY, *HARSH, CROWDED)


@dataclass(frozen=True)
class Workloads:
    """What each of n workloads has drawn from a regime; every array is [n]."""

    regime: Regime
    session: Array
    launch: Array
    step: Array
    second_mode_share: Array
    second_mode_gap: Array

    @classmethod
    def draw(cls, regime: Regime, n: int, random: np.random.Generator) -> "Workloads":
        """Deviations evenly on a log scale, the second mode evenly on its own."""

        def evenly(limits: Range) -> Array:
            low, high = (math.log(limit) for limit in limits)
            return np.exp(random.uniform(low, high, n))

        return cls(
            regime=regime,
            session=evenly(regime.session),
            launch=evenly(regime.launch),
            step=evenly(regime.step),
            second_mode_share=random.uniform(*regime.second_mode_share, n),
            second_mode_gap=random.uniform(*regime.second_mode_gap, n),
        )

    def session_effects(self, sessions: int, suite: int, random: np.random.Generator) -> Array:
        """Return [n, sessions]: how far each session lies from the long mean."""
        n = len(self.session)
        common = np.repeat(random.standard_normal((n // suite, sessions)), suite, axis=0)
        own = random.standard_normal((n, sessions))
        effects: Array = np.sqrt(COMMON_SHARE) * common + np.sqrt(1 - COMMON_SHARE) * own
        jumps = random.random((n, sessions)) < self.regime.jump_share
        sides = random.choice([-JUMP, JUMP], (n, sessions))
        effects *= self.session[:, None]
        effects += jumps * sides
        return effects

    def launches(self, jobs: int, launches: int, random: np.random.Generator) -> Array:
        """Return [n, jobs, launches, STEPS], without the effect of the session."""
        shape = (len(self.launch), jobs, launches)
        return self._around(random.standard_normal(shape), random)

    def today(self, launches: int, random: np.random.Generator) -> Array:
        """Return [n, launches, STEPS] of launches of the head, without the session's effect."""
        shape = (len(self.launch), 1, launches)
        noise = self.regime.today_spread * random.standard_normal(shape)
        return self._around(noise, random)[:, 0]

    def pairs(self, random: np.random.Generator) -> Array:
        """Return [n, PAIRS, 2, STEPS] of launches in the order in which they were made."""
        n, correlation = len(self.launch), self.regime.pair_correlation
        noise = random.standard_normal((n, 1, 2 * PAIRS))
        if correlation:
            common = np.repeat(random.standard_normal((n, 1, PAIRS)), 2, axis=-1)
            noise = math.sqrt(correlation) * common + math.sqrt(1 - correlation) * noise
        noise *= self.regime.today_spread
        return self._around(noise, random).reshape(n, PAIRS, 2, STEPS)

    def _around(self, noise: Array, random: np.random.Generator) -> Array:
        """Return launches and their steps; `noise` [n, jobs, launches] is in units of `launch`."""
        shape = noise.shape
        if self.regime.spread_outlier_share:
            is_outlier = random.random(shape) < self.regime.spread_outlier_share
            noise = noise * np.where(is_outlier, SPREAD_OUTLIER, 1.0)
        effects = self.launch[:, None, None] * noise
        is_slower_mode = random.random(shape) < self.second_mode_share[:, None, None]
        effects += is_slower_mode * self.second_mode_gap[:, None, None]
        is_slow = random.random(shape) < self.regime.slow_launch_share
        effects += is_slow * random.exponential(self.regime.slow_launch, shape)
        when = np.linspace(-0.5, 0.5, shape[-1]) if shape[-1] > 1 else np.zeros(1)
        effects += self.regime.trend * random.standard_normal((*shape[:2], 1)) * when
        return effects[..., None] + self._steps(shape, random)

    def _steps(self, shape: tuple[int, ...], random: np.random.Generator) -> Array:
        steps = random.standard_normal((*shape, STEPS))
        fresh = np.sqrt(1 - STEP_CORRELATION**2)
        for i in range(1, STEPS):
            steps[..., i] = STEP_CORRELATION * steps[..., i - 1] + fresh * steps[..., i]
        steps *= self.step[:, None, None, None]
        is_slow = random.random(steps.shape) < self.regime.slow_step_share
        steps[is_slow] += random.exponential(self.regime.slow_step, int(is_slow.sum()))
        return steps


def simulate(
    regime: Regime, *, pull_requests: int, suite: int, changes: Array, random: np.random.Generator
) -> Observed:
    """Measure `pull_requests` · `suite` workloads; `changes` [workloads] is the truth, as a log."""
    return next(
        simulate_checks(
            regime,
            pull_requests=pull_requests,
            suite=suite,
            changes=changes,
            random=random,
            checks=1,
        )
    )


def simulate_checks(
    regime: Regime,
    *,
    pull_requests: int,
    suite: int,
    changes: Array,
    random: np.random.Generator,
    checks: int,
) -> Iterator[Observed]:
    """Measure the same as often as `checks` says: each time on another day, by one history."""
    n = pull_requests * suite
    workloads = Workloads.draw(regime, n, random)
    known = OLDER_SESSIONS + SESSIONS
    effects = workloads.session_effects(known + checks, suite, random)[..., None]
    of_heads = effects[:, known:] + regime.today_shift
    rows, pairs = np.arange(n)[:, None], np.arange(PAIRS)
    older, sessions = None, None
    for check in range(checks):
        of_head = of_heads[:, check : check + 1]
        turns = workloads.pairs(random)
        base_is_second = (random.integers(0, 2, (n, 1)) + np.arange(PAIRS)) % 2
        if older is None or sessions is None:
            older = (
                effects[:, :OLDER_SESSIONS] + workloads.launches(OLDER_SESSIONS, 1, random)[:, :, 0]
            )
            sessions = effects[:, OLDER_SESSIONS:known, None] + workloads.launches(
                SESSIONS, LAUNCHES, random
            )
        yield Observed(
            older=older,
            sessions=sessions,
            head=of_head + workloads.today(LAUNCHES, random) + changes[:, None, None],
            paired_base=of_head + turns[rows, pairs, base_is_second],
            paired_head=of_head + turns[rows, pairs, 1 - base_is_second] + changes[:, None, None],
            suite=suite,
        )
