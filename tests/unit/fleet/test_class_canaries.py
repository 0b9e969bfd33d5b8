"""How fast the nodes of a class are, by what sessions are known."""

import pytest

from ci_perf.baselines import layout
from ci_perf.baselines.accept import Mode
from ci_perf.fleet.class_canaries import ClassCanaries
from ci_perf.model.fleet import Expectation, NodeClass
from tests.accepting import accepted
from tests.runs import CPU, GPU, a_measured, a_run, an_environment, some_canaries

CLASS = NodeClass(expect=Expectation(device="cpu"), canary_limit=0.5)


def heard(*nodes, known=None, hard=CPU, before=1e-3):
    known = known or ClassCanaries()
    for node in nodes:
        environment = an_environment(hard=hard, node=node * 12)
        known.hear(a_run(environment=environment, canaries=some_canaries(before=before)))
    return known


def test_three_nodes_say_how_slow_a_fourth_may_be():
    (bounds,) = heard(*"abc").check(CLASS).bounds

    assert bounds.machine == CPU
    assert bounds.canaries["matmul"].most_s == pytest.approx(1.5e-3)


def test_one_node_that_measures_three_units_says_nothing():
    check = heard(*"aaa").check(CLASS)

    assert check.bounds == ()
    assert check.expect == CLASS.expect


def test_each_kind_of_machine_has_its_own_canaries():
    known = heard(*"abc", known=heard(*"abc"), hard=GPU, before=2e-3)

    usual_s = {b.machine: b.canaries["matmul"].usual_s for b in known.check(CLASS).bounds}
    assert usual_s == {CPU: pytest.approx(1e-3), GPU: pytest.approx(2e-3)}


def test_a_committed_session_counts_once_however_many_workloads_it_has(tmp_path):
    for number in range(3):
        run = a_run(
            a_measured("a", 1e-3),
            a_measured("b", 1e-3),
            id=f"run-{number}",
            canaries=some_canaries(),
        )
        accepted(tmp_path, run, mode=Mode.APPEND)
    known = ClassCanaries(layout.read_everything(tmp_path))

    (bounds,) = known.check(CLASS).bounds
    assert bounds.canaries["matmul"].sessions == 3
