"""A claim is proven where the whole interval of its pairs lies beyond it, and at a look alone."""

import math
import random

import pytest

from ci_perf.errors import UsageError
from ci_perf.features.proof.claims import decide, read_claims
from ci_perf.judging.policy import LOOKS

PAIRS = [(1.0, ratio) for ratio in (0.90, 0.91, 0.89, 0.90, 0.92, 0.88)] * 3


def faster(size):
    (claim,) = read_claims([f"w={size}"], [])
    return claim


def smaller(size):
    (claim,) = read_claims([], [f"w={size}"])
    return claim


@pytest.mark.parametrize(
    ("size", "holds", "pairs"), [("5%", True, 6), ("9.9%", False, 18), ("20%", False, 6)]
)
def test_a_claim_holds_where_the_whole_interval_lies_beyond_it(size, holds, pairs):
    answer = decide(faster(size), PAIRS)

    assert (answer.holds, answer.pairs) == (holds, pairs)
    assert answer.low < answer.gain < answer.high
    assert answer.gain == pytest.approx(0.1, abs=0.001)


def test_between_two_looks_nothing_is_said():
    assert decide(faster("5%"), PAIRS[:5]).holds is None
    assert decide(faster("8%"), PAIRS[:8]) == decide(faster("8%"), PAIRS[:6])


def test_several_claims_share_the_chance_of_a_false_proof():
    alone, shared = (decide(faster("5%"), PAIRS, claims=count) for count in (1, 4))

    assert shared.low < alone.low
    assert 0.98 < alone.certainty < shared.certainty < 1


@pytest.mark.parametrize(("size", "holds"), [("64MiB", True), ("128MiB", False), ("30%", True)])
def test_less_memory_is_a_size_or_a_share(size, holds):
    mib = 2**20
    pairs = [(300 * mib, 200 * mib)] * LOOKS[0]

    assert decide(smaller(size), pairs).holds is holds


def test_a_claim_as_large_as_the_truth_is_proven_as_seldom_as_alpha_says():
    seeded, proven = random.Random(7), 0
    for _ in range(1000):
        pairs = [
            (math.exp(seeded.gauss(0, 0.02)), 0.95 * math.exp(seeded.gauss(0, 0.02)))
            for _ in range(LOOKS[-1])
        ]
        proven += decide(faster("5%"), pairs).holds is True

    assert proven / 1000 <= 0.05


def test_a_tenth_is_proven_on_a_typical_machine():
    seeded, proven = random.Random(7), 0
    for _ in range(300):
        pairs = [(1.0, 0.9 * math.exp(seeded.gauss(0, 0.02))) for _ in range(LOOKS[-1])]
        proven += decide(faster("5%"), pairs).holds is True

    assert proven / 300 >= 0.95


def test_a_name_may_hold_an_equals_sign():
    (claim,) = read_claims(["matmul.size=64=5%"], [])

    assert (claim.workload, claim.size.relative) == ("matmul.size=64", 0.05)


@pytest.mark.parametrize(
    "text", ["w", "w=", "=5%", "w=0%", "w=100%", "w=-5%", "w=5", "w=5 MiB", "w=much", "w=nan%"]
)
def test_what_is_no_claim_is_refused_with_an_example(text):
    with pytest.raises(UsageError, match=r"--faster: .*train_step=5%"):
        read_claims([text], [])


def test_no_claim_and_two_of_the_same_are_refused():
    with pytest.raises(UsageError, match="--faster NAME=5%"):
        read_claims([], [])
    with pytest.raises(UsageError, match="expected one claim of w, found several"):
        read_claims(["w=5%", "w=6%"], [])
