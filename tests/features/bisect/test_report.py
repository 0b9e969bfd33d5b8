"""The answer of `ci-perf bisect` in words: the commit, or the range and why it is no smaller."""

import re
import shlex
from pathlib import Path

import msgspec
import pytest

from ci_perf.features.bisect import report
from ci_perf.features.bisect.bisection import CommitAnswer, ParentPairs
from ci_perf.model.comparison import Verdict
from ci_perf.report import tables
from tests.comparisons import a_change
from tests.features.bisect.bisections import AS_FAST, SLOWER, a_bisected, a_bisection
from tests.reviewed import assert_all_reviewed

GOLDEN = Path(__file__).parent / "golden/answers.md"

GOOD, BAD = CommitAnswer.LIKE_GOOD, CommitAnswer.LIKE_BAD
IN_PART = a_change("mlp", verdict=Verdict.REGRESSED, ratio=1.1)
NOT_WORSE = {"outcome": "not_worse", "metric": "", "low": 0, "high": 2}
LINE = (a_bisected(0, GOOD), a_bisected(1))


def with_commit(place, commit):
    """The usual line with another commit at this place."""
    line = list(a_bisection().commits)
    line[place] = commit
    return a_bisection(*line)


SHAPES = {
    "the commit comes first with what it did": a_bisection(),
    "known pairs of the same programs need no session": a_bisection(
        parent=ParentPairs(change=SLOWER, launched=False)
    ),
    "a commit that is a part of the loss": a_bisection(parent=ParentPairs(change=IN_PART)),
    "a merge, and how to go on within it": with_commit(
        3, a_bisected(3, BAD, change=SLOWER, parents=2)
    ),
    "a range, and why each commit of it is left": a_bisection(
        a_bisected(0, GOOD),
        a_bisected(1, CommitAnswer.UNDECIDED, change=a_change("mlp", Verdict.INCONCLUSIVE)),
        a_bisected(2, CommitAnswer.FAILED, note="build: no | compiler"),
        a_bisected(3, BAD, change=SLOWER),
        outcome="range",
        low=0,
        high=3,
    ),
    "the budget is spent": a_bisection(outcome="range", ended="budget", low=0, high=5),
    "interrupted": a_bisection(outcome="range", ended="interrupted", low=0, high=5),
    "a commit that its parent does not show": a_bisection(
        outcome="range", parent=ParentPairs(change=AS_FAST)
    ),
    "the bad commit is not worse": a_bisection(
        *LINE, a_bisected(2, GOOD, change=AS_FAST), **NOT_WORSE
    ),
    "the bad commit is the same program": a_bisection(
        *LINE, a_bisected(2, GOOD, same_as="0" * 40), **NOT_WORSE
    ),
    "the line was bad before": with_commit(1, a_bisected(1, BAD, change=SLOWER)),
    "a note": a_bisection(notes=("uncommitted changes",)),
}


def shown(answer):
    return tables.markdown(report.page(answer))


def test_the_answers_read_as_reviewed():
    assert_all_reviewed({name: shown(answer) for name, answer in SHAPES.items()}, GOLDEN)


def over_versions(answer):
    """The answer over versions: no program of two is known to be the same, and none is a merge."""
    versions = tuple(
        msgspec.structs.replace(
            each,
            commit=msgspec.structs.replace(each.commit, id=f"1.{at}", author="", date="", title=""),
            parents=0,
            same_as="",
        )
        for at, each in enumerate(answer.commits)
    )
    answer = msgspec.structs.replace(answer, over="torch", commits=versions)
    if answer.parent is None:
        return answer
    parent = msgspec.structs.replace(answer.parent, launched=True)
    return msgspec.structs.replace(answer, parent=parent)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_search_over_versions_speaks_of_no_commit(shape):
    words = shown(over_versions(SHAPES[shape]))

    assert re.findall(r"\b(?:commit|parent)\w*", words, re.IGNORECASE) == []


def test_a_search_over_versions_goes_on_in_its_own_suite():
    setup = "pip install --target {folder} 'torch=={version}' --find-links '/my wheels' --no-deps "
    setup += " ".join(f"other-{number}==1.0" for number in range(20))
    answer = msgspec.structs.replace(over_versions(SHAPES["the budget is spent"]), setup=setup)
    nights = [f"2.13.0.dev2026010{at}+{'cu130' * 8}" for at in range(len(answer.commits))]
    commits = tuple(
        msgspec.structs.replace(each, commit=msgspec.structs.replace(each.commit, id=night))
        for each, night in zip(answer.commits, nights, strict=True)
    )
    answer = msgspec.structs.replace(answer, commits=commits)

    (line,) = re.findall("`(ci-perf bisect [^`]*)`", shown(answer))
    left = nights[answer.low : answer.high + 1]
    words = f"{answer.workload} --over torch={','.join(left)} --setup".split()
    assert len(left) > 4
    assert shlex.split(line) == ["ci-perf", "bisect", *words, setup, "--suite", answer.suite]


def test_a_title_of_a_commit_is_shown_and_never_obeyed():
    hostile = a_bisected(3, BAD, change=SLOWER, title="`@all` <b> | ::error::")

    assert "``3333333333 `@all` <b> \\| : :error::``" in shown(with_commit(3, hostile))
