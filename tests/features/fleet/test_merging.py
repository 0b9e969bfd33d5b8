"""Runs of several nodes as one: the verdicts of one session, and nothing planned disappears."""

import random

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ci_perf.errors import InvalidFileError
from ci_perf.features.fleet import merging
from ci_perf.judging import compare, summarise
from ci_perf.judging.policy import default_limits
from ci_perf.model import codec
from ci_perf.model.base import MOST_SECONDS
from ci_perf.model.comparison import Verdict
from ci_perf.model.run import Checks, Earlier, Run, Source, Tool
from ci_perf.model.suite import Limits, Tiers
from ci_perf.model.validity import Status, validity_of
from tests.comparisons import a_plant, an_interleaved
from tests.features.fleet.work_plans import a_shard, a_unit, a_work_plan
from tests.histories import DAYS, a_history, in_turns, pairs, row_of, said, scaled
from tests.runs import (
    GPU,
    SLOW,
    STEADY,
    a_failed,
    a_measured,
    a_reason,
    a_run,
    an_environment,
    some_canaries,
)

LIMITS = Limits(default=default_limits())
NAMES = tuple("abcdef")
NODES = ("a" * 12, "b" * 12, "c" * 12)


def history_of(names, **more):
    """Six quiet sessions of every workload, of which nobody knows the node."""
    return a_history(
        *[
            a_run(
                *[a_measured(name, *scaled(STEADY, day)) for name in names],
                environment=an_environment(node=""),
                **more,
            )
            for day in DAYS
        ]
    )


def judged(run, base):
    return compare.compare(base, summarise.run(run, label="run.json"), limits=LIMITS)


def verdicts(comparison):
    """What is said of each metric, and what a job sees."""
    rows = {
        (row.workload, getattr(row, "metric", "")): (row.verdict, row.code, row.gate)
        for row in comparison.rows
    }
    return rows, comparison.verdict, comparison.exit_code


def a_plan_of(*parts, **more):
    """Return a plan in which each part is the unit of one node."""
    units = [a_unit(*part, id=f"{i}-of-{len(parts)}") for i, part in enumerate(parts, 1)]
    return a_work_plan(*units, **more)


@st.composite
def whole_runs(draw):
    """A run of one node: what moved by how much, and which pairs have been launched of it."""
    factors = {name: draw(st.sampled_from([1.0, 1.0, 1.04, 1.5, 0.9])) for name in NAMES}
    failed = draw(st.sets(st.sampled_from(NAMES), max_size=1))
    run = a_run(
        *(
            a_failed(n) if n in failed else a_measured(n, *scaled(STEADY, factors[n]))
            for n in NAMES
        ),
    )
    run = msgspec.structs.replace(run, interleaved=an_interleaved())
    for name in NAMES:
        count = draw(st.sampled_from([0, 0, 6, 12, 18]))
        if name not in failed and count:
            run = in_turns(run, pairs(factors[name], count=count), workload=name)
    alone = msgspec.structs.replace(run, paired=())
    _, suspects = compare.find_undecided(
        history_of(NAMES), summarise.run(alone, label=""), limits=LIMITS, tiers=Tiers()
    )
    return with_suspects(run, suspects)


def with_suspects(run, suspects):
    how = msgspec.structs.replace(run.interleaved, suspects=suspects)
    return msgspec.structs.replace(run, interleaved=how)


@settings(max_examples=30)
@given(whole_runs(), st.integers(1, 4), st.randoms(use_true_random=False))
def test_merging_in_any_order_gives_the_verdicts_of_the_unsharded_run(whole, shards, chance):
    names = chance.sample(NAMES, len(NAMES))
    parts = [part for i in range(shards) if (part := tuple(names[i::shards]))]
    plan = a_plan_of(*parts, against="main")
    written = [
        a_shard(with_suspects(whole, 1), unit, node=chance.choice(NODES)) for unit in plan.units
    ]
    chance.shuffle(written)
    base = history_of(NAMES)

    (merged,) = merging.merge(plan, written).values()
    merged = merging.with_suspects(merged, base, limits=LIMITS, tiers=Tiers())

    assert merged.interleaved is not None
    assert merged.interleaved.suspects == whole.interleaved.suspects
    assert verdicts(judged(merged, base)) == verdicts(judged(whole, base))
    assert codec.decode(codec.encode(merged), Run, name="merged") == merged


def test_the_order_of_the_files_changes_nothing():
    plan = a_plan_of("ab", "cd", "ef")
    whole = a_run(*[a_measured(name, *STEADY) for name in NAMES])
    written = [a_shard(whole, unit, id=f"run{i}") for i, unit in enumerate(plan.units)]

    merged = [merging.merge(plan, random.Random(i).sample(written, 3)) for i in range(5)]

    assert all(each == merged[0] for each in merged)


def test_what_nobody_has_measured_fails_and_says_so():
    plan = a_plan_of("ab", "c")
    whole = a_run(a_measured("a", *STEADY), a_measured("b", *STEADY), a_measured("c", *STEADY))

    (merged,) = merging.merge(
        plan, [a_shard(whole, plan.units[0])], lost={"2-of-2": "node n7 was lost twice"}
    ).values()
    comparison = judged(merged, history_of("abc"))

    assert [failed.workload for failed in merged.failed] == ["c"]
    assert "no node has measured it: node n7 was lost twice" in merged.failed[0].reason
    assert comparison.verdict is Verdict.FAILED
    assert comparison.exit_code == 3


def test_a_part_of_a_unit_that_is_missing_fails_as_well():
    plan = a_plan_of("ab")
    half = a_run(a_measured("a", *STEADY))

    (merged,) = merging.merge(plan, [a_shard(half, plan.units[0])]).values()

    assert [failed.workload for failed in merged.failed] == ["b"]


def test_a_class_without_any_result_has_only_failed_rows():
    units = [a_unit("a", id=name, machine_class=name) for name in ("h100", "l4")]
    plan = a_work_plan(*units)

    merged = merging.merge(plan, [a_shard(a_run(a_measured("a", *STEADY)), units[0])])

    assert [workload.workload for workload in merged["h100"].measured] == ["a"]
    assert merged["l4"].measured == ()
    assert [failed.workload for failed in merged["l4"].failed] == ["a"]
    assert "class l4" in str(merged["l4"].environment.hard)


def test_each_class_is_a_run_of_its_own():
    units = [a_unit("a", id=name, machine_class=name) for name in ("h100", "cpu")]
    gpu = a_run(a_measured("a", *STEADY), environment=an_environment(hard=GPU))
    cpu = a_run(a_measured("a", *SLOW))

    merged = merging.merge(a_work_plan(*units), [a_shard(cpu, units[1]), a_shard(gpu, units[0])])

    assert merged["h100"].environment.hard == GPU
    assert merged["cpu"].environment.hard == cpu.environment.hard


WHOLE = a_run(a_measured("a", *STEADY), a_measured("b", *STEADY))
PLAN, PAIRED = a_plan_of("a", "b"), a_plan_of("a", "b", against="main")
FIRST, SECOND = PLAN.units


def merge(*nodes, plan=PLAN):
    """Merge the runs of two nodes, each WHOLE but for what differs."""
    shards = [a_shard(WHOLE, unit, **more) for unit, more in zip(plan.units, nodes, strict=True)]
    (run,) = merging.merge(plan, shards).values()
    return run


def test_the_longest_durations_of_a_stranger_leave_a_run_that_can_be_written():
    merged = merge(*[{"duration_s": MOST_SECONDS}] * 2)

    assert codec.decode(codec.encode(merged), Run, name="run.json").duration_s == MOST_SECONDS


@pytest.mark.parametrize(
    ("shard", "message"),
    [
        (a_shard(WHOLE, FIRST, label="again.json"), "'a' from one node, found it in"),
        (
            a_shard(WHOLE, SECOND, source=Source(commit="0" * 40, branch="x", dirty=False)),
            "expected commit 'd4e5f6a7",
        ),
        (a_shard(WHOLE, SECOND, suite="standard"), "expected suite 'smoke'"),
        (a_shard(WHOLE, SECOND, tool=Tool(version="9")), "expected version of ci-perf '0.1.0'"),
        (a_shard(WHOLE, SECOND, environment=an_environment(hard=GPU)), "expected a machine as"),
        (a_shard(WHOLE, SECOND, measured=(a_measured("z", *STEADY),)), "found 'z'"),
        (a_shard(WHOLE, SECOND, measured=WHOLE.measured), "found 'a'"),
        (a_shard(WHOLE, SECOND, unit="9-of-9"), "expected a unit of the plan"),
        (a_shard(WHOLE, SECOND, interleaved=an_interleaved(planted=a_plant("b"))), "on purpose"),
        (
            a_shard(WHOLE, SECOND, interleaved=an_interleaved()),
            "expected no pairs, as the plan has no base",
        ),
    ],
)
def test_what_belongs_to_another_plan_is_refused(shard, message):
    with pytest.raises(InvalidFileError, match=message):
        merging.merge(PLAN, [a_shard(WHOLE, FIRST, id="0"), shard])


def test_a_node_without_the_base_that_was_planned_is_refused():
    plan = a_plan_of("a", against="main")

    with pytest.raises(InvalidFileError, match="expected pairs against 'main'"):
        merging.merge(plan, [a_shard(a_run(a_measured("a", *STEADY)), plan.units[0])])


def test_pairs_against_another_commit_are_refused():
    how = an_interleaved()
    source = Source(commit="1" * 40, branch="main", dirty=False)
    other = msgspec.structs.replace(how, source=source)

    with pytest.raises(InvalidFileError, match="expected pairs against commit"):
        merge({"interleaved": how}, {"interleaved": other}, plan=PAIRED)


def test_a_run_that_was_merged_is_not_merged_again():
    with pytest.raises(InvalidFileError, match="found a merged run"):
        merging.merge(PLAN, [merging.ShardRun(label="run.json", run=merge({}, {}))])


def test_a_run_that_names_no_unit_is_taken_where_there_is_one_class():
    (merged,) = merging.merge(PLAN, [a_shard(WHOLE, a_unit("a", "b"), unit="")]).values()

    assert [workload.workload for workload in merged.measured] == ["a", "b"]


# --- a node speaks for itself


def test_a_node_that_cannot_be_trusted_spoils_its_own_workloads_alone():
    merged = merge({"validity": validity_of((a_reason("gpu_lost"),))}, {})

    comparison = judged(merged, history_of("ab"))

    assert said(comparison, workload="a") == (Verdict.INCONCLUSIVE, "untrusted")
    assert said(comparison, workload="b") == (Verdict.UNCHANGED, "within_limit")
    assert [session.validity.status for session in merged.sessions] == [
        Status.INVALID,
        Status.VALID,
    ]


def test_a_canary_that_moved_on_one_node_silences_its_own_workloads_alone():
    merged = merge(
        {"canaries": some_canaries(before=2e-3), "node": NODES[0]},
        {"canaries": some_canaries(), "node": NODES[1]},
    )

    comparison = judged(merged, history_of("ab", canaries=some_canaries()))

    assert said(comparison, workload="a") == (Verdict.INCONCLUSIVE, "machine_moved")
    assert said(comparison, workload="b") == (Verdict.UNCHANGED, "within_limit")
    assert [session.node for session in merged.sessions] == list(NODES[:2])
    assert comparison.head.nodes == 2


def test_software_of_each_node_stands_with_its_own_workloads():
    merged = merge({}, {"environment": an_environment(torch="2.14.0")})

    subjects = {each.workload: each for each in summarise.run(merged, label="").subjects}

    assert subjects["a"].sessions[0].soft.torch == "2.13.0"
    assert subjects["b"].sessions[0].soft.torch == "2.14.0"


# --- what all nodes together have done


def test_pairs_and_seconds_add_up_and_any_budget_that_ended_is_told():
    more = (
        {"pairs": 6, "spent_s": 10.0, "expected": ("a",)},
        {"pairs": 3, "spent_s": 5.0, "expected": ("b",), "stopped": "budget"},
    )
    how = [msgspec.structs.replace(an_interleaved(), **each) for each in more]

    merged = merge(*({"interleaved": each} for each in how), plan=PAIRED)

    assert (merged.interleaved.pairs, merged.interleaved.spent_s) == (9, 15.0)
    assert merged.interleaved.stopped == "budget"
    assert merged.interleaved.expected == ("a", "b")
    assert merged.duration_s == 2 * WHOLE.duration_s


@pytest.mark.parametrize(
    ("known", "most"), [((1, 3), 3), ((None, 3), None)], ids=["most", "unknown"]
)
def test_nodes_that_disagree_on_earlier_checks_leave_the_smaller_share_of_alpha(known, most):
    merged = merge(*({"checks": Checks(before=before)} for before in known))

    assert merged.checks == Checks(before=most)


def test_pairs_of_an_earlier_attempt_are_joined_again():
    def earlier(name):
        launched = in_turns(a_run(a_measured(name, *STEADY)), pairs(1.0, count=6), workload=name)
        return Earlier(
            run="before",
            started_at="2026-11-20T10:00:00Z",
            check=1,
            suspects=2,
            said={name: {"step_time_s": "inconclusive"}},
            paired=launched.paired,
        )

    merged = merge(
        *({"interleaved": an_interleaved(), "earlier": (earlier(name),)} for name in "ab"),
        plan=PAIRED,
    )

    (joined,) = merged.earlier
    assert sorted(paired.workload for paired in joined.paired) == ["a", "b"]
    assert set(joined.said) == {"a", "b"}


def test_a_row_that_regressed_on_one_node_is_one_of_the_whole_run():
    plan = a_plan_of("a", "b", against="main")
    whole = msgspec.structs.replace(WHOLE, interleaved=an_interleaved())
    slow = in_turns(a_run(a_measured("b", *SLOW)), pairs(2.0), workload="b")
    (merged,) = merging.merge(
        plan, [a_shard(whole, plan.units[0]), a_shard(slow, plan.units[1])]
    ).values()

    comparison = judged(merged, history_of("ab"))

    assert row_of(comparison, workload="b").verdict is Verdict.REGRESSED
    assert comparison.exit_code == 1
