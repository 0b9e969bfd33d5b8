"""What comes first, and what only times show."""

import msgspec
import pytest

from ci_perf.features.explain import causes
from ci_perf.model.explanation import ProfiledPair, ProfiledPairs
from tests.features.explain.cause_rows import explained, left, shown, step
from tests.step_profiles import a_called, a_use, timed_pairs

# --- seconds


def test_operators_take_calls_times_the_time_of_a_call():
    (cause,) = explained(step(), step(a_use("aten::sin", 4, "added", call_s=2e-3))).causes

    assert cause.delta_s == pytest.approx(8e-3, rel=0.02)


def test_what_replaces_an_operator_takes_only_the_difference():
    base = step(a_use("aten::sdpa", 2, "attend", call_s=3e-3))
    head = step(a_use("aten::bmm", 4, "attend", call_s=4e-3))
    (cause,) = explained(base, head).causes

    assert cause.delta_s == pytest.approx(10e-3, rel=0.02)


def test_a_new_function_adds_its_own_python_beside_its_operators():
    loop = a_use("aten::mm", 4, "per_sample", call_s=1e-3)
    head = step(loop, called=(a_called("per_sample", own_s=5e-3),))
    (cause,) = explained(step(called=(a_called("other", own_s=1e-3),)), head).causes

    assert cause.delta_s == pytest.approx(9e-3, rel=0.03)


def test_what_is_not_timed_has_no_seconds():
    (cause,) = explained(step(), step(a_use("aten::sin", 4, "added"))).causes

    assert cause.delta_s is None


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
    found = causes.explain(profiled, is_gain=False).causes

    assert [cause.kind for cause in found] == kinds


def test_without_times_the_most_calls_come_first():
    untimed = msgspec.structs.replace(DECOY, call_s=None)
    explanation = explained(step(), step(a_use("aten::sin", 1, "added"), untimed))

    assert shown(explanation) == [("new", "decoy"), ("new", "added")]


def test_what_saves_time_is_no_cause_of_a_loss():
    base = step(a_use("aten::sin", 4, "saves", call_s=2e-3))
    explanation = explained(base, step(a_use("aten::cos", 4, "adds", call_s=2e-3)))

    assert (shown(explanation), left(explanation)) == ([("new", "adds")], ["saves"])
    explanation = explained(base, step(), is_gain=True)
    assert (shown(explanation), left(explanation)) == ([("gone", "saves")], [])


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
    assert explanation.causes[0].delta_s == pytest.approx(10e-3, rel=0.05)


@pytest.mark.parametrize(
    ("by", "wander"),
    [(1.5, (1.0, 1.0)), (1.05, (1.0, 1.0, 1.0)), (0.98, (1.0, 1.0, 1.0))],
)
def test_fewer_pairs_or_smaller_differences_are_not_measured(by, wander):
    assert shown(explained(slower_kernel(1), slower_kernel(by), wander=wander)) == []


def test_a_pair_that_shows_next_to_nothing_is_enough_for_silence():
    def pair(by):
        return ProfiledPair(base=slower_kernel(1), head=slower_kernel(by))

    profiled = ProfiledPairs(workload="w", pairs=(pair(1.5), pair(1.03), pair(1.6)))

    assert causes.explain(profiled, is_gain=False).causes == ()


def test_what_wanders_as_far_on_one_side_is_not_measured():
    def side(by):
        return step(a_use("my::scale", 2, "scale", call_s=10e-3 * by))

    pairs = tuple(ProfiledPair(base=side(by), head=side(1.5 * by)) for by in (1, 1.6, 0.7))
    profiled = ProfiledPairs(workload="w", pairs=pairs)

    assert causes.explain(profiled, is_gain=False).causes == ()


def test_a_machine_that_is_a_little_slower_is_no_operator():
    explanation = explained(slower_kernel(1), slower_kernel(1), wander=(1.07, 1.072, 1.069))

    assert shown(explanation) == []


def test_a_function_whose_own_python_takes_longer_is_measured():
    def checks(seconds):
        return step(called=(a_called("checks", own_s=seconds), a_called("b", own_s=1e-3)))

    explanation = explained(checks(5e-3), checks(14e-3))

    assert shown(explanation) == [("slower", "checks")]
    assert explanation.causes[0].delta_s == pytest.approx(9e-3, rel=0.05)


# --- kinds


@pytest.mark.parametrize(("on_device", "kind"), [(True, "synchronises"), (False, "new")])
def test_a_number_that_the_host_asks_of_a_device_synchronises(on_device, kind):
    head = step(a_use("aten::_local_scalar_dense", 2, "log"))
    (cause,) = causes.explain(timed_pairs(step(), head), is_gain=False, on_device=on_device).causes

    assert cause.kind == kind
