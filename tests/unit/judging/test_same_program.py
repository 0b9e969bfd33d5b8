"""Workloads that were not launched, because head and base are the same program."""

import msgspec
import pytest

from ci_perf.errors import ExitCode
from ci_perf.judging import compare, summarise
from ci_perf.model.comparison import Uncompared, Verdict
from ci_perf.model.suite import FailOn
from tests.programs import a_same_program, a_touched
from tests.runs import SLOW, STEADY, a_measured, a_run


def compared(base, head, **options):
    return compare.compare(
        summarise.run(base, label="base"), summarise.run(head, label="head"), **options
    )


def same(*names, **more):
    return tuple(a_same_program(name, **more) for name in names)


def test_one_row_says_unchanged_without_numbers_of_the_head():
    base = a_run(a_measured("bert", *STEADY))

    comparison = compared(base, a_run(same=same("bert")))

    (row,) = comparison.rows
    assert isinstance(row, Uncompared)
    assert (row.verdict, row.code, row.head) == (Verdict.UNCHANGED, "same_program", {})
    assert row.base["step_time_s"] > 0
    assert row.same == a_same_program("bert")
    assert comparison.verdict is Verdict.UNCHANGED
    assert comparison.exit_code == ExitCode.OK


def test_a_workload_without_a_baseline_is_unchanged_as_well():
    (row,) = compared(a_run(), a_run(same=same("bert"))).rows

    assert (row.verdict, row.base) == (Verdict.UNCHANGED, {})


def test_a_regression_beside_it_still_fails():
    base = a_run(a_measured("bert", *STEADY), a_measured("gpt", *STEADY))
    gpt = msgspec.structs.replace(
        a_measured("gpt", *STEADY), processes=a_measured("gpt", *SLOW).processes
    )

    comparison = compared(base, a_run(gpt, same=same("bert"), touched=(a_touched("gpt"),)))

    assert comparison.verdict is not Verdict.UNCHANGED
    assert comparison.touched == (a_touched("gpt"),)


@pytest.mark.parametrize("fail_on", ["proven", "unanswered", "never"])
def test_what_nobody_can_prove_is_no_answer(fail_on: FailOn):
    head = a_run(same=same("bert", is_proven=False))

    comparison = compared(a_run(a_measured("bert", *STEADY)), head, fail_on=fail_on)

    (row,) = comparison.rows
    assert (row.verdict, row.code) == (Verdict.INCONCLUSIVE, "unproven_program")
    expected = ExitCode.REGRESSED if fail_on == "unanswered" else ExitCode.NO_ANSWER
    assert comparison.exit_code == expected


def test_a_run_names_a_workload_once():
    with pytest.raises(ValueError, match="'bert' appears twice"):
        a_run(a_measured("bert", *STEADY), same=same("bert"))
