"""The answer of `ci-perf bisect` in words: the commit, or the range and why it is no smaller."""

import msgspec
import pytest

from ci_perf.features.bisect import report
from ci_perf.features.bisect.bisection import CommitAnswer, ParentPairs
from ci_perf.features.explain.answer import ExplainedWorkload, ExplainedWorkloads
from ci_perf.model.comparison import Verdict
from ci_perf.report import tables
from tests.comparisons import a_change
from tests.features.bisect.bisections import AS_FAST, SLOWER, a_bisected, a_bisection

GOOD, BAD = CommitAnswer.LIKE_GOOD, CommitAnswer.LIKE_BAD


def shown(answer):
    return tables.markdown(report.page(answer))


def test_the_commit_comes_first_with_what_it_did():
    text = shown(a_bisection())

    assert text.startswith(
        "**`3333333333 Change 3` made `mlp` worse: step time +30.0 % [+29.0, +31.0]"
    )
    assert "By `maintainer`, 2026-11-21: `git show 3333" in text
    assert "9 pairs of it and its parent have shown it." in text
    assert "5 commits from `v1.0` to `main`: 4 sessions, 12 min 34 s" in text
    assert "| `2222222222 Change 2` | step time +0.1 %" in text
    assert "1 commit was not launched: it runs the same program" in text
    assert "Change 4" not in text


def test_known_pairs_of_the_same_programs_need_no_session():
    text = shown(a_bisection(parent=ParentPairs(change=SLOWER, launched=False)))

    assert "its parent runs the same program as the known-good commit" in text


def test_a_commit_that_is_a_part_of_the_loss_says_so():
    step = a_change("mlp", verdict=Verdict.REGRESSED, ratio=1.1)

    text = shown(a_bisection(parent=ParentPairs(change=step)))

    assert "made `mlp` worse: step time +10.0 %" in text
    assert "it is +30.0 %: other commits have added to it" in text
    assert "other commits" not in shown(a_bisection())


def test_a_merge_says_how_to_go_on_within_it():
    line = list(a_bisection().commits)
    line[3] = a_bisected(3, BAD, change=SLOWER, parents=2)

    within = "$(git merge-base 3333333333^1 3333333333^2) 3333333333^2"
    assert f"`ci-perf bisect {within} mlp --suite smoke`" in shown(a_bisection(*line))


def test_a_range_names_each_commit_of_it_and_why_it_is_left():
    text = shown(
        a_bisection(
            a_bisected(0, GOOD),
            a_bisected(1, CommitAnswer.UNDECIDED, change=a_change("mlp", Verdict.INCONCLUSIVE)),
            a_bisected(2, CommitAnswer.FAILED, note="build: no | compiler"),
            a_bisected(3, BAD, change=SLOWER),
            outcome="range",
            low=0,
            high=3,
        )
    )

    assert text.startswith("**One of 3 commits made `mlp` worse: step time +30.0 %")
    assert "Noise allows no more" in text
    assert "Commits that cannot be measured may be the one, too." in text
    assert "| `2222222222 Change 2` | `build: no \\| compiler` | failed |" in text
    assert "the known-good one |" in text


@pytest.mark.parametrize(
    ("ended", "said"), [("budget", "The budget is spent"), ("interrupted", "It was interrupted")]
)
def test_a_search_that_was_ended_says_what_ended_it(ended, said):
    text = shown(a_bisection(outcome="range", ended=ended, low=0, high=5))

    assert said in text
    assert "it goes on with `ci-perf bisect 0000000000 5555555555 mlp --suite smoke`" in text
    assert "| `4444444444 Change 4` | \N{EN DASH} | not measured |" in text


def test_one_commit_that_its_parent_does_not_show_is_no_answer():
    text = shown(a_bisection(outcome="range", parent=ParentPairs(change=AS_FAST)))

    assert "its pairs with its parent do not show it: step time +0.1 %" in text


def test_a_bad_commit_that_is_not_worse_says_what_was_seen():
    line = (a_bisected(0, GOOD), a_bisected(1), a_bisected(2, GOOD, change=AS_FAST))

    text = shown(a_bisection(*line, outcome="not_worse", metric="", low=0, high=2))

    assert text.startswith("**`main` is not proven worse than `v1.0` in `mlp`: step time +0.1 %")
    assert "Nothing was searched for." in text
    assert "Change 1" not in text


def test_a_bad_commit_of_the_same_program_needs_no_table():
    line = (a_bisected(0, GOOD), a_bisected(1), a_bisected(2, GOOD, same_as="0" * 40))

    text = shown(a_bisection(*line, outcome="not_worse", metric="", low=0, high=2))

    assert text.startswith("**`main` runs the same program as `v1.0` in `mlp`: nothing can have")
    assert "|" not in text
    assert "Nothing was searched" not in text


def test_a_line_that_was_bad_before_says_so():
    line = list(a_bisection().commits)
    line[1] = a_bisected(1, BAD, change=SLOWER)

    said = "commits were like the bad one, and later ones were not: `1111111111 Change 1`"
    assert said in shown(a_bisection(*line))


def test_notes_and_the_cause_stand_at_the_end():
    explained = ExplainedWorkloads(
        suite="smoke", base="2" * 40, workloads=(ExplainedWorkload(workload="mlp", trouble="none"),)
    )

    text = shown(a_bisection(notes=("uncommitted changes",), explained=explained))

    assert text.index("note: `uncommitted changes`") < text.index("1 workload of `smoke` explained")


def test_a_title_of_a_commit_is_shown_and_never_obeyed():
    line = list(a_bisection().commits)
    line[3] = msgspec.structs.replace(
        line[3], commit=msgspec.structs.replace(line[3].commit, title="`@all` <b> | ::error::")
    )

    text = shown(a_bisection(*line))

    assert "``3333333333 `@all` <b> \\| : :error::``" in text
