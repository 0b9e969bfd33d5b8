"""A whole bisect in a real repository, whose sessions answer as they were recorded."""

import pytest

from ci_perf.errors import CiPerfError, UsageError
from ci_perf.features.bisect import bisect
from ci_perf.features.bisect.bisection import CommitAnswer
from ci_perf.features.bisect.sessions import BisectSessions, Measurement
from ci_perf.gate.options import MeasureOptions
from ci_perf.model.comparison import Verdict
from ci_perf.session import Listener
from tests import repositories
from tests.comparisons import a_change
from tests.projects import Project

SLOW = Measurement(rows=(a_change("w", verdict=Verdict.REGRESSED, ratio=1.3),))
FAST = Measurement(rows=(a_change("w", ratio=1.0, pairs=4),))
NOISY = Measurement(rows=(a_change("w", verdict=Verdict.INCONCLUSIVE),))
BROKEN = Measurement(failure="setup of the head: no compiler", output="cc: not found")
SAME = Measurement(is_same=True)
LATE = Measurement(rows=NOISY.rows, is_out_of_time=True)
LAST = 8
pytestmark = pytest.mark.usefixtures("lone_git")


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    """A line of nine commits, c0 to c8, with a suite of two workloads."""
    made = repositories.init(tmp_path_factory.mktemp("bisect") / "project")
    Project(made.root).workload("w").workload("v.two").suite("w", "v.two")
    for number in range(LAST + 1):
        made.commit(code_py=f"{number}")
        made.ask("tag", f"c{number}")
    return made


def sessions(answers, launched):
    """Return what answers by the number of a commit; "pair" is the culprit and its parent."""

    class Recorded(BisectSessions):
        def measure(self, commit, judge, *, against=None):
            del judge
            self.count += 1
            number = commits.index(commit)
            launched.append("pair" if against else number)
            answer = answers["pair" if against else number]
            if isinstance(answer, BaseException):
                raise answer
            return answer

    commits = answers["commits"]
    return Recorded


def bisected(repository, answers, *, launched=None, good="c0", bad="c8", select="w", **more):
    commits = [repository.ask("rev-parse", f"c{number}") for number in range(LAST + 1)]
    measuring = MeasureOptions(root=repository.root, select=(select,), **more.pop("measuring", {}))
    return bisect.search(
        measuring,
        good,
        bad,
        **more,
        notify=lambda _line: None,
        listener=Listener,
        sessions=sessions(answers | {"commits": commits}, [] if launched is None else launched),
    )


def line(culprit, **more):
    """Answer rightly for every commit of a line."""
    answers = {number: SLOW if number >= culprit else FAST for number in range(LAST + 1)}
    return answers | {"pair": SLOW} | {int(name[1:]): value for name, value in more.items()}


@pytest.mark.parametrize("culprit", [1, 4, LAST])
def test_the_culprit_is_found_and_its_parent_shows_it(repository, culprit):
    launched = []

    answer = bisected(repository, line(culprit), launched=launched)

    assert (answer.outcome, answer.ended) == ("found", "decided")
    assert answer.commits[answer.high].commit.id == repository.ask("rev-parse", f"c{culprit}")
    assert launched[0] == LAST
    # One machine needs no more of them than a search by halves, and the parent is the known-good
    # commit where the culprit comes first.
    assert len(launched) <= 4 + (culprit > 1)
    assert (launched[-1] == "pair") == (culprit > 1)
    assert len(repository.worktrees()) == 1


def test_what_cannot_be_measured_is_named_within_the_range(repository):
    answer = bisected(repository, line(5, c4=BROKEN, c3=NOISY))

    assert (answer.outcome, answer.low, answer.high) == ("range", 2, 5)
    assert answer.commits[4].answer is CommitAnswer.FAILED
    assert answer.commits[4].note == "setup of the head: no compiler"
    assert answer.commits[3].answer is CommitAnswer.UNDECIDED


def test_a_culprit_that_its_parent_does_not_show_is_not_blamed(repository):
    answer = bisected(repository, line(5) | {"pair": NOISY})

    assert answer.outcome == "range"
    assert answer.parent.change.verdict is Verdict.INCONCLUSIVE


def test_a_commit_of_the_same_program_as_the_good_one_is_like_it(repository):
    answer = bisected(repository, line(5, c4=SAME))

    assert answer.outcome == "found"
    assert answer.commits[4].same_as == answer.commits[0].commit.id
    # Its parent is the same program as the known-good commit: no session more.
    assert not answer.parent.launched


@pytest.mark.parametrize(
    ("seen", "same_as"), [(FAST, ""), (NOISY, ""), (SAME, "the known-good one")]
)
def test_a_bad_commit_that_is_not_worse_ends_it(repository, seen, same_as):
    launched = []

    answer = bisected(repository, line(5, c8=seen), launched=launched)

    assert (answer.outcome, answer.metric, launched) == ("not_worse", "", [LAST])
    assert bool(answer.commits[LAST].same_as) == bool(same_as)


def test_a_bad_commit_that_cannot_be_measured_is_an_error(repository):
    with pytest.raises(CiPerfError, match=r"c8 .*no compiler") as raised:
        bisected(repository, line(5, c8=BROKEN))

    assert raised.value.output == "cc: not found"
    assert len(repository.worktrees()) == 1


def test_an_interrupt_says_what_is_known(repository):
    answer = bisected(repository, line(5, c4=FAST, c6=KeyboardInterrupt()))

    assert (answer.outcome, answer.ended, answer.low, answer.high) == ("range", "interrupted", 4, 8)
    assert answer.commits[5].answer is CommitAnswer.OPEN
    assert len(repository.worktrees()) == 1


def test_an_interrupt_before_anything_is_known_is_one(repository):
    with pytest.raises(KeyboardInterrupt):
        bisected(repository, line(5, c8=KeyboardInterrupt()))

    assert len(repository.worktrees()) == 1


def test_a_budget_that_ends_within_a_session_blames_no_noise(repository):
    answer = bisected(repository, line(5, c6=LATE))

    assert (answer.ended, answer.low, answer.high) == ("budget", 4, 8)
    assert answer.commits[6].answer is CommitAnswer.OPEN


def test_without_a_budget_only_the_bad_commit_is_measured(repository):
    launched = []

    answer = bisected(repository, line(5), launched=launched, measuring={"budget_s": 0.0})

    assert (answer.ended, launched) == ("budget", [LAST])


def test_what_is_worse_by_another_metric_is_looked_for_by_name(repository):
    with pytest.raises(UsageError, match=r"--metric: expected one of step_time_s, .* found 'time'"):
        bisected(repository, line(5), metric="time")
    with pytest.raises(UsageError, match="w has no such metric here"):
        bisected(repository, line(5), metric="energy_j")


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"select": "nope"}, "nope: expected a workload of smoke at c8; name one of w, v.two"),
        ({"good": "c8", "bad": "c0"}, "the other way round"),
    ],
)
def test_what_is_asked_wrongly_is_said_before_anything_is_measured(repository, asked, said):
    launched = []

    with pytest.raises(UsageError, match=said):
        bisected(repository, line(5), launched=launched, **asked)

    assert launched == []


def test_uncommitted_changes_are_noted(repository):
    (repository.root / "code.py").write_text("uncommitted")
    try:
        assert "uncommitted changes are not measured" in bisected(repository, line(5)).notes[0]
    finally:
        repository.ask("checkout", "--quiet", "code.py")
