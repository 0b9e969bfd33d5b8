"""Workloads divided among nodes: all of them, once, and no node much longer than it must."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_perf.features.fleet import sharding
from tests.plans import a_planned


def divided(lengths, shards):
    """Divide workloads w0, w1, … whose launches take so long."""
    workloads = [a_planned(f"w{i}") for i in range(len(lengths))]
    launches_s = {f"w{i}": length for i, length in enumerate(lengths)}
    return sharding.divide(workloads, launches_s, shards)


lengths = st.lists(st.floats(0.1, 1000), min_size=1, max_size=30)


@given(lengths, st.integers(1, 12))
def test_every_workload_is_in_one_shard(lengths, shards):
    parts = divided(lengths, shards)

    assert len(parts) == min(shards, len(lengths))
    assert sorted(name for part in parts for name in part.workloads) == sorted(
        f"w{i}" for i in range(len(lengths))
    )


@given(lengths, st.integers(1, 12))
def test_no_shard_takes_longer_than_the_rule_promises(lengths, shards):
    loads = [part.expected_s for part in divided(lengths, shards)]
    launches = a_planned("w").protocol.processes
    total, longest = launches * math.fsum(lengths), launches * max(lengths)

    # Graham's bound for any order; the longest first only betters it.
    assert max(loads) <= (total / shards + (1 - 1 / shards) * longest) * (1 + 1e-9)


@given(st.permutations(range(6)))
def test_the_longest_come_first_whatever_their_order(order):
    parts = divided([[60, 50, 40, 30, 20, 10][i] for i in order], 2)

    # 60 + 30 + 20 and 50 + 40 + 10: the best that there is, apart from an even 105.
    assert sorted(part.expected_s for part in parts) == [500, 550]


def test_a_workload_of_unknown_length_takes_as_long_as_others():
    workloads = [a_planned(name) for name in "abcd"]

    parts = sharding.divide(workloads, {"a": 30.0, "b": 10.0, "c": 20.0}, 2)

    assert [part.expected_s for part in parts] == [200, 200]  # 30 + 10, and 20 + the usual 20


def test_where_nothing_is_known_only_the_number_of_workloads_counts():
    parts = divided_without_lengths(7, 3)

    assert sorted(len(part.workloads) for part in parts) == [2, 2, 3]


def divided_without_lengths(count, shards):
    return sharding.divide([a_planned(f"w{i}") for i in range(count)], {}, shards)


def test_no_shard_is_empty():
    assert [len(part.workloads) for part in divided_without_lengths(2, 4)] == [1, 1]


def test_the_workloads_of_a_shard_stand_in_the_order_of_the_suite():
    (part,) = divided([1.0, 30.0, 2.0, 20.0], 1)

    assert part.workloads == ("w0", "w1", "w2", "w3")


@pytest.mark.parametrize(
    ("id_of", "parameters"),
    [
        ("ddp.world_size={}", [{"world_size": 1}, {"world_size": 4}]),
        ("mlp.compile={}.size=8", [{"compile": False, "size": 8}, {"compile": True, "size": 8}]),
    ],
    ids=["scaling efficiency", "break-even"],
)
def test_what_is_compared_within_a_session_stays_on_one_node(id_of, parameters):
    together = [
        a_planned(id_of.format(str(next(iter(p.values()))).lower()), parameters=p)
        for p in parameters
    ]

    parts = sharding.divide([*together, a_planned("other")], {}, 3)

    assert [len(part.workloads) for part in parts] == [2, 1]
    assert parts[0].workloads == tuple(workload.id for workload in together)
