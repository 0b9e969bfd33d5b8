"""What two sides must have in common to be compared: machine, parameters, software, work."""

import msgspec

from ci_perf.errors import ExitCode
from ci_perf.model.comparison import Numerics, Verdict
from ci_perf.model.suite import Protocol, Tiers
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


def test_another_machine_is_incomparable_and_says_which_fields():
    comparison = judged(
        a_run(a_measured("a", *STEADY)),
        a_run(a_measured("a", *STEADY), environment=an_environment(hard=GPU)),
    )

    row = comparison.rows[0]
    assert (row.verdict, row.code) == (Verdict.INCONCLUSIVE, "not_comparable")
    assert "device: cpu → cuda" in row.note
    assert comparison.exit_code == ExitCode.NO_ANSWER


def gpu_with(memory_bytes):
    return msgspec.structs.replace(GPU, gpu_memory_bytes=memory_bytes)


def test_two_boards_of_one_model_compare_though_their_memory_differs_by_some_mebibytes():
    comparison = judged(
        a_run(a_measured("a", *STEADY), environment=an_environment(hard=GPU)),
        a_run(
            a_measured("a", *STEADY),
            environment=an_environment(hard=gpu_with(GPU.gpu_memory_bytes - 3 * MIB)),
        ),
    )

    assert comparison.verdict is Verdict.UNCHANGED
    assert comparison.head.machine == gpu_with(GPU.gpu_memory_bytes - 3 * MIB)


def test_boards_of_one_name_with_other_memory_are_incomparable_by_their_bytes():
    half = GPU.gpu_memory_bytes // 2
    comparison = judged(
        a_run(a_measured("a", *STEADY), environment=an_environment(hard=GPU)),
        a_run(a_measured("a", *STEADY), environment=an_environment(hard=gpu_with(half))),
    )

    row = comparison.rows[0]
    assert (row.verdict, row.code) == (Verdict.INCONCLUSIVE, "not_comparable")
    assert row.note == f"another machine: gpu_memory_bytes: {GPU.gpu_memory_bytes} → {half}"


def test_a_run_in_which_everything_failed_knows_its_machine():
    comparison = judged(a_run(), a_run(a_failed("a"), environment=an_environment(hard=GPU)))

    assert comparison.head.machine == GPU


def test_other_parameters_are_incomparable():
    comparison = judged(
        a_run(a_measured("a", *STEADY, parameters={"batch": 64})),
        a_run(a_measured("a", *STEADY, parameters={"batch": 128})),
    )

    assert comparison.rows[0].code == "not_comparable"
    assert comparison.rows[0].note == "other parameters: batch: 64 → 128"


def test_numerics_that_no_baseline_can_judge_are_those_of_the_launched_base():
    before = a_run(a_measured("w", *STEADY, parameters={"n": 1}, losses=(2.0,)))
    head = a_run(a_measured("w", *STEADY, parameters={"n": 2}, losses=(3.0,)))
    launched = pairs(1.0, losses=(3.0,), base={"losses": (3.0,)})

    alone, paired = judged(before, head), judged(before, in_turns(head, launched))

    assert not [row for row in alone.rows if isinstance(row, Numerics)]
    (row,) = (row for row in paired.rows if isinstance(row, Numerics))
    assert row.verdict is Verdict.UNCHANGED


def test_another_statistic_is_incomparable():
    quick = Protocol(processes=3, statistic="min")
    measured = a_measured("a", *STEADY)

    comparison = judged(a_run(measured), a_run(msgspec.structs.replace(measured, protocol=quick)))

    assert comparison.rows[0].code == "not_comparable"
    assert (
        comparison.rows[0].note == "a step is not the same on both sides: statistic: median → min"
    )
    assert comparison.exit_code == ExitCode.NO_ANSWER


def test_values_that_differ_only_by_their_type_are_told_apart():
    comparison = judged(
        a_run(a_measured("a", *STEADY, parameters={"batch": 1, "dtype": "None"})),
        a_run(a_measured("a", *STEADY, parameters={"batch": "1", "dtype": "none"})),
    )

    assert comparison.rows[0].note == "other parameters: batch: 1 → '1', dtype: None → none"


def test_other_software_is_compared_and_named():
    comparison = judged(
        a_run(a_measured("a", *STEADY), environment=an_environment(torch="2.12.0")),
        a_run(a_measured("a", *STEADY)),
    )

    assert [(d.field, d.base, d.head) for d in comparison.differences] == [
        ("torch", "2.12.0", "2.13.0")
    ]
    assert comparison.verdict is Verdict.UNCHANGED


def test_a_team_may_make_software_a_hard_fact():
    comparison = judged(
        a_run(a_measured("a", *STEADY), environment=an_environment(torch="2.12.0")),
        a_run(a_measured("a", *STEADY)),
        tiers=Tiers(hard=("torch",)),
    )

    assert comparison.rows[0].code == "not_comparable"
