"""The pull requests that `benchmarks.nodes` draws, and what it counts."""

import numpy as np
import pytest

from benchmarks import nodes
from benchmarks.nodes import FLEETS, Fleet
from ci_perf.model.comparison import Change


def drawn(fleet, *, change=0.0, seed=1):
    return nodes.draw(fleet, np.random.default_rng(seed), change=change)


@pytest.mark.parametrize("fleet", FLEETS, ids=lambda fleet: fleet.name)
def test_sessions_and_heads_are_on_the_nodes_that_the_row_names(fleet):
    pull = drawn(fleet)
    measured = {f"node{node}" for node in fleet.measured_on} if fleet.knows_nodes else {""}
    recorded = {f"node{i}" for i in range(fleet.recorded_on)} if fleet.knows_nodes else {""}

    assert set(pull.head_nodes) <= measured
    assert set(pull.session_nodes) <= recorded


def test_a_node_is_as_fast_in_its_pairs_as_in_its_own_launches():
    pull = drawn(Fleet("far apart", 1, range(1, 2), spread=5.0))

    assert np.allclose(pull.pairs.mean(axis=(1, 2)), pull.head.mean(axis=1), atol=0.1)
    assert np.abs(pull.head.mean(axis=1) - pull.sessions.mean(axis=(1, 2))).max() > 1.0


def test_a_change_is_in_one_workload_and_on_the_side_of_the_head_alone():
    fleet = FLEETS[0]
    moved = drawn(fleet, change=1.0).pairs - drawn(fleet).pairs

    assert np.allclose(moved[0], [0.0, 1.0])
    assert np.allclose(moved[1:], 0.0)


def test_a_large_change_is_found_and_nothing_else_by_the_judge_of_the_product():
    comparison, pairs = nodes.judge(drawn(FLEETS[0], change=0.5))

    regressed = {
        row.workload
        for row in comparison.rows
        if isinstance(row, Change) and row.verdict.value == "regressed"
    }
    assert regressed == {"0"}
    assert 20 <= pairs <= 360  # no history of another node clears any of the 20
