"""What the head does to its own gate, found in two plans, the rows and the baselines."""

import msgspec
import pytest

from ci_perf.judging.gate_changes import find
from ci_perf.model import metrics
from ci_perf.model.container import Container
from ci_perf.model.gate_change import BaselineEdit, GateChange, GateKind
from ci_perf.model.suite import Limit, Limits, Protocol, Setup, Tiers
from tests.comparisons import a_change
from tests.plans import a_plan, a_planned

BASE = a_plan("w1", "w2", limit=0.05)


def said(head, **facts):
    """Name kind, workload, setting and both values of each change from BASE."""
    return [
        (each.kind.name, each.workload, each.name, each.before, each.after)
        for each in find(BASE, head, **facts)
    ]


def with_limit(**limit):
    return a_plan("w1", "w2", limits=Limits(default={"step_time_s": Limit(relative=0.05)} | limit))


def an_edit(before=0.1, after=0.2, accepted=("step_time_s",), **more):
    sides = [{} if side is None else {"step_time_s": side} for side in (before, after)]
    return BaselineEdit(
        path="baselines/cpu/smoke/w1.json",
        before=sides[0],
        after=sides[1],
        accepted=accepted,
        **more,
    )


def test_the_same_suite_changes_nothing():
    assert find(BASE, BASE) == ()


def test_a_base_without_the_suite_has_no_gate_to_change():
    assert find(None, BASE) == ()


def test_a_suite_that_is_gone_is_named():
    assert said(None) == [("SUITE", "", "smoke", "", "")]


def test_a_limit_that_is_raised_is_named_for_each_workload():
    raised = a_plan("w1", "w2", limit=9.0)
    before, after = BASE.limits.of("w1")["step_time_s"], raised.limits.of("w1")["step_time_s"]

    assert said(raised) == [("LIMIT", name, "step_time_s", before, after) for name in ("w1", "w2")]


def test_a_size_beside_the_share_raises_a_limit_as_well():
    (first, _) = said(with_limit(step_time_s=Limit(relative=0.05, absolute=1.0)))

    assert first[:3] == ("LIMIT", "w1", "step_time_s")


@pytest.mark.parametrize("tighter", [{"limit": 0.01}, {"fail_on": "likely"}])
def test_what_gets_stricter_is_no_change_of_the_gate(tighter):
    assert said(a_plan("w1", "w2", **({"limit": 0.05} | tighter))) == []


def test_a_new_workload_is_no_change_of_the_gate():
    assert said(a_plan("w1", "w2", "w3", limit=0.05)) == []


@pytest.mark.parametrize("limits", [{"step_time_s": Limit(gate=False)}, {}])
def test_a_gate_that_is_switched_off_or_gone_is_named(limits):
    head = a_plan("w1", "w2", limits=Limits(default=limits))

    assert said(head) == [("GATE", name, "step_time_s", "", "") for name in ("w1", "w2")]


def test_a_metric_that_never_gated_may_have_any_limit():
    base = with_limit(flops=Limit(gate=False))
    head = with_limit(flops=Limit(gate=False, relative=1.0))

    assert find(base, head) == ()


def test_a_limit_that_the_base_lacks_is_no_change_of_the_gate():
    assert said(with_limit(flops=Limit())) == []


def test_fail_on_that_is_milder_is_named():
    assert said(msgspec.structs.replace(BASE, fail_on="never")) == [
        ("FAIL_ON", "", "", "proven", "never")
    ]


def test_a_workload_that_is_gone_is_named():
    assert said(a_plan("w1", limit=0.05)) == [("REMOVED", "w2", "", "", "")]


def test_a_workload_of_the_same_file_by_another_name_was_renamed():
    head = a_plan("w1", a_planned("w3", file="elsewhere/w2.py"), limit=0.05)

    assert said(head) == [("RENAMED", "w2", "", "", "w3")]


def test_other_parameters_and_another_protocol_are_named_by_setting():
    head = a_plan(
        a_planned("w1", parameters={"size": 8}),
        a_planned("w2", protocol=Protocol(timed_min_s=0.1), launch="torchrun"),
        limit=0.05,
    )

    assert said(head) == [
        ("SETTING", "w1", "parameters.size", "", "8"),
        ("SETTING", "w2", "launch", '"process"', '"torchrun"'),
        ("SETTING", "w2", "protocol.timed_min_s", "0.5", "0.1"),
    ]


def a_table(*words, **more):
    return a_planned("pytest", file="pytest", launch="fork", collects=words, **more)


def with_tables(*tables, plan=BASE):
    return msgspec.structs.replace(plan, tests=tables)


BENCH, SLOW = a_table("bench"), a_table("slow", "-m", "slow")


@pytest.mark.parametrize(
    ("tables", "named"),
    [
        ((BENCH, SLOW), []),
        ((SLOW, BENCH, a_table("more")), []),
        ((BENCH,), [("REMOVED", "pytest slow -m slow", "", "", "")]),
        (
            (a_table("bench", "-k", "not test_a"), SLOW),
            [("SETTING", "pytest", "collects", '["bench"]', '["bench","-k","not test_a"]')],
        ),
        (
            (SLOW, a_table("bench", inputs=("data/*",), protocol=Protocol(timed_min_s=0.1))),
            [
                ("SETTING", "pytest", "inputs", "[]", '["data/*"]'),
                ("SETTING", "pytest", "protocol.timed_min_s", "0.5", "0.1"),
            ],
        ),
        (
            (a_table("slow", "-m", "slow", inputs=("b",)), a_table("bench", inputs=("a",))),
            [
                ("SETTING", "pytest", "inputs", "[]", '["a"]'),
                ("SETTING", "pytest", "inputs", "[]", '["b"]'),
            ],
        ),
        # Split in two, its order changed: each word of the base is there or named.
        (
            (a_table("bench/a"), a_table("bench/b"), SLOW),
            [("SETTING", "pytest", "collects", '["bench"]', '["bench/a"]')],
        ),
        (
            (),
            [("REMOVED", name, "", "", "") for name in ("pytest bench", "pytest slow -m slow")],
        ),
    ],
)
def test_tables_of_tests_are_compared_by_what_they_collect(tables, named):
    changes = find(with_tables(BENCH, SLOW), with_tables(*tables))

    assert [
        (each.kind.name, each.workload, each.name, each.before, each.after) for each in changes
    ] == named


def test_limits_of_tests_are_compared_once():
    base, head = (with_tables(BENCH, plan=a_plan(limit=limit)) for limit in (0.05, 9.0))

    assert [(each.kind.name, each.workload, each.name) for each in find(base, head)] == [
        ("LIMIT", "", "step_time_s")
    ]


def test_limits_of_the_first_tests_change_no_gate():
    assert find(a_plan(limit=0.05), with_tables(BENCH, plan=a_plan(limit=9.0))) == ()


def test_other_inputs_are_named():
    head = a_plan(a_planned("w1", inputs=("data/*.json",)), "w2", limit=0.05)

    assert said(head) == [("SETTING", "w1", "inputs", "[]", '["data/*.json"]')]


def test_lost_tests_and_their_files_are_named():
    lost = {"test_a": "Skipped: flaky"}

    changes = find(None, None, test_files=["conftest.py"], unmeasured=lost)

    assert changes == (
        GateChange(kind=GateKind.REMOVED, workload="test_a", reason="Skipped: flaky"),
        GateChange(kind=GateKind.OWN_FILE, name="conftest.py"),
    )


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"setup": Setup(command="make")}, ("setup.command", '""', '"make"')),
        ({"python_path": ("b", "a")}, ("python_path", "[]", '["b","a"]')),
        ({"tiers": Tiers(hard=("torch",))}, ("environment.hard", "[]", '["torch"]')),
        ({"container": Container(image="x:1")}, ("container.image", '""', '"x:1"')),
        ({"canaries": True}, ("canaries", "false", "true")),
    ],
)
def test_settings_of_the_whole_suite_are_named(settings, named):
    assert said(msgspec.structs.replace(BASE, **settings)) == [("SETTING", "", *named)]


def test_the_longest_setting_still_fits_into_the_document():
    head = msgspec.structs.replace(BASE, setup=Setup(command="x" * 10_000))
    (change,) = find(BASE, head)

    assert msgspec.json.decode(msgspec.json.encode(change), type=GateChange) == change


def test_a_long_setting_that_differs_in_its_end_is_named():
    base, head = (
        msgspec.structs.replace(BASE, setup=Setup(command="x" * 1000 + end)) for end in "ab"
    )

    assert [each.name for each in find(base, head)] == ["setup.command"]


def test_a_loss_that_a_baseline_brings_along_is_named_with_its_reason():
    (change,) = find(BASE, BASE, edits=[an_edit(reason="Worth it.")])

    assert change == GateChange(
        kind=GateKind.ACCEPTED,
        workload="w1",
        name="step_time_s",
        before=0.1,
        after=0.2,
        reason="Worth it.",
    )


def test_an_accepted_loss_of_what_does_not_gate_is_no_change_of_the_gate():
    plan = with_limit(step_time_s=Limit(gate=False))

    assert find(plan, plan, edits=[an_edit()]) == ()


def test_a_rate_that_is_accepted_as_it_was_is_no_loss():
    same = {"items_per_s": 5.0}
    edit = msgspec.structs.replace(an_edit(), before=same, after=same, accepted=("items_per_s",))

    assert said(BASE, edits=[edit]) == []


def test_a_metric_that_is_accepted_to_be_gone_is_named():
    edit = msgspec.structs.replace(an_edit(), after={"step_cpu_s": 0.1})

    assert said(BASE, edits=[edit]) == [("ACCEPTED", "w1", "step_time_s", 0.1, "gone")]


@pytest.mark.parametrize("edit", [an_edit(after=0.05), an_edit(accepted=()), an_edit(before=None)])
def test_a_gain_an_appended_session_and_a_new_baseline_are_no_loss(edit):
    assert said(BASE, edits=[edit]) == []


def test_a_baseline_that_is_gone_is_named():
    assert said(BASE, edits=[an_edit(after=None, accepted=())]) == [("BASELINE", "w1", "", "", "")]


def test_a_tenth_of_the_operators_is_less_work_and_an_eighth_is_not():
    rows = [
        a_change("w1", base=100, ratio=0.1, metric=metrics.OPERATORS),
        a_change("w2", base=100, ratio=0.12, metric=metrics.FLOPS),
        a_change("w2", base=0, head=0, metric=metrics.OPERATORS),
    ]

    assert said(BASE, rows=rows) == [("LESS_WORK", "w1", "operators", 100, 10)]


def test_a_workload_file_of_its_own_is_named_once():
    rows = [a_change("w1", own_file=True), a_change("w1", own_file=True, metric=metrics.STEP_CPU)]

    assert said(BASE, rows=rows, own_files=["w1", "w2"]) == [
        ("OWN_FILE", "w1", "", "", ""),
        ("OWN_FILE", "w2", "", "", ""),
    ]


def test_the_most_serious_change_comes_first():
    head = a_plan("w1", limit=9.0, fail_on="never", python_path=("lib",))
    kinds = [each.kind for each in find(BASE, head, edits=[an_edit()])]

    assert kinds == sorted(kinds, key=list(GateKind).index)
    assert kinds[0] is GateKind.REMOVED
