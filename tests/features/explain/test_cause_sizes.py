"""What comes first, and what only times show."""

import msgspec
import pytest

from ci_perf.features.explain import causes
from ci_perf.features.explain.model import ProfiledPair, ProfiledPairs
from ci_perf.model import metrics
from ci_perf.model.comparison import Change
from tests.comparisons import a_change
from tests.features.explain.cause_rows import (
    FASTER,
    SLOWER,
    STEP_S,
    explained,
    explained_row,
    left,
    shown,
    step,
)
from tests.features.explain.step_profiles import a_called, a_step, a_use, timed_pairs

# --- order


def test_the_operator_that_takes_most_comes_first_in_its_function():
    many = a_use("aten::slice", 40, "nearest", call_s=1e-6)
    large = a_use("aten::sort", 1, "nearest", call_s=8e-3)
    (cause,) = explained(step(), step(many, large)).causes

    assert [change.operator for change in cause.operators] == ["aten::sort", "aten::slice"]


DECOY = a_use("aten::view", 400, "decoy", call_s=1e-6)


@pytest.mark.parametrize("wander", [(1.0,), (1.0, 1.002, 0.999)])
def test_many_tiny_operators_are_no_cause_beside_one_large(wander):
    cause = a_use("aten::sin", 1, "added", call_s=8e-3)
    explanation = explained(step(), step(cause, DECOY), wander=wander)

    assert shown(explanation) == [("new", "added")]
    assert left(explanation) == ["decoy"]


def test_what_is_large_in_each_pair_stands_above_what_is_surely_small():
    """The loop takes 2 to 9 ms, which resolves no size; the copy takes 1.5 in each pair."""
    copy = a_use("aten::copy_", 1, "copied", call_s=1.5e-3)
    pairs = [
        ProfiledPair(base=step(), head=step(copy, a_use("aten::mm", 8, "loop", call_s=by * 1e-3)))
        for by in (0.25, 1.1, 0.7)
    ]
    profiled = ProfiledPairs(workload="w", pairs=tuple(pairs))
    explanation = explained_row(profiled)

    assert shown(explanation) == [("new", "loop"), ("new", "copied")]
    assert [cause.share is None for cause in explanation.causes] == [True, False]


@pytest.mark.parametrize("added_s", [(2e-3, 2e-3, 2e-3), (5e-3, 2e-3, -1e-3)])
@pytest.mark.parametrize(
    ("timed_s", "kinds"), [(4e-3, ["new", "slower"]), (8e-3, ["slower", "new"])]
)
def test_what_only_times_show_stands_below_what_counts_show(added_s, timed_s, kinds):
    """The new operator takes 2 ms, in each pair or by the median of pairs that lie apart."""
    shared = a_use("aten::mm", 2, "timed", call_s=10e-3)
    slower = msgspec.structs.replace(shared, call_s=10e-3 + timed_s / 2)
    old, new = a_use("aten::cos", 1, "counted", call_s=2e-3), a_use("aten::sin", 1, "counted")
    pairs = [
        ProfiledPair(
            base=step(shared, old),
            head=step(slower, msgspec.structs.replace(new, call_s=2e-3 + seconds)),
        )
        for seconds in added_s
    ]
    profiled = ProfiledPairs(workload="w", pairs=tuple(pairs))
    found = explained_row(profiled).causes

    assert [cause.kind for cause in found] == kinds


def test_without_times_the_most_calls_come_first():
    untimed = msgspec.structs.replace(DECOY, call_s=None)
    explanation = explained(step(), step(a_use("aten::sin", 1, "added"), untimed))

    assert shown(explanation) == [("new", "decoy"), ("new", "added")]


@pytest.mark.parametrize(("calls", "wander"), [(400, (1.0, 1.002, 0.999)), (200, (1.0,))])
def test_small_changes_alone_are_no_cause(calls, wander):
    decoy = msgspec.structs.replace(DECOY, calls=calls)
    explanation = explained(step(), step(decoy), wander=wander)

    assert (shown(explanation), left(explanation)) == ([], ["decoy"])


def test_what_saves_time_is_no_cause_of_a_loss():
    base = step(a_use("aten::sin", 4, "saves", call_s=2e-3))
    explanation = explained(base, step(a_use("aten::cos", 4, "adds", call_s=2e-3)))

    assert (shown(explanation), left(explanation)) == ([("new", "adds")], ["saves"])


def test_a_function_with_other_operators_may_wait_longer_however_much_that_wanders():
    def fetch(operator, waiting_s):
        called = a_called("fetch", own_s=1e-4 + waiting_s, waiting_s=waiting_s)
        return step(a_use(operator, 1, "fetch", call_s=1e-5), called=(called,))

    pairs = tuple(
        ProfiledPair(base=fetch("aten::cos", 1e-3), head=fetch("aten::sin", waiting_s))
        for waiting_s in (6e-3, 26e-3, 12e-3)
    )
    profiled = ProfiledPairs(workload="w", pairs=pairs)
    (cause,) = explained_row(profiled).causes

    assert cause.delta_s == pytest.approx(11e-3, rel=0.02)
    assert cause.share is None


def test_one_pair_says_what_a_function_with_another_operator_takes_itself():
    """The list of a lookup takes 8 ms to read, and the operator that looks up next to nothing."""
    head = step(
        a_use("aten::index", 1, "gathered", call_s=1e-6),
        DECOY,
        called=(a_called("gathered", own_s=12e-3),),
    )
    base = step(called=(a_called("gathered", own_s=4e-3),))
    explanation = explained(base, head, wander=(1.0,))

    assert (shown(explanation), left(explanation)) == ([("new", "gathered")], ["decoy"])
    assert explanation.causes[0].delta_s == pytest.approx(8e-3, rel=0.01)


# --- several launches of one side


def test_what_differs_between_launches_of_a_side_is_no_evidence():
    def pair(calls):
        return ProfiledPair(base=step(), head=step(a_use("aten::sin", calls, "random")))

    profiled = ProfiledPairs(workload="w", pairs=(pair(3), pair(4), pair(3)))
    explanation = causes.explain(profiled, is_gain=False)

    assert (explanation.causes, explanation.varying) == ((), 1)


def test_a_pair_that_cannot_be_compared_is_left_out():
    good = ProfiledPair(base=step(), head=step(a_use("aten::sin", 4, "added")))
    bad = ProfiledPair(base=step(), head=step(cut=3))
    profiled = ProfiledPairs(workload="w", pairs=(bad, good))

    assert causes.explain(profiled, is_gain=False).pairs == 1


# --- times alone


def slower_kernel(by):
    return step(a_use("my::scale", 2, "scale", call_s=10e-3 * by))


def test_the_same_work_that_takes_longer_is_measured_in_three_pairs():
    explanation = explained(slower_kernel(1), slower_kernel(1.5))

    assert shown(explanation) == [("slower", "scale")]
    assert explanation.causes[0].evidence == "measured"
    assert explanation.causes[0].share.share == pytest.approx(1.0, rel=0.05)


@pytest.mark.parametrize(
    ("by", "wander"),
    [(1.5, (1.0, 1.0)), (1.05, (1.0, 1.0, 1.0)), (0.98, (1.0, 1.0, 1.0))],
)
def test_fewer_pairs_or_smaller_differences_are_not_measured(by, wander):
    assert shown(explained(slower_kernel(1), slower_kernel(by), wander=wander)) == []


def test_a_spread_of_what_did_not_change_hides_what_is_not_larger():
    def noisy(number):
        uses = (
            a_use(f"aten::rest{i}", 5, call_s=1e-3 * (1 + 0.2 * ((i * number) % 3)))
            for i in range(10)
        )
        return a_step(*uses, a_use("my::scale", 2, "scale", call_s=10e-3), step_s=STEP_S)

    head = noisy(2)
    slower = msgspec.structs.replace(head.operators[-1], call_s=14e-3)
    head = msgspec.structs.replace(head, operators=(*head.operators[:-1], slower))

    assert shown(explained(noisy(1), head)) == []


def test_a_pair_that_shows_next_to_nothing_is_enough_for_silence():
    def pair(by):
        return ProfiledPair(base=slower_kernel(1), head=slower_kernel(by))

    profiled = ProfiledPairs(workload="w", pairs=(pair(1.5), pair(1.03), pair(1.6)))

    assert explained_row(profiled).causes == ()


def test_what_wanders_as_far_on_one_side_is_not_measured():
    def side(by):
        return step(a_use("my::scale", 2, "scale", call_s=10e-3 * by))

    pairs = tuple(ProfiledPair(base=side(by), head=side(1.5 * by)) for by in (1, 1.6, 0.7))
    profiled = ProfiledPairs(workload="w", pairs=pairs)

    assert explained_row(profiled).causes == ()


def test_what_takes_longer_everywhere_is_one_factor_and_no_operator():
    explanation = explained(slower_kernel(1), slower_kernel(1), wander=(1.07, 1.072, 1.069))

    assert shown(explanation) == []
    assert explanation.common_factor == pytest.approx(1.07, abs=0.01)


def test_a_function_whose_own_python_takes_longer_is_measured():
    def checks(seconds):
        return step(called=(a_called("checks", own_s=seconds), a_called("b", own_s=1e-3)))

    explanation = explained(checks(5e-3), checks(14e-3))

    assert shown(explanation) == [("slower", "checks")]
    assert explanation.causes[0].delta_s == pytest.approx(9e-3, rel=0.05)


def test_functions_have_a_machine_of_their_own():
    """They are timed at other moments than operators: this head's all take 1.5 times as long."""

    def functions(by, checks_s):
        unchanged = (a_called(name, own_s=5e-3 * by) for name in ("a", "b", "c", "d"))
        return step(called=(*unchanged, a_called("checks", own_s=checks_s)))

    assert shown(explained(functions(1, 5e-3), functions(1.5, 7.5e-3))) == []
    found = explained(functions(1, 5e-3), functions(1.5, 21e-3)).causes
    assert [(cause.kind, cause.place.function) for cause in found] == [("slower", "checks")]
    assert found[0].delta_s == pytest.approx(9e-3, rel=0.02)


def waiting(seconds, name="time.sleep"):
    return step(called=(a_called("fetch", own_s=1e-4 + seconds, waiting_s=seconds, waits_in=name),))


def test_a_function_that_waits_longer_says_in_what():
    (cause,) = explained(waiting(1e-3), waiting(9e-3)).causes

    assert (cause.kind, cause.waits_in, cause.evidence) == ("waits", "time.sleep", "measured")
    assert cause.share.share == pytest.approx(0.8, rel=0.05)


@pytest.mark.parametrize(("wander", "kinds"), [((1, 1.01, 0.99), ["waits"]), ((0.2, 1, 2), [])])
def test_waiting_without_a_name_must_be_alike_in_all_pairs(wander, kinds):
    found = explained(waiting(1e-3, ""), waiting(9e-3, ""), wander=wander).causes

    assert [cause.kind for cause in found] == kinds


# --- profiles that disagree


def test_profiles_that_go_the_other_way_name_no_cause():
    head = step(a_use("aten::sin", 4, "added", call_s=2e-3), step_s=1.1 * STEP_S)
    explanation = explained(step(), head, FASTER)

    assert explanation.trouble == "the profiled runs do not show this change"
    assert explanation.causes == ()


# --- kinds


def test_forward_operators_that_run_again_in_the_backward_pass_are_recomputed():
    forward = a_use("aten::addmm", 2, "mlp", call_s=1e-3)
    again = a_use("aten::addmm", 2, "mlp", call_s=1e-3, is_backward=True)
    (cause,) = explained(step(forward), step(forward, again)).causes

    assert (cause.kind, cause.is_backward) == ("recomputed", True)


def test_a_backward_pass_that_grows_with_its_forward_pass_is_not_recomputed():
    def both_passes(calls):
        return (a_use("aten::mul", calls, "f"), a_use("aten::mul", calls, "f", is_backward=True))

    (cause,) = explained(step(*both_passes(2)), step(*both_passes(4))).causes

    assert cause.kind == "more"


@pytest.mark.parametrize(("on_device", "kind"), [(True, "synchronises"), (False, "new")])
def test_a_number_that_the_host_asks_of_a_device_synchronises(on_device, kind):
    head = step(a_use("aten::_local_scalar_dense", 2, "log"))
    (cause,) = causes.explain(timed_pairs(step(), head), is_gain=False, on_device=on_device).causes

    assert cause.kind == kind


def test_graph_breaks_are_read_off_their_row():
    breaks = a_change("w", metric=metrics.GRAPH_BREAKS, base=1, head=3)
    found = causes.attach_explanations([SLOWER, breaks], [timed_pairs(step(), step())])
    rows = [row for row in found if isinstance(row, Change)]
    (cause,) = next(row.explanation for row in rows if row.explanation).causes

    assert (cause.kind, cause.calls_base, cause.calls_head) == ("breaks_graph", 1, 3)
