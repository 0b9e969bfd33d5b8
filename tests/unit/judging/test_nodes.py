"""A history of some nodes and a head on one of them: who may clear whom."""

import msgspec
import pytest

from ci_perf.judging import nodes
from ci_perf.model.comparison import Verdict
from ci_perf.model.metrics import DEVICE_TIME, GRAPHS, STEP_TIME
from tests.histories import DAYS, a_head, in_turns, judged, pairs, said, scaled
from tests.runs import STEADY, a_measured, a_run, an_environment, some_canaries
from tests.subjects import a_session

A, B, C, D = (letter * 12 for letter in "abcd")


def history_on(*names, factors=None, **more):
    """Twelve quiet sessions, on these nodes in turns; `factors` say how slow each is."""
    return [
        a_run(
            a_measured("w", *scaled(STEADY, day * (factors or {}).get(names[i % len(names)], 1.0))),
            environment=an_environment(node=names[i % len(names)]),
            **more,
        )
        for i, day in enumerate(DAYS * 2)
    ]


CLEARED, OPEN = (Verdict.UNCHANGED, "within_limit"), (Verdict.INCONCLUSIVE, "too_few_sessions")
NODES = {
    "its own node": ([A], A, CLEARED),
    "another node": ([A], B, OPEN),
    "two other nodes": ([A, B], C, OPEN),
    "one of two nodes": ([A, B], B, CLEARED),
    "three other nodes": ([A, B, C], D, CLEARED),
    "a history that knows no node": ([""], B, CLEARED),
    "a head that knows no node": ([A], "", CLEARED),
}


@pytest.mark.parametrize(("known", "head", "expected"), NODES.values(), ids=NODES)
def test_who_may_clear_a_head(known, head, expected):
    run = a_head(environment=an_environment(node=head))

    assert said(judged(history_on(*known), run)) == expected


def test_a_node_that_is_slower_is_no_loss_of_its_own_workloads():
    history = history_on(A, B, factors={A: 1.0, B: 1.08})

    head = a_head(scaled(STEADY, 1.08), environment=an_environment(node=B))
    assert said(judged(history, head)) == CLEARED


def test_three_nodes_that_differ_clear_nothing_on_a_fourth():
    history = history_on(A, B, C, factors={A: 0.93, B: 1.0, C: 1.08})

    verdict, _ = said(judged(history, a_head(environment=an_environment(node=D))))

    assert verdict is Verdict.INCONCLUSIVE


@pytest.mark.parametrize("factor", [0.5, 1.08, 2.0])
def test_however_far_another_node_lies_nobody_is_blamed_without_pairs(factor):
    head = a_head(scaled(STEADY, factor), environment=an_environment(node=B))

    assert said(judged(history_on(A), head)) == OPEN


def test_pairs_on_the_heads_own_node_answer_what_no_history_can():
    head = a_head(scaled(STEADY, 1.08), environment=an_environment(node=B))

    assert said(judged(history_on(A), in_turns(head, pairs(1.0))))[0] is Verdict.UNCHANGED
    assert said(judged(history_on(A), in_turns(head, pairs(1.1))))[0] is Verdict.REGRESSED


def test_memory_and_counts_are_the_same_on_every_node():
    sessions = [msgspec.structs.replace(a_session({"graphs": 3.0}), node=A)]

    assert nodes.sessions_for(sessions, B, GRAPHS).obstacle is None
    assert nodes.sessions_for(sessions, B, STEP_TIME).sessions == tuple(sessions)
    assert nodes.sessions_for(sessions, B, DEVICE_TIME).obstacle is None  # it is never judged


def test_an_epoch_that_another_node_began_is_not_known_on_this_one():
    old = msgspec.structs.replace(a_session({"step_time_s": 1.0}, day=1), node=B)
    new = msgspec.structs.replace(
        a_session({"step_time_s": 2.0}, day=2, epochs={"step_time_s": 1}), node=A
    )

    assert nodes.sessions_for([old, new], B, STEP_TIME).obstacle == "too_few_sessions"


def test_canaries_of_another_node_say_nothing_of_this_one():
    history = history_on(A, canaries=some_canaries())
    head = a_head(environment=an_environment(node=B), canaries=some_canaries(before=1.2e-3))

    assert judged(history, head).validity.reasons == ()


def test_canaries_of_the_same_node_still_tell_that_it_has_moved():
    history = history_on(A, B, canaries=some_canaries())
    head = a_head(environment=an_environment(node=B), canaries=some_canaries(before=1.2e-3))

    assert said(judged(history, head)) == (Verdict.INCONCLUSIVE, "machine_moved")


def test_what_other_nodes_differ_by_is_no_noise_of_a_workload_that_this_node_knows():
    def measured(node, day, factor):
        known = a_measured("known", *scaled(STEADY, day))
        elsewhere = a_measured("elsewhere", *scaled(STEADY, day * factor))
        both = (known,) if node == D else (known, elsewhere)
        return a_run(*both, environment=an_environment(node=node))

    factors = {D: 1.0, A: 0.85, B: 1.0, C: 1.18}
    history = [measured(node, day, factor) for day in DAYS for node, factor in factors.items()]

    def interval_of_known(*beside):
        head = a_run(a_measured("known", *STEADY), *beside, environment=an_environment(node=D))
        rows = judged(history, head).rows
        (row,) = (r for r in rows if (r.workload, r.metric) == ("known", STEP_TIME.name))
        return row.interval

    assert interval_of_known(a_measured("elsewhere", *STEADY)) == interval_of_known()
