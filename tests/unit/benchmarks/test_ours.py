"""The benchmark asks our judge as a pull request would."""

import math

import numpy as np
import pytest

from benchmarks.verdicts import ours, regimes
from benchmarks.verdicts.observed import INCONCLUSIVE, SILENT, SLOWER
from ci_perf.judging import decide
from ci_perf.judging.candidates import Candidate, Costs
from ci_perf.judging.metric_values import History
from ci_perf.judging.policy import LOOKS, PolicyKind, policy_of
from ci_perf.model.metrics import STEP_TIME
from ci_perf.model.suite import Limit

TIME = policy_of(PolicyKind.TIME)
QUIET = regimes.REGIMES[0]
SUITE = 20


def observed(changes, regime=QUIET):
    return regimes.simulate(
        regime,
        pull_requests=len(changes) // SUITE,
        suite=SUITE,
        changes=np.asarray(changes),
        random=np.random.default_rng(11),
    )


def test_workloads_that_pass_the_screen_cost_few_launches():
    judged = ours.judge(observed([0.0] * SUITE), range(SUITE), TIME)

    assert set(judged.calls) == {SILENT}
    assert np.median(judged.launches) == 1


def test_a_change_is_confirmed_by_pairs():
    judged = ours.judge(observed([0.0] * 7 + [0.1] + [0.0] * 12), [7], TIME)

    assert list(judged.calls) == [SLOWER]
    assert 1 + 2 * LOOKS[0] <= judged.launches[0] <= 3 + 2 * LOOKS[0]


def test_the_answer_for_a_row_does_not_depend_on_which_rows_are_asked_for():
    seen = observed([0.0] * 25 + [0.05] * 15, regimes.REGIMES[2])
    everything = ours.judge(seen, range(40), TIME)
    some = ours.judge(seen, [3, 26, 39], TIME)

    assert list(some.calls) == [everything.calls[row] for row in (3, 26, 39)]
    assert list(some.launches) == [everything.launches[row] for row in (3, 26, 39)]


def test_a_workload_that_no_number_of_pairs_settles_is_inconclusive():
    wild = regimes.Regime("wild", (0.01, 0.01), (0.5, 0.5), (0.01, 0.01))
    judged = ours.judge(observed([0.0] * SUITE, wild), range(SUITE), TIME)

    assert set(judged.calls) == {INCONCLUSIVE}
    assert set(judged.launches) == {1 + 2.0 * LOOKS[-1]}


@pytest.mark.parametrize("regime", [regimes.REGIMES[1], regimes.REGIMES[2]])
def test_what_the_benchmark_says_the_product_says_of_the_same_launches(regime):
    seen = observed([0.0] * 15 + [0.05] * 5, regime)

    workloads = ours.pull_request(seen, 0, TIME)

    decisions = decide.decide(
        [
            Costs(
                of=Candidate(
                    workload="w",
                    metric=STEP_TIME,
                    limit=Limit(relative=math.expm1(TIME.limit)),
                    history=None,
                    head=(),
                ),
                policy=TIME,
                history=History(current=one.sessions),
                head=one.head,
                pairs=one.turns[: one.pairs],
            )
            for one in workloads
        ]
    )
    for one, decision in zip(workloads, decisions, strict=True):
        assert decision.change
        said = one.outcome.call if one.outcome else "unchanged"
        assert (decision.change.verdict.value, decision.is_open) == (said, False)
        assert not one.outcome or decision.change.pairs == one.outcome.pairs
