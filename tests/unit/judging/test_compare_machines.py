"""What two sides must have in common to be compared: machine, parameters, software, work."""

from typing import Any

import msgspec
import pytest

from ci_perf.errors import ExitCode
from ci_perf.judging import compare, summarise
from ci_perf.judging.policy import default_limits
from ci_perf.model.comparison import Numerics, Verdict
from ci_perf.model.process import Fingerprint
from ci_perf.model.run import OtherEnvironment
from ci_perf.model.suite import Limits, Protocol, Tiers
from tests.comparisons import an_interleaved
from tests.histories import in_turns, judged, pairs
from tests.runs import (
    GPU,
    MIB,
    STEADY,
    a_failed,
    a_measured,
    a_run,
    an_environment,
)


def gpu_with(memory_bytes):
    return an_environment(hard=msgspec.structs.replace(GPU, gpu_memory_bytes=memory_bytes))


FULL, HALF = GPU.gpu_memory_bytes, GPU.gpu_memory_bytes // 2
PLAIN = a_measured("a", *STEADY)


def with_parameters(**parameters):
    return a_run(a_measured("a", *STEADY, parameters=parameters))


@pytest.mark.parametrize(
    ("base", "head", "note"),
    [
        (a_run(PLAIN), a_run(PLAIN, environment=gpu_with(FULL)), "device: cpu → cuda"),
        (
            a_run(PLAIN, environment=gpu_with(FULL)),
            a_run(PLAIN, environment=gpu_with(HALF)),
            f"another machine: gpu_memory_bytes: {FULL} → {HALF}",
        ),
        (
            with_parameters(batch=64),
            with_parameters(batch=128),
            "other parameters: batch: 64 → 128",
        ),
        (
            with_parameters(batch=64),
            with_parameters(batch=64, amp=True),
            "other parameters: amp: none → True",
        ),
        # Values that differ only by their type are told apart.
        (
            with_parameters(batch=1, dtype="None"),
            with_parameters(batch="1", dtype="none"),
            "other parameters: batch: 1 → '1', dtype: None → none",
        ),
        (
            a_run(PLAIN),
            a_run(msgspec.structs.replace(PLAIN, protocol=Protocol(processes=3, statistic="min"))),
            "a step is not the same on both sides: statistic: median → min",
        ),
    ],
    ids=["machine", "memory of the GPU", "parameters", "new parameter", "types", "statistic"],
)
def test_what_is_incomparable_says_why(base, head, note):
    comparison = judged(base, head)

    row = comparison.rows[0]
    assert (row.verdict, row.code) == (Verdict.INCONCLUSIVE, "not_comparable")
    assert note in row.note
    assert comparison.exit_code == ExitCode.NO_ANSWER


def test_two_boards_of_one_model_compare_though_their_memory_differs_by_some_mebibytes():
    other = gpu_with(FULL - 3 * MIB)
    comparison = judged(a_run(PLAIN, environment=gpu_with(FULL)), a_run(PLAIN, environment=other))

    assert comparison.verdict is Verdict.UNCHANGED
    assert comparison.head.machine == other.hard


def test_a_run_in_which_everything_failed_knows_its_machine():
    comparison = judged(a_run(), a_run(a_failed("a"), environment=an_environment(hard=GPU)))

    assert comparison.head.machine == GPU


def numerics_of(comparison):
    return [row for row in comparison.rows if isinstance(row, Numerics)]


def test_numerics_that_no_baseline_can_judge_are_those_of_the_launched_base():
    before = a_run(a_measured("w", *STEADY, parameters={"n": 1}, losses=(2.0,)))
    head = a_run(a_measured("w", *STEADY, parameters={"n": 2}, losses=(3.0,)))
    launched = pairs(1.0, losses=(3.0,), base={"losses": (3.0,)})

    alone, paired = judged(before, head), judged(before, in_turns(head, launched))

    assert numerics_of(alone) == []
    (row,) = numerics_of(paired)
    assert row.verdict is Verdict.UNCHANGED


def test_numerics_that_vary_are_told_of_what_has_a_limit_and_compares_or_is_new():
    before, other = (a_measured("w", *STEADY, parameters={"n": n}, losses=(1.0,)) for n in (1, 2))
    first, *rest = before.processes
    varying = msgspec.structs.replace(first, fingerprint=Fingerprint(losses=(2.0,)))
    head = a_run(msgspec.structs.replace(before, processes=(varying, *rest)))

    assert len(numerics_of(judged(a_run(before), head))) == len(numerics_of(judged([], head))) == 1
    assert numerics_of(judged(a_run(other), head)) == []
    assert numerics_of(judged(a_run(before), head, limits=Limits(default={}))) == []


def test_other_software_is_compared_and_named_unless_a_team_makes_it_a_hard_fact():
    sides = a_run(PLAIN, environment=an_environment(torch="2.12.0")), a_run(PLAIN)
    comparison = judged(*sides)

    assert [(d.field, d.base, d.head) for d in comparison.differences] == [
        ("torch", "2.12.0", "2.13.0")
    ]
    assert comparison.verdict is Verdict.UNCHANGED
    hard = judged(*sides, tiers=Tiers(hard=("torch",)))
    assert hard.rows[0].code == "not_comparable"


@pytest.mark.parametrize(
    ("packages", "fields"),
    [(("", "a" * 16), []), (("a" * 16, ""), []), (("b" * 16, "a" * 16), ["packages"])],
)
def test_packages_that_an_older_record_does_not_know_are_no_difference(packages, fields):
    sides = [a_run(PLAIN, environment=an_environment(packages=each)) for each in packages]

    assert [each.field for each in judged(*sides).differences] == fields


def test_a_baseline_says_nothing_of_a_base_that_another_python_launched():
    """Other packages made it."""
    gone = msgspec.structs.replace(PLAIN, workload="gone")
    base = summarise.run(a_run(gone, PLAIN), label="")
    upgrade = an_interleaved(environment=OtherEnvironment(python="/old/bin/python"))
    head = summarise.run(a_run(PLAIN, interleaved=upgrade), label="")
    nothing = msgspec.structs.replace(base, subjects=())
    given: dict[str, Any] = {"limits": Limits(default=default_limits()), "tiers": Tiers()}

    assert compare.compare(base, head).rows == compare.compare(nothing, head).rows
    assert compare.count_suspects(base, head, **given) == 2
    assert compare.count_suspects(nothing, head, **given) == 2
