"""What the head does differently in a step: each kind, their order, and which row says it."""

from typing import Annotated, get_args, get_origin

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ci_perf.features.explain import causes
from ci_perf.judging import summarise
from ci_perf.model import codec, metrics
from ci_perf.model.comparison import Change, Comparison, Verdict
from ci_perf.model.explanation import (
    AuthorFunction,
    Callee,
    FunctionUse,
    OperatorUse,
    ProfiledPair,
    ProfiledPairs,
    StepProfile,
    Varying,
)
from ci_perf.report import html, markdown, terminal
from tests.comparisons import a_change, a_comparison, an_uncompared
from tests.histories import a_head, in_turns, judged, pairs, row_of
from tests.step_profiles import a_function, a_step, a_use, both

MM = a_use("aten::mm")


def explained(base, head, *, is_gain=False):
    """Explain a loss, unless told."""
    return causes.explain(both(base, head), is_gain=is_gain)


def the_cause(base, head, **more):
    (cause,) = explained(base, head, **more).causes
    return cause


def kinds(cause):
    return {change.operator: change.kind for change in cause.operators}


def places(explanation):
    return [cause.place and cause.place.function for cause in explanation.causes]


# --- kinds


def test_an_operator_that_the_base_lacks_is_new_in_its_function_and_line():
    cause = the_cause(a_step(MM), a_step(MM, a_use("aten::sin", 4, line=17)))

    assert (cause.kind, cause.calls_base, cause.calls_head) == ("new", 0, 4)
    assert (cause.place.file, cause.place.function) == ("src/net.py", "Net.forward")
    assert cause.line == 17
    assert kinds(cause) == {"aten::sin": "new"}


def test_an_operator_that_the_head_lacks_is_gone():
    cause = the_cause(a_step(MM, a_use("aten::sin", 4)), a_step(MM), is_gain=True)

    assert (cause.kind, cause.calls_base, cause.calls_head, cause.in_head) == ("gone", 4, 0, True)


@pytest.mark.parametrize(("calls", "kind"), [(9, "more"), (1, "fewer")])
def test_an_operator_may_be_dispatched_more_or_less_often(calls, kind):
    cause = the_cause(a_step(a_use(calls=3)), a_step(a_use(calls=calls)))

    assert (cause.kind, cause.calls_base, cause.calls_head) == (kind, 3, calls)


def test_other_arguments_are_shown_of_both_sides():
    cause = the_cause(a_step(a_use(arguments="f32[8,64]")), a_step(a_use(arguments="f64[8,64]")))

    assert cause.kind == "other_shape"
    assert (cause.arguments_base, cause.arguments_head) == ("f32[8,64]", "f64[8,64]")


def test_a_function_may_be_called_more_often_without_any_operator():
    cause = the_cause(
        a_step(MM, functions={"step": 1, "tidy": 1}), a_step(MM, functions={"step": 1, "tidy": 3})
    )

    assert (cause.kind, cause.place.function) == ("calls", "tidy")
    assert (cause.calls_base, cause.calls_head) == (1, 3)


def test_a_function_whose_operators_differ_is_one_cause():
    base = a_step(a_use(function="one"), functions={"one": 1})
    head = a_step(a_use(function="one", calls=4), functions={"one": 2})

    assert the_cause(base, head).kind == "more"


def test_functions_that_only_one_side_has_counted_are_no_evidence():
    assert explained(a_step(MM), a_step(MM, functions={"step": 1})).causes == ()


def test_an_operator_outside_of_the_repository_has_no_place():
    assert the_cause(a_step(MM), a_step(MM, a_use("aten::sin", function=None))).place is None


def test_what_is_only_in_the_backward_pass_says_so():
    again = a_use("aten::addmm", is_backward=True)
    cause = the_cause(a_step(MM), a_step(MM, again))

    assert cause.is_backward


# --- joins


def test_lines_and_signatures_of_moved_code_join():
    before, after = a_use(begins=10), a_use(begins=250)

    assert explained(a_step(before), a_step(after)).causes == ()


def test_a_renamed_function_is_new_and_gone():
    explanation = explained(a_step(a_use(function="old")), a_step(a_use(function="new")))

    assert [(cause.kind, cause.place.function, cause.in_head) for cause in explanation.causes] == [
        ("new", "new", True),
        ("gone", "old", False),
    ]


def test_code_that_only_stands_elsewhere_is_no_cause_beside_another_one():
    """Once a harmless refactoring stood among the causes of a loop."""
    head = a_step(a_use(calls=12, function="stage"), a_use("aten::std", 64, "prepare"))
    base = a_step(a_use(calls=12, function="embed"), a_use("aten::std", 1, "prepare"))

    explanation = explained(base, head)

    assert [cause.place.function for cause in explanation.causes] == ["prepare"]
    assert {cause.place.function for cause in explanation.others} == {"stage", "embed"}


@pytest.mark.parametrize(
    "stage", [a_use(calls=13, function="stage"), a_use(calls=12, function="stage", arguments="x")]
)
def test_code_that_stands_elsewhere_and_does_something_else_is_a_cause(stage):
    head = a_step(stage, a_use("aten::std", 64, "prepare"))
    base = a_step(a_use(calls=12, function="embed"), a_use("aten::std", 1, "prepare"))

    named = [cause.place.function for cause in explained(base, head).causes]

    assert set(named) == {"prepare", "stage", "embed"}


def test_a_replaced_operator_is_one_cause_with_what_replaces_it():
    base = a_step(a_use("aten::sdpa", 4, "attend"))
    head = a_step(a_use("aten::bmm", 8, "attend"), a_use("aten::_softmax", 4, "attend"))
    cause = the_cause(base, head)

    assert cause.kind == "new"
    assert (cause.calls_base, cause.calls_head) == (4, 12)
    assert kinds(cause) == {"aten::bmm": "new", "aten::_softmax": "new", "aten::sdpa": "gone"}


def test_at_most_four_operators_are_named_and_the_rest_is_counted():
    many = [a_use(f"aten::op{i}", calls=10 - i) for i in range(7)]
    cause = the_cause(a_step(MM), a_step(MM, *many))

    assert [change.operator for change in cause.operators] == [f"aten::op{i}" for i in range(4)]
    assert cause.further == 3
    assert cause.calls_head == sum(use.calls for use in many)


# --- order


DIFFERENT = (
    a_step(a_use("aten::sin", 40, "saves"), MM),
    a_step(a_use("aten::cos", 3, "adds"), a_use("aten::mm", 12)),
)


def test_what_adds_work_comes_first_for_a_loss():
    assert places(explained(*DIFFERENT)) == ["Net.forward", "adds", "saves"]


def test_what_takes_work_away_comes_first_for_a_gain():
    assert places(explained(*DIFFERENT, is_gain=True)) == ["saves", "adds", "Net.forward"]


def test_five_causes_then_ten_others_then_a_number():
    head = a_step(MM, *(a_use("aten::sin", 100 - i, f"f{i}") for i in range(20)))
    explanation = explained(a_step(MM), head)

    assert places(explanation) == [f"f{i}" for i in range(5)]
    assert [cause.place.function for cause in explanation.others] == [f"f{i}" for i in range(5, 15)]
    assert explanation.further == 5


# --- no evidence


def test_equal_steps_have_no_cause_and_no_trouble():
    explanation = explained(a_step(MM, functions={"f": 1}), a_step(MM, functions={"f": 1}))

    assert (explanation.causes, explanation.others, explanation.trouble) == ((), (), "")


@pytest.mark.parametrize(
    ("varying", "left"),
    [
        (Varying(operator="aten::sin", caller=a_function()), ["other"]),
        (
            Varying(operator="aten::sin", caller=a_function(file="src/other.py")),
            ["Net.forward", "other"],
        ),
        (Varying(operator="aten::sin"), ["Net.forward", "other"]),
        (Varying(caller=a_function()), ["Net.forward", "other"]),
    ],
)
def test_what_varies_on_either_side_is_no_evidence(varying, left):
    head = a_step(MM, a_use("aten::sin"), a_use("aten::sin", function="other"))
    explanation = explained(a_step(MM, varies=(varying,)), head)

    assert sorted(places(explanation)) == left
    assert explanation.varying == 1


def test_calls_that_vary_are_no_evidence():
    base = a_step(MM, functions={"f": 1}, varies=(Varying(caller=a_function("g")),))

    assert explained(base, a_step(MM, functions={"f": 1, "g": 4})).causes == ()


@pytest.mark.parametrize(
    ("sides", "said"),
    [
        (both(None, None, trouble="no time was left"), "no time was left"),
        (both(StepProfile(steps=0), a_step(MM)), "no step of the base was counted"),
        (both(a_step(MM), StepProfile(steps=0, absent="RuntimeError: boom")), "head: RuntimeErr"),
        (both(a_step(MM), a_step(cut=7)), "a step of the head does too many different things: 7"),
    ],
)
def test_a_side_without_all_counts_invents_no_cause(sides, said):
    explanation = causes.explain(sides, is_gain=False)

    assert explanation.trouble.startswith(said)
    assert explanation.causes == explanation.others == ()


# --- which row


def attached(*rows):
    counted = [both(a_step(MM), a_step(a_use(calls=9)), workload="mlp")]
    explained = [
        row for row in causes.attach_explanations(rows, counted) if isinstance(row, Change)
    ]
    return [row.metric for row in explained if row.explanation]


def test_the_step_time_is_explained_before_memory_and_a_gate_before_a_warning():
    memory = a_change(verdict=Verdict.REGRESSED, metric=metrics.PEAK_ALLOCATED, ratio=2)
    warning = a_change(verdict=Verdict.REGRESSED, metric=metrics.STEP_P95, gate=False)
    time = a_change(verdict=Verdict.REGRESSED)

    assert attached(warning, time) == ["step_time_s"]
    assert attached(memory, warning, time) == ["step_time_s"]
    assert attached(memory) == ["peak_allocated_bytes"]


def test_a_loss_is_explained_before_a_gain():
    gain = a_change(verdict=Verdict.IMPROVED)
    loss = a_change(verdict=Verdict.REGRESSED, metric=metrics.STEP_P95)

    assert attached(gain, loss) == ["step_p95_s"]


def test_rows_that_did_not_move_are_not_explained():
    assert attached(a_change(), a_change(verdict=Verdict.INCONCLUSIVE), an_uncompared()) == []
    assert attached(a_change("other", Verdict.REGRESSED)) == []


@pytest.mark.parametrize("ratio", [1.2, 0.8])
def test_a_run_brings_its_explanation_and_it_changes_no_verdict(ratio):
    plain = in_turns(a_head(), pairs(ratio))
    counted = (both(a_step(MM), a_step(a_use(calls=9))),)
    without = judged([], plain)
    head = msgspec.structs.replace(plain, profiled=counted)
    explained = causes.explain_comparison(judged([], head), summarise.run(head, label=""))
    row = row_of(explained)

    assert row.explanation.causes[0].kind == "more"
    assert msgspec.structs.replace(row, explanation=None) == row_of(without)
    assert (explained.verdict, explained.exit_code) == (without.verdict, without.exit_code)


# --- whatever a fork sends

texts = st.text(max_size=40) | st.sampled_from(
    ["aten::mm", "\x1b[2J", "::error::", "|`<", "a" * 200]
)
seconds = st.sampled_from([0.0, 5e-324, 1e-9, 1e-3, 1e9]) | st.floats(0, 1e9)
lines = st.integers(0, 2**63 - 1)
BY_TYPE = {str: texts, int: lines, bool: st.booleans(), float: seconds}


def hostile(struct, **known):
    """Draw every field of a struct by its type, but for those that are known."""
    fields = msgspec.structs.fields(struct)
    types = {
        field.name: get_args(field.type)[0] if get_origin(field.type) is Annotated else field.type
        for field in fields
    }
    drawn = {name: BY_TYPE.get(of, st.none() | seconds) for name, of in types.items()}
    return st.builds(struct, **drawn | known)


def some(one, most):
    return st.lists(one, max_size=most).map(tuple)


calls = st.floats(0, 1e19)
functions = hostile(AuthorFunction)
anywhere = {"caller": st.none() | functions}
uses = hostile(
    OperatorUse, signature=st.sampled_from(["0" * 16, "f" * 16]), calls=calls, **anywhere
)
callees = some(hostile(Callee, calls=calls), 3)
called = hostile(FunctionUse, function=functions, calls=calls, callees=callees)
steps = st.builds(
    StepProfile,
    steps=st.integers(0, 3),
    operators=some(uses, 12),
    functions=some(called, 8),
    step_s=st.none() | seconds,
    varies=some(hostile(Varying, **anywhere), 3),
    cut=st.sampled_from([0, 0, 0, 2**60]),
    absent=st.sampled_from(["", "", "", "\x1b]"]),
)
counts = st.builds(ProfiledPair, base=steps, head=steps)
counted_pairs = st.builds(
    ProfiledPairs,
    workload=st.just("mlp"),
    pairs=some(counts, 3) | counts.map(lambda pair: (pair,) * 3),
    trouble=st.sampled_from(["", "", "", "`|" * 5_000]),
)


@settings(max_examples=60, derandomize=True, deadline=None)
@given(
    counted_pairs,
    st.sampled_from([Verdict.REGRESSED, Verdict.IMPROVED]),
    st.sampled_from([metrics.STEP_TIME, metrics.PEAK_ALLOCATED]),
)
def test_any_counts_are_explained_encoded_and_shown(counted, verdict, metric):
    row = a_change(verdict=verdict, metric=metric)
    rows = causes.attach_explanations([row], [counted], on_device=["mlp"])
    assert [msgspec.structs.replace(each, explanation=None) for each in rows] == [row]
    comparison = a_comparison(*rows)
    text = codec.encode(comparison)

    assert codec.decode(text, Comparison, name="x").rows == tuple(rows)
    assert len(text) < 400_000
    shown = markdown.render(comparison)
    assert len(shown.encode()) <= markdown.COMMENT_BYTES
    assert "\x1b" not in shown + terminal.render(comparison, width=80, color=False)
    assert "\x1b" not in html.comparison(comparison)


def test_the_most_that_a_run_may_hold_is_explained_in_a_moment():
    def side(number):
        uses = [a_use(f"op{i}", function=f"{number} f{i % 50}") for i in range(500)]
        return a_step(*uses, varies=tuple(Varying(operator=f"x{i}") for i in range(100)))

    explanation = explained(side(0), side(1))

    assert len(explanation.causes) + len(explanation.others) + explanation.further == 100
