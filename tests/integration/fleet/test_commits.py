"""Commits measured by the nodes of a fleet: real processes and git, and answers as prepared."""

import json
import os
import signal
import threading

import pytest

import ci_perf
from ci_perf.baselines import layout
from ci_perf.errors import CiPerfError, UsageError
from ci_perf.gate import backfill, bisect
from ci_perf.gate.measure import MeasureOptions
from ci_perf.model.bisection import CommitAnswer
from ci_perf.report import backfill as backfill_page
from ci_perf.report import bisection as page
from ci_perf.report import tables
from ci_perf.session import Listener
from tests import commit_fleets, repositories
from tests.commit_fleets import launched
from tests.processes import is_alive, wait_until
from tests.projects import Project

LAST = 8


@pytest.fixture(autouse=True)
def _alone(monkeypatch):
    for name, value in repositories.ALONE.items():
        monkeypatch.setenv(name, value)


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    """A line of nine commits, c0 to c8, with a suite of one workload."""
    made = repositories.init(tmp_path_factory.mktemp("commits") / "project")
    Project(made.root).workload("w").suite("w")
    for number in range(LAST + 1):
        made.commit(code_py=f"{number}")
        made.ask("tag", f"c{number}")
    return made


@pytest.fixture
def nodes(repository, tmp_path, monkeypatch):
    """Have nodes answer rightly for a culprit; return the folder in which they say what they do."""
    ids = [repository.ask("rev-parse", f"c{number}") for number in range(LAST + 1)]

    def prepared(culprit, **more):
        answers = {at: "slow" if number >= culprit else "fast" for number, at in enumerate(ids)}
        answers |= {f"{ids[culprit]} beside {ids[culprit - 1]}": "profiled"}
        answers |= {ids[int(name[1:])]: word for name, word in more.items()}
        commit_fleets.prepare(tmp_path / "nodes", answers | {"others": "fast"}, monkeypatch)
        return tmp_path / "nodes"

    return prepared


def bisected(repository, folder, *, resume=False, count=3, explain=False, **more):
    return bisect.bisect(
        bisect.BisectOptions(
            measuring=MeasureOptions(root=repository.root, select=("w",), explain=explain),
            good="c0",
            bad=f"c{LAST}",
            fleet=commit_fleets.a_fleet(folder, nodes=count, resume=resume),
            **more,
        ),
        notify=lambda _line: None,
        listener=Listener,
    )


def numbers(repository, folder):
    """Return the numbers of the commits that were launched, in sorted batches of an engine."""
    tags = [repository.ask("describe", "--tags", commit) for commit, *_ in launched(folder)]
    return [int(tag[1:]) for tag in tags]


def test_the_commits_of_a_round_are_measured_together_and_the_culprit_beside_its_parent(
    repository, nodes
):
    folder = nodes(5)

    answer = bisected(repository, folder, explain=True)

    assert (answer.outcome, answer.low, answer.high, answer.rounds) == ("found", 4, 5, 2)
    first, *rounds, last = numbers(repository, folder)
    assert (first, sorted(rounds[:3]), sorted(rounds[3:]), last) == (LAST, [2, 4, 6], [5], 5)
    # The culprit is launched beside its parent, all others beside the known-good commit.
    *beside_good, (culprit, parent, _, _) = launched(folder)
    assert {base for _, base, *_ in beside_good} == {answer.commits[0].commit.id}
    assert (culprit, parent) == (answer.commits[5].commit.id, answer.commits[4].commit.id)
    assert answer.parent.launched
    # The first node says what the machine is; from then on a limit divides the commits.
    asked = [json.loads(work) for *_, work in launched(folder)]
    assert asked[0]["limits"] is None
    limit = asked[1]["limits"]["default"]["step_time_s"]["relative"]
    assert 1 + limit == pytest.approx(1.3 ** (2 / 3), rel=1e-2)
    # What the node has profiled of the last two explains the culprit.
    assert [work["explained"] for work in asked] == [False] * 5 + [True]
    assert answer.explained.base == parent
    assert [each.explanation is not None for each in answer.explained.workloads] == [True]


def test_a_round_has_as_many_commits_as_there_are_nodes(repository, nodes):
    folder = nodes(5)

    answer = bisected(repository, folder, count=1)

    assert (answer.outcome, answer.high) == ("found", 5)
    # One node is as one machine: each answer says which commits are needless.
    assert numbers(repository, folder) == [LAST, 4, 6, 5, 5]


def test_a_commit_that_is_lost_or_fails_is_named_and_stops_no_other(repository, nodes):
    folder = nodes(5, c4="lost", c6="broken")

    answer = bisected(repository, folder)

    assert (answer.outcome, answer.low, answer.high) == ("range", 3, 5)
    lost, broken = answer.commits[4], answer.commits[6]
    assert (lost.answer, broken.answer) == (CommitAnswer.FAILED, CommitAnswer.FAILED)
    assert "2 attempts on cpu-" in lost.note
    assert "no compiler" in broken.note
    assert numbers(repository, folder).count(4) == 2
    # What the lost attempts had checked out is gone.
    assert repository.worktrees() == [str(repository.root)]
    assert list(folder.glob("left-*")) == []


def test_a_bad_commit_that_no_node_can_measure_is_an_error(repository, nodes):
    folder = nodes(5, c8="broken")

    with pytest.raises(CiPerfError, match=r"c8 \([0-9a-f]{12} more\): .*no compiler"):
        bisected(repository, folder)


def test_an_interrupt_leaves_nothing_and_the_same_search_goes_on(repository, nodes):
    folder = nodes(5, c4="hangs")

    def interrupt():
        wait_until((folder / "hangs").exists)
        wait_until(lambda: len(list((folder / "fleet/round-1/runs").glob("*.json"))) == 2)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    answer = bisected(repository, folder)
    thread.join()

    assert (answer.ended, answer.low, answer.high) == ("interrupted", 2, 6)
    assert [pid for _, _, pid, _ in launched(folder) if is_alive(pid)] == []
    assert repository.worktrees() == [str(repository.root)]
    said = tables.markdown(page.page(answer))
    assert "goes on with `ci-perf bisect c0 c8 w --suite smoke --metric step_time_s --eng" in said
    assert f"--fleet-output {folder}/fleet --resume`" in said

    answers = json.loads((folder / "answers.json").read_text())
    commit_fleets.answer(folder, answers | {answer.commits[4].commit.id: "fast"})
    before = len(launched(folder))
    with pytest.raises(UsageError, match=r"--fleet-output .*: expected an empty folder"):
        bisected(repository, folder)
    again = bisected(repository, folder, resume=True)

    assert (again.outcome, again.high) == ("found", 5)
    # Only what was interrupted, the second round and the parent.
    assert numbers(repository, folder)[before:] == [4, 5, 5]


def backfilled(repository, folder, baselines, *, resume=False, extra="", commits="c0..c4"):
    measuring = MeasureOptions(root=repository.root, baselines=baselines)
    return backfill.backfill(
        backfill.BackfillOptions(
            measuring=measuring,
            commits=commits,
            fleet=commit_fleets.a_fleet(folder, resume=resume, extra=extra),
        ),
        notify=lambda _line: None,
        listener=Listener,
    )


def recorded(repository, baselines):
    """Return the commits of the sessions in the baseline, by their tags, oldest first."""
    (baseline,) = layout.read_everything(baselines)
    return [repository.ask("describe", "--tags", s.source.commit) for s in baseline.sessions]


def outcomes(answer):
    return [each.outcome for each in answer.commits]


@pytest.fixture
def baselines(tmp_path):
    return tmp_path / "baselines"


def test_the_sessions_of_a_backfill_are_added_oldest_first(
    repository, tmp_path, baselines, monkeypatch
):
    ids = [repository.ask("rev-parse", f"c{number}") for number in range(7)]
    answers = {ids[2]: "broken", ids[3]: "lost", "others": "steady"}
    commit_fleets.prepare(tmp_path / "nodes", answers, monkeypatch)

    answer = backfilled(repository, tmp_path / "nodes", baselines)

    assert outcomes(answer) == ["measured", "failed", "failed", "measured"]
    assert recorded(repository, baselines) == ["c1", "c4"]
    assert "no compiler" in answer.commits[1].note
    # A history is worth two retries.
    assert "3 attempts on cpu-" in answer.commits[2].note
    assert repository.worktrees() == [str(repository.root)]
    assert {base for _, base, *_ in launched(tmp_path / "nodes")} == {"None"}

    # What has a session, or is older than one, is not measured again: `expect` says whose it is.
    other = tmp_path / "later"
    commit_fleets.prepare(other, {"others": "steady"}, monkeypatch)
    with pytest.raises(UsageError, match=r"expected in `expect` of the class what tells which"):
        backfilled(repository, other, baselines, commits="c0..c6")
    expect = 'expect = { device = "cpu" }\n'
    again = backfilled(repository, other, baselines, commits="c0..c6", extra=expect)

    assert outcomes(again) == ["known", "passed", "passed", "known", "measured", "measured"]
    assert sorted(commit for commit, *_ in launched(other)) == sorted(ids[5:7])
    assert recorded(repository, baselines) == ["c1", "c4", "c5", "c6"]


def test_no_session_stands_before_one_that_an_interrupt_has_cut_off(
    repository, tmp_path, baselines, monkeypatch
):
    folder = tmp_path / "nodes"
    second = repository.ask("rev-parse", "c2")
    commit_fleets.prepare(folder, {second: "hangs", "others": "steady"}, monkeypatch)
    expect = 'expect = { device = "cpu" }\n'

    def interrupt():
        wait_until(lambda: len(list((folder / "fleet/commits-1/runs").glob("*.json"))) == 3)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    answer = backfilled(repository, folder, baselines, extra=expect)
    thread.join()

    assert (outcomes(answer), answer.is_interrupted) == (["measured"], True)
    assert recorded(repository, baselines) == ["c1"]
    assert "It was interrupted: the same command with --resume goes on" in tables.markdown(
        backfill_page.page(answer)
    )

    commit_fleets.answer(folder, {"others": "steady"})
    again = backfilled(repository, folder, baselines, resume=True, extra=expect)

    assert outcomes(again) == ["known", "measured", "measured", "measured"]
    assert recorded(repository, baselines) == ["c1", "c2", "c3", "c4"]
    assert [commit for commit, *_ in launched(folder)].count(second) == 2
    assert len(launched(folder)) == 5


def test_a_queue_of_the_owner_measures_commits(repository, nodes, tmp_path):
    folder = nodes(1)
    (tmp_path / "submit").write_text('setsid "$1" > /dev/null 2>&1 &\necho $!\n')
    (tmp_path / "poll").write_text(
        "while read -r handle; do\n"
        "  if [ -d /proc/$handle ] && ! grep -q 'State:.Z' /proc/$handle/status\n"
        '  then echo "$handle running here"; else echo "$handle ended here"; fi\n'
        "done\n"
    )
    commands = {name: ["sh", str(tmp_path / name)] for name in ("submit", "poll")}
    commands["submit"].append("{script}")
    engine = "".join(f"{name} = {json.dumps(words)}\n" for name, words in commands.items())
    table = tmp_path / "fleet.toml"
    table.write_text(f'[engine.command]\n{engine}cancel = ["xargs", "kill"]\n[class.cpu]\n')

    answer = ci_perf.bisect(
        *("c0", "c1", "w"),
        root=repository.root,
        engine="command",
        nodes=table,
        fleet_output=tmp_path / "fleet",
    )

    assert (answer.outcome, answer.high, answer.sessions) == ("found", 1, 1)
    assert len(launched(folder)) == 1
