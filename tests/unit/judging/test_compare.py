import msgspec
import pytest

from ci_perf.errors import ExitCode
from ci_perf.judging.compare import worst_first
from ci_perf.judging.policy import default_limits
from ci_perf.model import metrics
from ci_perf.model.comparison import Change, Severity, Verdict, severity_of
from ci_perf.model.process import Exhausted
from ci_perf.model.suite import Limit, Limits
from ci_perf.model.validity import Reason, Status, Validity
from tests.comparisons import a_change, verdicts_of
from tests.histories import in_turns, judged, pairs
from tests.runs import (
    MIB,
    SLOW,
    STEADY,
    a_device_memory,
    a_failed,
    a_gpu_evidence,
    a_measured,
    a_run,
    an_evidence,
)

INVALID = Validity(
    status=Status.INVALID,
    reasons=(Reason(code="low_disk", status=Status.INVALID, detail="nothing left"),),
)


SAME = a_run(a_measured("a", *STEADY))
WITH_MEMORY = a_run(a_measured("a", *STEADY, device=a_device_memory()))
NOT_GATED = Limit(relative=0.05, gate=False)


def slower(run, workload="a", ratio=2.0):
    """The same run, in which pairs of launches show how much slower a workload is."""
    return in_turns(run, pairs(ratio, first_step_s=0.1), workload=workload)


def with_b(b, *, a=STEADY):
    """The workload `a`, and a second one."""
    return a_run(a_measured("a", *a), b)


B, FAILED_B = a_measured("b", *STEADY), a_failed("b")
OK, NO_ANSWER, REGRESSED = ExitCode.OK, ExitCode.NO_ANSWER, ExitCode.REGRESSED


@pytest.mark.parametrize(
    ("base", "head", "of_b", "exit_code"),
    [
        (with_b(B), SAME, {"": Verdict.FAILED}, NO_ANSWER),
        (with_b(FAILED_B), SAME, {"": Verdict.FAILED}, NO_ANSWER),
        (SAME, with_b(FAILED_B), {"": Verdict.FAILED}, NO_ANSWER),
        (SAME, with_b(B), {"": Verdict.NEW}, OK),
        (
            a_run(a_measured("a.n=1", *STEADY), B),
            a_run(a_measured("a.n=1", *STEADY), selection=("a",)),
            {},
            OK,
        ),
        (with_b(B), slower(with_b(FAILED_B, a=SLOW)), {"": Verdict.FAILED}, REGRESSED),
    ],
    ids=["gone", "failed and gone", "new and failed", "new", "not asked for", "beside a loss"],
)
def test_no_workload_vanishes(base, head, of_b, exit_code):
    comparison = judged(base, head)

    assert verdicts_of(comparison, "b") == of_b
    assert comparison.exit_code == exit_code


@pytest.mark.parametrize(
    ("selection", "of_b"), [((), {"": Verdict.FAILED}), (("a",), {})], ids=["all", "a alone"]
)
def test_a_workload_of_the_suite_without_any_numbers_does_not_vanish_either(selection, of_b):
    head = a_run(a_measured("a", *STEADY), selection=selection)
    comparison = judged(SAME, head, expected=("a", "b"))

    assert verdicts_of(comparison, "b") == of_b
    assert comparison.exit_code == (NO_ANSWER if of_b else OK)


@pytest.mark.parametrize(
    ("base", "head", "verdict", "exit_code"),
    [
        (SAME, SAME, Verdict.UNCHANGED, OK),
        (a_run(a_measured("a", *SLOW)), slower(SAME, ratio=0.5), Verdict.IMPROVED, OK),
        (a_run(), SAME, Verdict.NEW, NO_ANSWER),
        (a_run(), a_run(), Verdict.INCONCLUSIVE, NO_ANSWER),
        (SAME, a_run(a_measured("a", *SLOW), validity=INVALID), Verdict.INCONCLUSIVE, NO_ANSWER),
        (msgspec.structs.replace(SAME, validity=INVALID), SAME, Verdict.INCONCLUSIVE, NO_ANSWER),
    ],
    ids=["same", "faster", "no base", "nothing", "invalid", "invalid base"],
)
def test_a_comparison_has_one_verdict(base, head, verdict, exit_code):
    comparison = judged(base, head)

    assert (comparison.verdict, comparison.exit_code) == (verdict, exit_code)
    if verdict is Verdict.INCONCLUSIVE:
        assert {row.verdict for row in comparison.rows} <= {verdict}


@pytest.mark.parametrize(
    ("base", "head", "metric", "verdict"),
    [
        (SAME, WITH_MEMORY, "peak_allocated_bytes", Verdict.NEW),
        # A launched base has said whether it has the metric: there is nothing to wait for.
        (SAME, slower(WITH_MEMORY, ratio=1.0), "peak_allocated_bytes", None),
        (
            SAME,
            in_turns(WITH_MEMORY, workload="a", trouble="ImportError: gone"),
            "peak_allocated_bytes",
            Verdict.NEW,
        ),
        (WITH_MEMORY, SAME, "peak_allocated_bytes", Verdict.FAILED),
        (SAME, SAME, "graph_breaks", None),
        (
            a_run(a_measured("a", 1e-12, 1e9)),
            a_run(a_measured("a", 1e9, 1e-12, 1e9)),
            "step_time_s",
            Verdict.INCONCLUSIVE,
        ),
        (
            a_run(a_measured("a", *STEADY, graphs=1)),
            a_run(a_measured("a", *STEADY, graphs=3, breaks=2)),
            "graph_breaks",
            Verdict.REGRESSED,
        ),
    ],
)
def test_a_metric_of_either_side_is_judged(base, head, metric, verdict):
    comparison = judged(base, head)

    assert verdicts_of(comparison, "a").get(metric) is verdict
    codes = {Verdict.FAILED: NO_ANSWER, Verdict.REGRESSED: REGRESSED}
    assert verdict is Verdict.INCONCLUSIVE or comparison.exit_code == codes.get(verdict, OK)


@pytest.mark.parametrize(
    ("base", "head", "metric", "verdict"),
    [
        (SAME, slower(a_run(a_measured("a", *SLOW))), "step_time_s", Verdict.REGRESSED),
        (SAME, a_run(a_measured("a", *SLOW)), "step_time_s", Verdict.LIKELY_SLOWER),
        (WITH_MEMORY, SAME, "peak_reserved_bytes", Verdict.FAILED),
    ],
)
def test_a_metric_that_does_not_gate_is_shown_and_fails_no_job(base, head, metric, verdict):
    limits = Limits(default={"step_time_s": NOT_GATED, "peak_reserved_bytes": NOT_GATED})

    comparison = judged(base, head, limits=limits)

    assert {row.gate for row in comparison.rows} == {False}
    assert verdicts_of(comparison, "a")[metric] is verdict
    assert comparison.exit_code == OK


def test_half_the_work_in_less_time_is_no_improvement():
    measured = a_measured("a", *STEADY)
    halved = msgspec.structs.replace(a_measured("a", *(0.75 * s for s in STEADY)), items_per_step=4)

    comparison = judged(a_run(measured), a_run(halved))

    assert comparison.rows[0].code == "not_comparable"
    assert "items_per_step: 8.0 → 4" in comparison.rows[0].note


def test_a_workload_has_its_own_limit():
    limits = Limits(default=default_limits(), workloads={"a": {"step_time_s": Limit(relative=4.0)}})

    comparison = judged(
        a_run(a_measured("a", *STEADY), a_measured("b", *STEADY)),
        a_run(a_measured("a", *SLOW), a_measured("b", *SLOW)),
        limits=limits,
    )

    assert verdicts_of(comparison, "a")["step_time_s"] is Verdict.UNCHANGED
    assert verdicts_of(comparison, "b")["step_time_s"] is Verdict.LIKELY_SLOWER


def test_more_blocks_in_a_process_create_no_significance():
    """Only launches are evidence."""
    few = judged(a_run(a_measured("a", [1e-3] * 5)), a_run(a_measured("a", [1.2345678e-3] * 5)))
    many = judged(
        a_run(a_measured("a", [1e-3] * 500)), a_run(a_measured("a", [1.2345678e-3] * 500))
    )

    assert [r.verdict for r in few.rows] == [r.verdict for r in many.rows]
    assert few.rows[0].verdict is Verdict.LIKELY_SLOWER


def test_of_rows_that_are_as_bad_those_that_gate_come_first():
    base = a_run(a_measured("a", *STEADY), a_measured("b", *STEADY))
    ungated = {**default_limits(), "step_time_s": Limit(relative=0.05, gate=False)}
    limits = Limits(default=default_limits(), workloads={"a": ungated})

    comparison = judged(base, base, limits=limits)

    gates = [row.gate for row in comparison.rows if row.verdict is Verdict.UNCHANGED]
    assert gates == sorted(gates, reverse=True)
    assert set(gates) == {False, True}


def test_of_rows_that_are_as_bad_those_that_moved_most_come_first():
    moved = {"a": 1.1, "b": 0.5, "c": 1.3}
    losses = [a_change(name, Verdict.REGRESSED, ratio=ratio) for name, ratio in moved.items()]

    assert [row.workload for row in worst_first(losses)] == ["b", "c", "a"]


def test_rows_are_sorted_worst_first():
    comparison = judged(
        a_run(a_measured("gone", *STEADY), a_measured("slow", *STEADY), a_measured("a", *STEADY)),
        slower(a_run(a_measured("slow", *SLOW), a_measured("a", *STEADY), a_failed("bad")), "slow"),
    )

    order = [severity_of(row) for row in comparison.rows]
    gating = [row.verdict for row in comparison.rows if row.gate]
    assert gating[:3] == [Verdict.FAILED, Verdict.FAILED, Verdict.REGRESSED]
    assert order == sorted(order, key=list(Severity).index)


def test_the_limit_of_a_row_is_the_one_that_applied():
    limits = Limits(default={"host_rss_peak_bytes": Limit(relative=0.01, absolute=30 * MIB)})

    comparison = judged(
        a_run(a_measured("a", *STEADY)), a_run(a_measured("a", *STEADY)), limits=limits
    )

    assert isinstance(comparison.rows[0], Change)
    assert comparison.rows[0].limit == pytest.approx(0.1)
    assert msgspec.structs.asdict(comparison.rows[0])["gate"] is True


def at_world_sizes(one, two, **more):
    """A workload on one rank and on two; 16 items a step on two."""
    return a_run(
        a_measured("ddp.world_size=1", *one, parameters={"world_size": 1}),
        a_measured("ddp.world_size=2", *two, parameters={"world_size": 2}, items_per_step=16.0),
        **more,
    )


def test_worse_scaling_is_suspected_though_its_number_is_smaller():
    """0.5 where it was 1: the ratio says how much worse, and both sides keep their own unit."""
    comparison = judged(at_world_sizes(STEADY, STEADY), at_world_sizes(STEADY, SLOW))
    (row,) = (row for row in comparison.rows if row.metric == "scaling_efficiency")

    assert row.verdict is Verdict.LIKELY_SLOWER
    assert (row.base, row.head) == (pytest.approx(1.0), pytest.approx(0.5))
    assert row.ratio == pytest.approx(2.0)
    assert row.interval.low < 2.0 < row.interval.high


def test_scaling_is_not_missing_where_the_single_process_was_not_asked_for():
    whole = at_world_sizes(STEADY, STEADY)
    part = msgspec.structs.replace(
        whole, measured=whole.measured[1:], selection=("ddp.world_size=2",)
    )
    gone = msgspec.structs.replace(whole, measured=whole.measured[1:])

    assert "scaling_efficiency" not in verdicts_of(judged(whole, part), "ddp.world_size=2")
    assert verdicts_of(judged(whole, gone), "ddp.world_size=2")["scaling_efficiency"] is (
        Verdict.FAILED
    )


def test_what_is_only_recorded_has_no_row():
    evidence = an_evidence(a_gpu_evidence())
    run = a_run(a_measured("a", *STEADY, evidence=evidence))

    recorded = {metric.name for metric in metrics.RECORDED}
    limits = Limits(default=default_limits() | {name: Limit() for name in recorded})
    assert not recorded & verdicts_of(judged(run, run, limits=limits), "a").keys()
    assert "energy_j" in verdicts_of(judged(run, run), "a")


@pytest.mark.parametrize(
    ("head_s", "verdict"),
    [(11.0, Verdict.UNCHANGED), (13.0, Verdict.LIKELY_SLOWER), (7.0, Verdict.INCONCLUSIVE)],
)
def test_one_cold_compilation_per_session_is_judged_by_its_tolerance(head_s, verdict):
    """A quarter of 10 s, and not an interval, for which there are too few values."""

    def compiled(seconds):
        return a_run(a_measured("a", 1e-3, graphs=1, first_step_s=seconds + 1e-3))

    comparison = judged(compiled(10.0), compiled(head_s))
    assert verdicts_of(comparison, "a")["compile_cold_s"] is verdict
    assert comparison.exit_code == ExitCode.OK


@pytest.mark.parametrize(
    ("code", "exhausted", "of_b"),
    [
        ("gpu_lost", None, Verdict.INCONCLUSIVE),
        ("ecc_errors", None, Verdict.INCONCLUSIVE),
        ("second_process", Exhausted(kind="device"), Verdict.INCONCLUSIVE),
        ("second_process", None, Verdict.FAILED),
        ("low_disk", None, Verdict.FAILED),
    ],
)
def test_the_code_is_not_blamed_for_what_the_machine_did(code, exhausted, of_b):
    reason = Reason(code=code, status=Status.INVALID, detail="seen", workload="b")
    failed = msgspec.structs.replace(FAILED_B, exhausted=exhausted)
    head = msgspec.structs.replace(
        with_b(failed), validity=Validity(status=Status.INVALID, reasons=(reason,))
    )

    found = judged(with_b(B), head)

    assert verdicts_of(found, "b") == {"": of_b}
    assert found.exit_code == NO_ANSWER
