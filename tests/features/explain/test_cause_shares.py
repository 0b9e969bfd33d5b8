"""How much of a row's change each cause takes."""

import msgspec
import pytest

from ci_perf.features.explain import causes
from ci_perf.model import metrics
from ci_perf.model.comparison import Change, Verdict
from tests.comparisons import a_change
from tests.features.explain.cause_rows import FASTER, SLOWER, STEP_S, explained, step
from tests.features.explain.step_profiles import a_called, a_step, a_use, timed_pairs

CERTAIN = msgspec.structs.replace(
    SLOWER, interval=msgspec.structs.replace(SLOWER.interval, low=1.1, high=1.1)
)


def test_operators_take_calls_times_the_time_of_a_call():
    (cause,) = explained(step(), step(a_use("aten::sin", 4, "added", call_s=2e-3))).causes

    assert cause.delta_s == pytest.approx(8e-3, rel=0.02)
    assert cause.share.share == pytest.approx(0.8, rel=0.02)
    assert cause.share.low < 0.8 < cause.share.high


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


def test_a_gain_is_shared_out_alike():
    (cause,) = explained(step(a_use("aten::sin", 4, "gone", call_s=2e-3)), step(), FASTER).causes

    assert (cause.kind, cause.delta_s < 0) == ("gone", True)
    assert cause.share.share == pytest.approx(0.8, rel=0.02)


@pytest.mark.parametrize("wander", [(1.0,), (1.0, 1.01), (0.2, 1.0, 1.9)])
def test_few_pairs_and_those_that_lie_apart_resolve_no_size(wander):
    head = a_step(a_use("aten::sin", 4, "added", call_s=2e-3), step_s=STEP_S)
    (cause,) = explained(a_step(step_s=STEP_S), head, wander=wander).causes

    assert cause.share is None
    assert cause.delta_s is not None


def test_what_is_not_timed_has_no_seconds():
    (cause,) = explained(step(), step(a_use("aten::sin", 4, "added"))).causes

    assert (cause.delta_s, cause.share) == (None, None)


def test_an_uncertain_change_widens_the_bounds():
    head = step(a_use("aten::sin", 4, "added", call_s=2e-3))
    sure = explained(step(), head).causes[0].share
    interval = msgspec.structs.replace(SLOWER.interval, low=1.05, high=1.15)
    unsure = explained(step(), head, msgspec.structs.replace(SLOWER, interval=interval))

    assert unsure.causes[0].share.low < sure.low - 0.2


def test_shares_that_add_up_to_too_much_are_not_shown():
    added = [a_use("aten::sin", 4, f"f{i}", call_s=2e-3) for i in range(2)]
    found = explained(step(), step(*added)).causes

    assert [cause.share for cause in found] == [None, None]


def test_a_row_that_causes_do_not_add_up_to_has_no_shares():
    row = a_change("w", Verdict.REGRESSED, metric=metrics.FIRST_STEP)
    (cause,) = explained(step(), step(a_use("aten::sin", 4, "added", call_s=2e-3)), row).causes

    assert cause.share is None


def test_what_causes_leave_unexplained_may_belong_to_each():
    """Of 10 ms they take 4 and 2: any of the other 4 may be of either."""
    added = [
        a_use("aten::sin", 4, name, call_s=each_s) for name, each_s in (("f", 1e-3), ("g", 5e-4))
    ]
    first, second = (cause.share for cause in explained(step(), step(*added), CERTAIN).causes)

    assert (first.high, second.high) == pytest.approx((0.8, 0.6), rel=0.02)
    assert (first.share, second.share) == pytest.approx((0.4, 0.2), rel=0.02)
    assert first.low > 0.35


@pytest.mark.parametrize(("row", "most"), [(CERTAIN, 1.0), (SLOWER, 1.1)])
def test_a_lone_cause_takes_all_of_the_change_at_most(row, most):
    (cause,) = explained(step(), step(a_use("aten::sin", 4, "added", call_s=2e-3)), row).causes

    assert cause.share.high == pytest.approx(most)


def test_causes_that_explain_too_much_may_each_be_too_large():
    added = [a_use("aten::sin", 4, "f", call_s=2e-3), a_use("aten::sin", 5, "g", call_s=5e-4)]
    first, _ = (cause.share for cause in explained(step(), step(*added), CERTAIN).causes)

    assert first.low == pytest.approx(0.8 / 1.05, rel=0.01)


def test_causes_of_a_compiled_step_have_no_shares():
    """What is profiled runs as Python."""
    pairs = timed_pairs(step(), step(a_use("aten::sin", 4, "added", call_s=2e-3)))

    def share(graphs):
        row = a_change("w", metric=metrics.GRAPHS, base=graphs, head=graphs)
        explained_row, _ = causes.attach_explanations([SLOWER, row], [pairs])
        assert isinstance(explained_row, Change)
        assert explained_row.explanation is not None
        (cause,) = explained_row.explanation.causes
        return cause.share

    assert share(0) is not None
    assert share(1) is None
