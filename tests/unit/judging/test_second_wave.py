"""Two waves: the suspects of all nodes are counted before any node launches a pair."""

import msgspec
import pytest

from ci_perf.errors import InvalidFileError
from ci_perf.judging import compare, launch_numbers, merging, second_wave, summarise
from ci_perf.judging.merging import ShardRun
from ci_perf.judging.policy import default_limits
from ci_perf.model import codec
from ci_perf.model.comparison import Verdict
from ci_perf.model.run import Run, Source
from ci_perf.model.suite import Limits, Tiers
from tests.comparisons import an_interleaved
from tests.histories import DAYS, a_history, in_turns, pairs, row_of, scaled
from tests.runs import GPU, STEADY, a_failed, a_measured, a_run, an_environment
from tests.work_plans import a_shard, a_unit, a_work_plan

LIMITS = Limits(default=default_limits())
NAMES = ("calm", "slow", "noisy", "quiet")
FACTORS = {"calm": 1.0, "slow": 1.3, "noisy": 1.08, "quiet": 1.0}
BASE = a_history(
    *[
        a_run(
            *[a_measured(n, *scaled(STEADY, day)) for n in NAMES],
            environment=an_environment(node=""),
        )
        for day in DAYS
    ]
)


def judged(run):
    return compare.compare(BASE, summarise.run(run, label="run.json"), limits=LIMITS)


def suspected(run):
    return compare.suspected(BASE, summarise.run(run, label=""), limits=LIMITS, tiers=Tiers())


def first_wave(**more):
    """What two nodes have screened: heads only, without a pair."""
    plan = a_work_plan(
        a_unit("calm", "slow", id="1-of-2", against="main"),
        a_unit("noisy", "quiet", id="2-of-2", against="main"),
        against="main",
    )
    heads = [a_measured(name, *scaled(STEADY, FACTORS[name])) for name in NAMES]
    whole = msgspec.structs.replace(
        a_run(*heads), interleaved=an_interleaved(stopped="budget", suspects=1), **more
    )
    written = [
        a_shard(whole, unit, node=node * 12) for unit, node in zip(plan.units, "ab", strict=True)
    ]
    (merged,) = merging.merge(plan, written).values()
    return merging.with_suspects(merged, BASE, limits=LIMITS, tiers=Tiers())


FIRST = first_wave()
SUSPECTED = {name: metrics for name, (metrics, _) in suspected(FIRST).items()}


def second_run(**ratios):
    """Two nodes launch the pairs of one suspect each; the heads of these nodes look unchanged."""
    units = [
        a_unit(
            name,
            id=f"pairs-{number}-of-2",
            against="main",
            suspected={name: SUSPECTED[name]},
            suspects=sum(map(len, SUSPECTED.values())),
        )
        for number, name in enumerate(SUSPECTED, 1)
    ]
    plan = a_work_plan(*units, against="main")
    written = []
    for unit in units:
        (name,) = unit.workloads
        run = in_turns(
            a_run(a_measured(name, *STEADY)),
            pairs(ratios[name]),
            workload=name,
            suspected=unit.suspected,
            suspects=unit.suspects,
            pairs=18,
        )
        written.append(a_shard(run, unit, node="c" * 12))
    (merged,) = merging.merge(plan, written).values()
    return merged


def completed(second, first=FIRST):
    return second_wave.completed(ShardRun(label="first.json", run=first), second)


def test_the_suspects_of_all_nodes_are_what_the_second_wave_launches():
    found = suspected(FIRST)

    assert list(found) == ["slow", "noisy"]  # the worst one first
    assert all("step_time_s" in metrics for metrics, _ in found.values())
    assert FIRST.interleaved is not None
    assert FIRST.interleaved.suspects == sum(len(metrics) for metrics, _ in found.values())


def test_pairs_of_the_second_wave_decide_and_the_first_wave_keeps_the_rest():
    whole = completed(second_run(slow=1.3, noisy=1.0))

    comparison = judged(whole)
    assert row_of(comparison, workload="slow").verdict is Verdict.REGRESSED
    assert row_of(comparison, workload="noisy").verdict is Verdict.UNCHANGED
    assert row_of(comparison, workload="calm").verdict is Verdict.UNCHANGED
    assert comparison.exit_code == 1
    assert whole.interleaved is not None
    assert whole.interleaved.suspects == FIRST.interleaved.suspects
    by_node = {session.node[0]: session.workloads for session in whole.sessions}
    assert (by_node["a"], by_node["b"]) == (("calm",), ("quiet",))
    assert codec.decode(codec.encode(whole), Run, name="whole") == whole


def test_no_screen_of_a_second_node_clears_what_was_suspicious():
    second = second_run(slow=1.3, noisy=1.0)
    alone = msgspec.structs.replace(second, paired=())

    still = compare.undecided(BASE, summarise.run(alone, label=""), limits=LIMITS, tiers=Tiers())[0]

    assert set(still) == {"slow", "noisy"}


def test_a_node_does_not_say_how_many_suspects_share_alpha():
    units = [
        a_unit(
            name, id=f"pairs-{name}", against="main", suspected={name: SUSPECTED[name]}, suspects=9
        )
        for name in SUSPECTED
    ]
    plan = a_work_plan(*units, against="main")
    liars = [
        a_shard(
            in_turns(
                a_run(a_measured(*unit.workloads, *STEADY)),
                pairs(1.3),
                workload=unit.workloads[0],
                suspects=1_000_000,
            ),
            unit,
        )
        for unit in units
    ]

    (merged,) = merging.merge(plan, liars).values()

    assert merged.interleaved is not None
    assert merged.interleaved.suspects == 9
    assert merged.interleaved.suspected == SUSPECTED


def test_a_suspect_that_no_node_has_launched_is_a_failed_row():
    units = [
        a_unit(
            "slow",
            id="pairs-1-of-1",
            against="main",
            suspected={"slow": ("step_time_s",)},
            suspects=2,
        )
    ]
    (lost,) = merging.merge(a_work_plan(*units, against="main"), []).values()

    whole = completed(lost)

    assert [failed.workload for failed in whole.failed] == ["slow"]
    assert "no node has measured it" in whole.failed[0].reason
    assert judged(whole).exit_code == 3


def test_a_head_that_fails_in_the_second_wave_has_failed():
    second = second_run(slow=1.3, noisy=1.0)
    slow = [each for each in second.measured if each.workload != "slow"]
    failed = msgspec.structs.replace(
        second,
        measured=tuple(slow),
        failed=(a_failed("slow"),),
        paired=tuple(each for each in second.paired if each.workload != "slow"),
    )

    whole = completed(failed)

    assert [each.workload for each in whole.failed] == ["slow"]
    assert "slow" not in [each.workload for each in whole.measured]


@pytest.mark.parametrize(
    ("first", "words"),
    [
        (
            msgspec.structs.replace(
                FIRST, source=Source(commit="f" * 40, branch="main", dirty=False)
            ),
            "expected commit",
        ),
        (msgspec.structs.replace(FIRST, suite="other"), "expected suite 'smoke'"),
        (
            msgspec.structs.replace(
                FIRST,
                interleaved=an_interleaved(
                    source=Source(commit="e" * 40, branch="main", dirty=False)
                ),
            ),
            "expected base",
        ),
        (
            msgspec.structs.replace(FIRST, environment=an_environment(hard=GPU)),
            "expected a machine as that of the second wave",
        ),
        (
            msgspec.structs.replace(
                a_run(a_measured("calm", *STEADY)), interleaved=FIRST.interleaved
            ),
            "expected workload 'noisy'",
        ),
    ],
    ids=["commit", "suite", "base", "machine", "workload"],
)
def test_waves_that_do_not_belong_together_are_refused(first, words):
    with pytest.raises(InvalidFileError, match=words):
        completed(second_run(slow=1.3, noisy=1.0), first)


def at_world_size(size, step_s):
    return a_measured(
        f"ddp.world_size={size}",
        *scaled(STEADY, step_s),
        parameters={"world_size": size},
        items_per_step=8.0 * size,
    )


def scaling(run):
    """The scaling efficiency of the first process of each workload, by its world size."""
    return {
        each.world_size: launch_numbers.of_workload(each, run)[0].get("scaling_efficiency")
        for each in run.measured
    }


@pytest.mark.parametrize(("suspect", "efficiency"), [(2, 0.5), (1, 0.8)])
def test_world_sizes_are_compared_within_the_session_that_launched_both(suspect, efficiency):
    """Node a scales by 0.8, node b, which launches the pairs, by 0.5 and is ten times slower."""
    other = 3 - suspect
    names = {size: f"ddp.world_size={size}" for size in (1, 2)}
    screened = a_unit(*names.values(), against="main")
    first = a_shard(
        a_run(at_world_size(1, 1.0), at_world_size(2, 1 / 0.8), interleaved=an_interleaved()),
        screened,
        node="a" * 12,
    )
    (screen,) = merging.merge(a_work_plan(screened, against="main"), [first]).values()
    unit = a_unit(
        names[1],
        names[2],
        id="pairs-1-of-1",
        against="main",
        suspected={names[suspect]: ("step_time_s",), names[other]: ()},
        suspects=1,
    )
    heads = a_run(at_world_size(1, 10.0), at_world_size(2, 20.0))
    run = in_turns(heads, pairs(1.0), workload=names[suspect])
    written = [a_shard(run, unit, node="b" * 12)]
    (merged,) = merging.merge(a_work_plan(unit, against="main"), written).values()

    whole = second_wave.completed(ShardRun(label="first.json", run=screen), merged, [unit])

    assert {s.node[0]: s.workloads for s in whole.sessions} == {
        "a": (names[other],),
        "b": (names[suspect],),
    }
    assert scaling(whole) == {1: None, 2: pytest.approx(efficiency)}
    assert codec.decode(codec.encode(whole), Run, name="whole") == whole
