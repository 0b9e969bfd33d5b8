"""Recorded pairs of nanoGPT's train.py, 100 steps a launch, on two virtual CPUs: how they end.

Each number is log(head / base). A pair took 14 s, in turns of four printed steps or one launch
after the other. The planted loss waits, busy, for a tenth of each step, also of those that were
stopped: so pairs in turns show 14 percent.
"""

import statistics

from tests.confirmations import confirmed

IN_TURNS = [
    -0.0232,
    -0.0011,
    -0.0032,
    0.0105,
    -0.0132,
    -0.0067,
    -0.0098,
    -0.0004,
    0.0151,
    0.0292,
    -0.0263,
    0.0,
    0.011,
    -0.0118,
    0.0085,
    -0.0264,
    -0.012,
    0.0321,
]
SLOWER_IN_TURNS = [
    0.1366,
    0.1326,
    0.1013,
    0.1477,
    0.1005,
    0.1319,
    0.1337,
    0.1343,
    0.154,
    0.159,
    0.1422,
    0.1075,
    0.156,
    0.1334,
]
LAUNCHES = [
    0.4683,
    -0.1008,
    0.0031,
    0.0099,
    -0.0985,
    -0.0346,
    0.0219,
    -0.0204,
    -0.03,
    0.0869,
    -0.0024,
    0.0006,
    0.0008,
    -0.0069,
    -0.0088,
    0.0481,
    0.0015,
]
UNKNOWN = {"prior_df": 0.0, "prior_variance": 0.0, "alpha": 0.05 / 3}


def test_unchanged_pairs_in_turns_end_as_unchanged_and_launches_say_nothing():
    in_turns, launches = (confirmed(each, **UNKNOWN) for each in (IN_TURNS, LAUNCHES))

    assert (in_turns.call, launches.call) == ("unchanged", "inconclusive")
    assert statistics.variance(IN_TURNS) < statistics.variance(LAUNCHES) / 5


def test_a_slower_step_is_proven_at_the_first_look():
    assert confirmed(SLOWER_IN_TURNS[:6], **UNKNOWN).call == "regressed"
