"""A whole back-test in a real repository, whose sessions answer as they were recorded."""

import msgspec
import pytest

from ci_perf.errors import BusyError, InvalidFileError, UsageError
from ci_perf.features.backtest import backtest, merges
from ci_perf.features.backtest.backtested import Backtest, MergeOutcome
from ci_perf.features.backtest.sessions import MergeAnswer, MergeSessions
from ci_perf.gate import measure
from ci_perf.gate.options import MeasureOptions
from ci_perf.model.comparison import Verdict
from ci_perf.system import files, signals
from tests import repositories
from tests.comparisons import a_change
from tests.projects import Project
from tests.runs import CPU

pytestmark = pytest.mark.usefixtures("lone_git")

SLOWER = a_change("w", verdict=Verdict.REGRESSED, ratio=1.2)
FASTER = a_change("w", verdict=Verdict.IMPROVED, ratio=0.8)
MOVED = MergeAnswer(outcome=MergeOutcome.SUSPECTED, changes=(SLOWER,))
SAME, CALM = (
    MergeAnswer(outcome=MergeOutcome.SAME_PROGRAM),
    MergeAnswer(outcome=MergeOutcome.UNCHANGED),
)
BROKEN = MergeAnswer(outcome=MergeOutcome.BROKEN, note="setup of the head: no compiler")
NOISY = MergeAnswer(outcome=MergeOutcome.UNDECIDED, note="w: no answer on step_time_s")
LATE = MergeAnswer(outcome=MergeOutcome.OPEN)
LAST = 4


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    """A line of five commits, c0 to c4."""
    made = repositories.init(tmp_path_factory.mktemp("backtest") / "project")
    Project(made.root).workload("w").suite("w")
    for number in range(LAST + 1):
        made.commit(code_py=f"{number}")
        made.ask("tag", f"c{number}")
    return made


class Recorded(MergeSessions):
    """Answers by the number of a commit: the first time, and again."""

    def __init__(self, commits, answers, launched):
        self.commits, self.answers, self.launched = commits, answers, launched

    def measure(self, merge, *, left_s, retest=0):
        del left_s
        number = self.commits.index(merge.commit.id)
        self.launched.append((number, retest))
        answer = self.answers.get(f"{number} again" if retest else number, CALM)
        if isinstance(answer, BaseException):
            raise answer
        return answer


@pytest.fixture
def go(repository, tmp_path):
    """Back-test the line; `launched` is what was launched, and as which retest."""

    def go(answers, *, launched=None, last=LAST, budget_s=100.0, output="backtest.json"):
        options = MeasureOptions(
            root=repository.root, workloads=repository.root / "workloads", budget_s=budget_s
        )
        line = merges.find_merges(repository.root, "main", last)
        begun = backtest.begin(line, options, measure.plan(options), CPU, last)
        path = tmp_path / output
        begun = backtest.resume(begun, path) if path.exists() else begun
        commits = [repository.ask("rev-parse", f"c{number}") for number in range(LAST + 1)]
        sessions = Recorded(commits, answers, [] if launched is None else launched)
        with signals.note_signals() as ending:
            return backtest.Backtesting(
                begun, sessions, budget_s, path, lambda _line: None, ending
            ).go()

    return go


def outcomes(answer):
    return [each.outcome.value for each in answer.merges]


def test_only_what_fresh_pairs_confirm_has_moved(go):
    launched = []

    answer = go({4: MOVED, "4 again": MOVED, 3: MOVED, "3 again": CALM, 2: SAME}, launched=launched)

    assert outcomes(answer) == ["moved", "unconfirmed", "same_program", "unchanged"]
    assert launched == [(4, 0), (4, 1), (3, 0), (3, 2), (2, 0), (1, 0)]
    assert answer.merges[0].changes == (SLOWER,)
    assert answer.ended == "finished"


def test_fresh_pairs_that_say_the_opposite_confirm_nothing(go):
    answer = go(
        {4: MOVED, "4 again": MergeAnswer(outcome=MergeOutcome.SUSPECTED, changes=(FASTER,))}
    )

    assert outcomes(answer)[0] == "unconfirmed"


def test_what_cannot_be_measured_is_a_row_that_says_so(go):
    answer = go({4: BROKEN, 3: NOISY})

    assert outcomes(answer) == ["broken", "undecided", "unchanged", "unchanged"]
    assert [each.note for each in answer.merges[:2]] == [BROKEN.note, NOISY.note]


def test_an_interrupt_keeps_what_was_found_and_the_next_call_goes_on(go, tmp_path):
    first, second, third = [], [], []

    before = go({4: MOVED, "4 again": KeyboardInterrupt()}, launched=first)
    middle = go({"4 again": MOVED, 3: CALM, 2: KeyboardInterrupt()}, launched=second)
    answer = go({}, launched=third)

    assert (before.ended, outcomes(before)[0]) == ("interrupted", "suspected")
    assert outcomes(middle) == ["moved", "unchanged", "open", "open"]
    assert second == [(4, 1), (3, 0), (2, 0)]
    assert third == [(2, 0), (1, 0)]
    assert outcomes(answer) == ["moved", "unchanged", "unchanged", "unchanged"]
    assert answer == files.read(tmp_path / "backtest.json", Backtest)


def test_a_machine_that_fails_keeps_what_was_found(go, tmp_path):
    with pytest.raises(BusyError):
        go({3: BusyError("held")})

    assert outcomes(files.read(tmp_path / "backtest.json", Backtest))[0] == "unchanged"


def test_a_budget_that_ends_leaves_the_rest_open(go):
    answer = go({3: LATE})

    assert (answer.ended, outcomes(answer)) == ("budget", ["unchanged", "open", "open", "open"])


@pytest.mark.parametrize(("budget_s", "answers"), [(0.0, {}), (60.0, {4: LATE})])
def test_a_budget_that_decides_no_merge_is_an_error(go, budget_s, answers):
    with pytest.raises(UsageError, match=r"--budget: expected time for one merge"):
        go(answers, budget_s=budget_s)


def test_merges_that_a_file_knows_stay_where_fewer_are_asked_for(go):
    go({4: MOVED, "4 again": MOVED, 1: BROKEN})
    launched = []

    answer = go({}, last=2, launched=launched)

    assert outcomes(answer) == ["moved", "unchanged", "unchanged", "broken"]
    assert launched == []


def test_the_file_of_something_else_is_refused(go, tmp_path):
    path = tmp_path / "backtest.json"
    known = go({4: MOVED, "4 again": MOVED})
    others = {
        "this repository": ("repository", "f" * 40),
        "as it is today": ("rules", "other"),
        "this machine": ("machine", msgspec.structs.replace(CPU, cpu_model="another")),
    }
    for expected, (name, value) in others.items():
        made = msgspec.convert({**msgspec.structs.asdict(known), name: value}, Backtest)
        files.write(path, made.sealed())
        with pytest.raises(InvalidFileError, match=f"expected a back-test .*{expected}"):
            go({})


def test_an_edited_file_is_refused(go, tmp_path):
    path = tmp_path / "backtest.json"
    go({})
    path.write_text(path.read_text().replace('"unchanged"', '"same_program"', 1))

    with pytest.raises(InvalidFileError, match="expected an unchanged file"):
        go({})


def test_the_file_of_another_version_says_what_to_do(go, tmp_path):
    (tmp_path / "backtest.json").write_text('{"type": "backtest", "schema_version": 1, "x": 1}')

    with pytest.raises(InvalidFileError, match=r"unknown key 'x'.*; name a new file with -o"):
        go({})
