"""Earlier checks of a pull request: what they leave to spend, and which of their pairs count.

The checks of a pull request alarm together as often as promised (`ALPHA`), however many follow:
check *k* may spend a share proportional to k^-1.6, and all shares add up to one. This is alpha
spending for a stream of tests without an end (Foster & Stine 2008; Tian & Ramdas 2021, "Online
control of the familywise error rate"; the exponent is that of Ramdas et al. 2018, SAFFRON). A share
is fixed before the first pair of its check, so the union bound holds whatever the checks have in
common.

A run of commits that were measured before goes on with all of their pairs. It looks at numbers of
pairs that are fixed beforehand, with shares of its own, so that it does not matter why the run
before stopped.

Pairs are differences within one session, so pairs of two sessions may be judged together where
both sides ran the same code, on the same class of machine, with the same software.
"""

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec

from ci_perf.judging.policy import (
    LOOKS,
    MOST_PAIRS,
    WEIGHT_OF_EARLY,
    WEIGHT_OF_SIGNS,
    WEIGHTS,
)
from ci_perf.model.comparison import Change, Code, Comparison, Verdict
from ci_perf.model.environment import is_same
from ci_perf.model.run import (
    Checks,
    Earlier,
    Measured,
    Paired,
    PairVerdict,
    Run,
    Source,
    is_same_code,
)

# With all of alpha in each of 20 checks, 25 instead of 2 % of typical pull requests alarm if every
# workload is slower by half its limit (benchmarks.verdicts.pushes). A larger exponent leaves more
# to the first check and less to late ones: of the losses by 3 % on noisy simulated machines the
# 1st, 5th and 20th check find 81, 63 and 47 % with 1.6, and 84, 59 and 34 % with 2.
_EXPONENT = 1.6
# The sum of k^-1.6 over all k: Riemann's zeta function (scipy.special.zeta(1.6)).
_SUM = 2.28576566568
# Beyond the looks of one run there is one whenever so many pairs more are known.
_STEP = 6
_SAID: dict[Verdict, PairVerdict] = {
    Verdict.REGRESSED: "regressed",
    Verdict.IMPROVED: "improved",
    Verdict.UNCHANGED: "unchanged",
    Verdict.INCONCLUSIVE: "inconclusive",
    Verdict.LIKELY_SLOWER: "inconclusive",
}


def share(number: int) -> float:
    """Return the share of the `number`-th check (from 1); the shares of all add up to 1."""
    if number < 1:
        raise ValueError(f"expected the number of a check, from 1, found {number}")
    return math.pow(number, -_EXPONENT) / _SUM


@dataclass(frozen=True, slots=True, kw_only=True)
class Looks:
    """After how many pairs, those of earlier runs counted, a confirmation may decide.

    ``alarm`` and ``signs`` (the sign test) map numbers of pairs to shares of alpha, ``calm`` to
    shares of beta. ``last`` is where the confirmation ends.
    """

    alarm: dict[int, float]
    signs: dict[int, float]
    calm: dict[int, float]
    last: int

    def calm_share(self, pairs: int) -> float:
        """Return the share of beta of the last look at "unchanged" among so many pairs."""
        looks = sorted(self.calm)
        return self.calm[looks[max(bisect_right(looks, pairs) - 1, 0)]]


def looks(calm_of_one: Mapping[int, float], *, runs: int = 1, before: int = 0) -> Looks:
    """Return the looks of the last of `runs` runs, where `before` pairs were known at its start.

    `calm_of_one` are the shares of beta of the looks of a single run.

    Weights depend on how many runs there are and not on where the one before stopped: shares of
    looks that lie behind are not given back. "Unchanged" in a later run costs beta once more, by
    its `share`.
    """
    if runs < 1 or not 0 <= before <= (runs - 1) * MOST_PAIRS:
        raise ValueError(f"expected at most {MOST_PAIRS} pairs per earlier run, found {before}")
    further = range(MOST_PAIRS + _STEP, runs * MOST_PAIRS + 1, _STEP)
    rise = WEIGHTS[-1] - WEIGHTS[-2]
    alarm = dict(zip(LOOKS, WEIGHTS, strict=True))
    alarm |= {pairs: WEIGHTS[-1] + rise * (i + 1) for i, pairs in enumerate(further)}
    signs = {MOST_PAIRS * (run + 1): WEIGHT_OF_SIGNS for run in range(runs)}
    calm = {**calm_of_one, **dict.fromkeys(further, calm_of_one[MOST_PAIRS])}
    of_alpha = math.fsum((WEIGHT_OF_EARLY, *alarm.values(), *signs.values()))
    of_beta = math.fsum(calm.values()) / (share(runs) if runs > 1 else 1)
    last = max(pairs for pairs in alarm if pairs <= before + MOST_PAIRS)
    return Looks(
        alarm=_between(alarm, before, last, of_alpha),
        signs=_between(signs, before, last, of_alpha),
        calm=_between(calm, before, last, of_beta),
        last=last,
    )


def _between(weights: dict[int, float], before: int, last: int, whole: float) -> dict[int, float]:
    return {pairs: weights[pairs] / whole for pairs in weights if before < pairs <= last}


@dataclass(frozen=True, slots=True, kw_only=True)
class Offered:
    """A run that may be of the same commits as a new one, and what it found; ``label`` names it."""

    run: Run
    comparison: Comparison
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Before:
    """What is known when a run begins: how many checks came before, and runs that are offered."""

    checks: Checks | None = None
    offered: Sequence[Offered] = ()

    def moved(self, head: Source) -> frozenset[str]:
        """Name the workloads of which pairs of an offered run of this head have proven a change."""
        return frozenset(
            workload
            for offered in self.offered
            if is_same_code(head, offered.run.source)
            for workload, said in said_by_pairs(offered.comparison).items()
            if not {"regressed", "improved"}.isdisjoint(said.values())
        )

    def joined(self, run: Run) -> Run:
        """Return the run with what came before; notes say which runs are left alone, and why."""
        how = run.interleaved
        if how is None:
            return run
        earlier: dict[str, Earlier] = {}
        notes = []
        for offered in self.offered:
            if reason := obstacle(run, offered.run):
                notes.append(f"{offered.label}: its pairs are left alone: {reason}")
                continue
            for known in (*offered.run.earlier, earlier_of(offered)):
                if known.paired:
                    earlier.setdefault(known.run, _comparable(known, offered.run, run))
        # Whatever shared alpha then shares it now: a number that depended on what pairs have shown
        # would be no fair share.
        suspects = max(how.suspects, *(known.suspects for known in earlier.values()), 0)
        how = msgspec.structs.replace(how, suspects=suspects, notes=(*how.notes, *notes))
        in_order = sorted(earlier.values(), key=lambda known: known.started_at)
        return msgspec.structs.replace(
            run, checks=self.checks, earlier=tuple(in_order), interleaved=how
        )


def obstacle(run: Run, earlier: Run) -> str:
    """Say why the pairs of `earlier` do not count beside those of `run`; empty where they do."""
    if run.interleaved is None or earlier.interleaved is None:
        return "no base was launched"
    if earlier.id == run.id:
        return "it is the same run"
    if earlier.validity.is_run_invalid:
        return "that run is invalid"
    sides = {
        "head": (run.source, earlier.source),
        "base": (run.interleaved.source, earlier.interleaved.source),
    }
    for side, (source, before) in sides.items():
        if not is_same_code(source, before):
            return f"expected the {side} {_spell_source(source)}, found {_spell_source(before)}"
    now, then = run.environment, earlier.environment
    if run.suite != earlier.suite:
        return f"expected suite {run.suite!r}, found {earlier.suite!r}"
    if not is_same(now.hard, then.hard):
        return "it is of another machine"
    if (now.soft, now.image, run.tool) != (then.soft, then.image, earlier.tool):
        return "it is of other software"
    return ""


def earlier_of(offered: Offered) -> Earlier:
    """Return what a later run of the same commits keeps of a run."""
    run = offered.run
    assert run.interleaved is not None
    return Earlier(
        run=run.id,
        started_at=run.started_at,
        check=run.check or 1,
        suspects=run.interleaved.suspects,
        said=said_by_pairs(offered.comparison),
        paired=find_trusted_pairs(run),
    )


def find_trusted_pairs(run: Run) -> tuple[Paired, ...]:
    """Return the pairs of a run without those of workloads of which no number is judged."""
    return tuple(each for each in run.paired if run.validity.against(each.workload) is None)


def said_by_pairs(comparison: Comparison) -> dict[str, dict[str, PairVerdict]]:
    """Return the verdicts that rest on pairs, by workload and metric."""
    said: dict[str, dict[str, PairVerdict]] = {}
    for row in comparison.rows:
        is_judged = row.verdict in _SAID and row.code is not Code.UNTRUSTED
        if isinstance(row, Change) and row.pairs and is_judged:
            said.setdefault(row.workload, {})[row.metric] = _SAID[row.verdict]
    return said


def _comparable(known: Earlier, then: Run, now: Run) -> Earlier:
    """Leave out workloads that measure something else by now."""
    same = {
        workload.workload
        for workload in then.measured
        if _facts(workload) in map(_facts, now.measured)
    }
    kept: tuple[Paired, ...] = tuple(each for each in known.paired if each.workload in same)
    return msgspec.structs.replace(known, paired=kept)


def _facts(workload: Measured) -> tuple[object, ...]:
    return (
        workload.workload,
        workload.parameters,
        workload.protocol.statistic,
        workload.items_per_step,
        workload.item_unit,
        workload.precision,
        workload.knobs,
    )


def _spell_source(source: Source) -> str:
    return source.commit[:12] + (" with changed files" if source.dirty else "")
