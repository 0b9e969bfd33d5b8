"""What comes before the speed: whether the machine can be trusted, and what is computed."""

import msgspec

from ci_perf.errors import ExitCode
from ci_perf.judging.policy import default_limits
from ci_perf.model.comparison import Numerics, Verdict
from ci_perf.model.suite import Limit, Limits
from ci_perf.model.validity import validity_of
from tests.comparisons import verdicts_of
from tests.histories import in_turns, judged, pairs
from tests.runs import SLOW, STEADY, a_measured, a_process, a_reason, a_run

INVALID = validity_of((a_reason(),))


def partly_invalid(*workloads):
    return validity_of(tuple(a_reason(workload=name) for name in workloads))


def test_a_reason_against_one_workload_leaves_the_others_judged():
    base = a_run(a_measured("a", *STEADY), a_measured("b", *STEADY))
    head = a_run(a_measured("a", *SLOW), a_measured("b", *STEADY), validity=partly_invalid("a"))
    comparison = judged(base, head)

    assert set(verdicts_of(comparison, "a").values()) == {Verdict.INCONCLUSIVE}
    assert verdicts_of(comparison, "b")["step_time_s"] is Verdict.UNCHANGED
    assert {row.code for row in comparison.rows if row.workload == "a"} == {"untrusted"}
    assert (comparison.verdict, comparison.exit_code) == (Verdict.INCONCLUSIVE, ExitCode.NO_ANSWER)


def test_a_regression_beside_an_invalid_workload_is_proven_all_the_same():
    base = a_run(a_measured("a", *STEADY), a_measured("b", *STEADY))
    head = a_run(a_measured("a", *STEADY), a_measured("b", *SLOW), validity=partly_invalid("a"))
    comparison = judged(base, in_turns(head, pairs(2.0), workload="b"))

    assert (comparison.verdict, comparison.exit_code) == (Verdict.REGRESSED, ExitCode.REGRESSED)


def test_a_reason_on_the_base_spoils_its_workload_as_well():
    base = a_run(a_measured("a", *STEADY), a_measured("b", *STEADY), validity=partly_invalid("a"))
    comparison = judged(base, a_run(a_measured("a", *SLOW), a_measured("b", *STEADY)))

    assert verdicts_of(comparison, "a")["step_time_s"] is Verdict.INCONCLUSIVE
    assert verdicts_of(comparison, "b")["step_time_s"] is Verdict.UNCHANGED


def test_numbers_that_nobody_can_trust_are_no_other_numerics():
    comparison = judged(
        a_run(a_measured("a", *STEADY, losses=(1.0,))),
        a_run(a_measured("a", *STEADY, losses=(2.0,)), validity=INVALID),
    )

    assert {row.verdict for row in comparison.rows} == {Verdict.INCONCLUSIVE}


def test_changed_numerics_stand_above_every_speed_row_and_fail_nothing_by_themselves():
    base = a_run(a_measured("fast", *SLOW, losses=(1.0,)), a_measured("slow", *STEADY))
    head = a_run(a_measured("fast", *STEADY, losses=(2.0,)), a_measured("slow", *STEADY))
    comparison = judged(base, in_turns(head, pairs(0.5, losses=(2.0,)), workload="fast"))

    assert isinstance(comparison.rows[0], Numerics)
    assert comparison.rows[0].code == "beyond_limit"
    assert (comparison.verdict, comparison.exit_code) == (Verdict.IMPROVED, ExitCode.OK)


def test_changed_numerics_fail_the_job_where_the_suite_says_so():
    limits = Limits(default={**default_limits(), "fingerprint": Limit(relative=1e-3)})
    comparison = judged(
        a_run(a_measured("a", *STEADY, losses=(1.0,))),
        a_run(a_measured("a", *STEADY, losses=(2.0,))),
        limits=limits,
    )

    assert comparison.verdict is Verdict.NUMERICS_CHANGED
    assert comparison.exit_code == ExitCode.REGRESSED


def test_a_new_workload_whose_numerics_vary_says_so_at_once():
    varying = msgspec.structs.replace(
        a_measured("new", *STEADY),
        processes=tuple(a_process(i, losses=(1.0 + i,)) for i in range(3)),
    )
    comparison = judged(a_run(a_measured("a", *STEADY)), a_run(a_measured("a", *STEADY), varying))

    assert {row.code for row in comparison.rows if row.workload == "new"} == {
        "new",
        "numerics_vary",
    }
