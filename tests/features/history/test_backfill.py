"""A backfill in a real repository, whose sessions answer as they were recorded."""

import msgspec
import pytest

from ci_perf.baselines import layout
from ci_perf.errors import CannotWriteError, CiPerfError, UsageError
from ci_perf.features.history import backfill
from ci_perf.features.history import backfill_report as report
from ci_perf.features.history.backfill import RunSessions
from ci_perf.gate.options import MeasureOptions
from ci_perf.model.baseline import MAX_SESSIONS
from ci_perf.model.run import Run
from ci_perf.model.task import MachineDescription
from ci_perf.report import tables
from ci_perf.session import Listener
from tests import repositories
from tests.comparisons import a_plant
from tests.histories import in_turns, pairs
from tests.projects import Project
from tests.runs import STEADY, a_failed, a_measured, a_run, an_environment

LAST = 4
pytestmark = pytest.mark.usefixtures("lone_git")


@pytest.fixture
def repository(tmp_path):
    """A line of five commits, c0 to c4, with a suite of one workload."""
    made = repositories.init(tmp_path / "project")
    Project(made.root).workload("w").suite("w")
    for number in range(LAST + 1):
        made.commit(code_py=f"{number}")
        made.ask("tag", f"c{number}")
    return made


def sessions(repository, answers):
    """Return what measures each commit to the same numbers, unless `answers` has another answer."""

    class Recorded(RunSessions):
        def describe(self, own, ending):
            del own, ending
            return MachineDescription(device="cpu", locks=(), gpus=(), environment=an_environment())

        def measure(self, own, ending):
            del ending
            commit = repositories.Repository(own.root).ask("rev-parse", "HEAD")
            name = repository.ask("describe", "--tags", commit)
            answer = answers.get(name, a_measured("w", *STEADY))
            if isinstance(answer, BaseException):
                raise answer
            if isinstance(answer, Run):
                return answer
            workloads = answer if isinstance(answer, tuple) else (answer,)
            return a_run(*workloads, commit=commit, id=f"run-{name}")

    return Recorded(print, Listener)


def filled(repository, commits="c0..c4", answers=None, *, every=1):
    measuring = MeasureOptions(root=repository.root, baselines=repository.root / "baselines")
    return backfill.fill(
        measuring,
        commits,
        every=every,
        force=False,
        notify=print,
        sessions=sessions(repository, answers or {}),
    )


def outcomes(answer):
    return [each.outcome for each in answer.commits]


def recorded(repository):
    """Return the commits of the sessions in the baseline, by their tags, oldest first."""
    (baseline,) = layout.read_everything(repository.root / "baselines")
    return [repository.ask("describe", "--tags", s.source.commit) for s in baseline.sessions]


def test_each_commit_gets_a_session_oldest_first_and_nothing_is_committed(repository):
    before = repository.ask("rev-parse", "HEAD")

    answer = filled(repository)

    assert outcomes(answer) == ["measured"] * LAST
    assert recorded(repository) == ["c1", "c2", "c3", "c4"]
    assert repository.ask("rev-parse", "HEAD") == before
    assert len(repository.worktrees()) == 1
    (baseline,) = layout.read_everything(repository.root / "baselines")
    assert (
        baseline.sessions[0].reason == f"Backfill of {repository.ask('rev-parse', 'c1')[:12]} more"
    )


def test_a_run_that_was_slowed_down_on_purpose_is_no_session(repository):
    planted = in_turns(a_run(a_measured("w", *STEADY)), pairs(1.1), planted=a_plant("w"))

    answer = filled(repository, "c0..c1", {"c1": planted})

    assert outcomes(answer) == ["failed"]
    assert "on purpose" in answer.commits[0].note
    assert layout.read_everything(repository.root / "baselines") == ()


def test_every_second_commit_ends_with_the_last_one(repository):
    filled(repository, every=2)

    assert recorded(repository) == ["c2", "c4"]


def test_the_same_command_goes_on_where_it_ended(repository):
    first = filled(repository, answers={"c3": KeyboardInterrupt()})
    again = filled(repository)

    assert (outcomes(first), first.is_interrupted) == (["measured", "measured"], True)
    assert outcomes(again) == ["known", "known", "measured", "measured"]
    assert recorded(repository) == ["c1", "c2", "c3", "c4"]


def test_a_commit_that_fails_is_named_and_loses_no_other(repository):
    broken = a_failed("w", "RuntimeError: boom")
    answers = {"c1": CiPerfError("setup of the head: no compiler"), "c3": broken}

    answer = filled(repository, answers=answers)

    assert outcomes(answer) == ["failed", "measured", "failed", "measured"]
    assert [each.note for each in answer.commits if each.note] == [
        "setup of the head: no compiler",
        "w: RuntimeError: boom",
    ]
    # A later one has a session: an older one is not put behind it.
    assert outcomes(filled(repository)) == ["passed", "known", "passed", "known"]


def test_a_workload_that_fails_beside_another_is_named(repository):
    answers = {"c4": (a_measured("w", *STEADY), a_failed("v", "boom"))}

    answer = filled(repository, answers=answers)

    assert (answer.commits[-1].outcome, answer.commits[-1].note) == ("failed", "v: boom")
    assert recorded(repository)[-1] == "c4"


def test_what_is_no_matter_of_a_commit_ends_it(repository):
    with pytest.raises(CannotWriteError):
        filled(repository, answers={"c2": CannotWriteError("disk full")})

    assert recorded(repository) == ["c1"]


@pytest.mark.parametrize("commits", ["c0..c2", "c1..c2"])
def test_sessions_of_later_commits_are_not_followed_by_older_ones(repository, commits):
    filled(repository, "c2..c4")

    with pytest.raises(UsageError, match=r"one of w at [0-9a-f]{12}; .* --baselines perf-history"):
        filled(repository, commits)


def test_sessions_of_earlier_commits_are_no_obstacle(repository):
    filled(repository, "c0..c2")
    filled(repository, "c2..c4")

    assert recorded(repository) == ["c1", "c2", "c3", "c4"]


@pytest.mark.parametrize("commits", ["main", "..main", "c0..", "c0...c4"])
def test_what_is_no_range_is_wrong_use(repository, commits):
    with pytest.raises(UsageError, match=r"expected FROM\.\.TO"):
        filled(repository, commits)


def test_no_session_is_pushed_out_before_it_is_committed(repository):
    repository.commit(code_py="many")
    for number in range(LAST + 1, MAX_SESSIONS + 3):
        repository.commit(code_py=f"{number}")
        repository.ask("tag", f"c{number}")
    last = MAX_SESSIONS + 2
    named = {"answers": {}, "commits": f"c0..c{last}"}

    first = filled(repository, **named)
    again = filled(repository, **named)
    repository.ask("add", "baselines")
    repository.ask("commit", "--quiet", "--message=Backfill")
    after = filled(repository, **named)

    assert outcomes(first).count("measured") == MAX_SESSIONS
    assert outcomes(again).count("measured") == 0
    assert outcomes(again)[-3:] == ["left"] * 3
    assert outcomes(after)[-3:] == ["measured"] * 3
    assert recorded(repository)[-1] == f"c{last}"


def test_the_page_counts_and_says_what_comes_next(repository):
    answer = filled(repository, answers={"c2": CiPerfError("no | compiler")})
    text = tables.markdown(report.page(msgspec.structs.replace(answer, baselines="baselines")))

    assert text.startswith("**4 commits of `smoke`: 3 measured, 1 failed**")
    assert "| failed: `no \\| compiler` |" in text
    assert "next: `git add baselines && git commit`, then `ci-perf history`" in text
