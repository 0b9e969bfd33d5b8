"""What profiled pairs say by themselves, without any verdict."""

from ci_perf.features.explain import explain
from ci_perf.model.explanation import ProfiledPair, ProfiledPairs
from tests.features.explain.cause_rows import STEP_S, left, shown, step
from tests.step_profiles import a_use, timed_pairs

ADDED = a_use("aten::sin", 4, "added", call_s=2e-3)
GONE = a_use("aten::cos", 4, "gone", call_s=2e-3)


def explained(profiled):
    return explain.explain_pairs(profiled).explanation


def test_what_makes_a_step_longer_comes_first_where_it_is_longer():
    explanation = explained(timed_pairs(step(GONE), step(ADDED, step_s=1.1 * STEP_S)))

    assert (shown(explanation), left(explanation)) == ([("new", "added")], ["gone"])


def test_what_makes_a_step_shorter_comes_first_where_it_is_shorter():
    explanation = explained(timed_pairs(step(GONE), step(ADDED, step_s=0.9 * STEP_S)))

    assert (shown(explanation), left(explanation)) == ([("gone", "gone")], ["added"])


def test_steps_that_nobody_timed_are_explained_as_a_loss():
    explanation = explained(timed_pairs(step(GONE, step_s=None), step(ADDED, step_s=0.1)))

    assert shown(explanation) == [("new", "added")]


def test_sides_that_cannot_be_compared_say_so():
    profiled = ProfiledPairs(
        workload="w",
        pairs=(ProfiledPair(base=step(), head=step(cut=3, step_s=2 * STEP_S)),) * 3,
    )

    assert "too many different things" in explained(profiled).trouble
