import re
from pathlib import Path

import pytest

from ci_perf.features.history import level_changes, report
from ci_perf.report import terminal_page
from ci_perf.report.units import MINUS
from tests.features.history.branch_histories import (
    a_branch_history,
    a_change,
    a_commit,
    a_line,
    a_workload_history,
    skipped,
    steps,
)
from tests.reviewed import assert_all_reviewed

GOLDEN = Path(__file__).parent / "golden/terminal.txt"


def terminal(history, width=160):
    return terminal_page.render(report.page(history), width=width, color=False)


def moves(cause):
    return [(move.workload, move.metric) for move in cause.moves]


def test_changes_that_begin_with_one_commit_are_one_cause():
    lines = [
        a_line(a_change(3)),
        a_line(a_change(4, 2e-3, 2.3e-3, accepted=False), metric="step_p95_s"),
        a_line(a_change(3, 10, 11), metric="graph_breaks"),
    ]
    history = a_branch_history(
        a_workload_history(*steps(9), lines=lines),
        a_workload_history(*steps(9), lines=[a_line(a_change(3))], workload="v"),
    )

    (cause,) = level_changes.find_causes(history)

    assert cause.accepted
    assert (cause.commit.id, cause.reason) == (a_commit(3).id, "reason 3")
    assert moves(cause) == [
        ("w", "step_p95_s"),
        ("v", "step_time_s"),
        ("w", "graph_breaks"),
        ("w", "step_time_s"),
    ]


def test_changes_that_nobody_accepted_are_a_cause_of_their_own():
    lines = [a_line(a_change(2), a_change(6, accepted=False))]
    history = a_branch_history(a_workload_history(*steps(9), lines=lines))

    causes = level_changes.find_causes(history)

    assert [(cause.accepted, cause.commit.id) for cause in causes] == [
        (False, a_commit(6).id),
        (True, a_commit(2).id),
    ]


@pytest.mark.parametrize(
    ("metric", "before", "after", "is_worse", "words"),
    [
        ("step_time_s", 1e-3, 1.1e-3, True, "+10.0 %"),
        ("step_time_s", 1e-3, 0.9e-3, False, f"{MINUS}10.0 %"),
        ("scaling_efficiency", 0.9, 0.8, True, f"{MINUS}11.1 %"),
        ("graph_breaks", 0.0, 2.0, True, "+2"),
        ("graph_breaks", 2.0, 0.0, False, f"{MINUS}100 %"),
    ],
)
def test_a_move_says_how_far_and_whether_it_is_worse(metric, before, after, is_worse, words):
    history = a_branch_history(
        a_workload_history(*steps(4), lines=[a_line(a_change(2, before, after), metric=metric)])
    )

    (cause,) = level_changes.find_causes(history)

    assert (cause.is_worse, cause.moves[0].words) == (is_worse, words)


OLD = tuple(a_commit(place, age_days=400) for place in range(12))
SESSIONS = [[{"graph_breaks": 2.0, "step_time_s": step}] for (step, *_) in steps(4)]
NEVER_CHANGED = [a_line(), a_line(metric="graph_breaks", spread=None)]
SHAPES = {
    "what moved, and by whom": a_branch_history(
        a_workload_history(*steps(12, moved_at=(8,)), lines=[a_line(a_change(8))])
    ),
    "earlier changes, where nothing moved lately": a_branch_history(
        a_workload_history(*steps(12), lines=[a_line(a_change(8, accepted=False))]), commits=OLD
    ),
    "what is missing, first": a_branch_history(
        a_workload_history([1e-3], lines=[a_line(has_drifted=True, trend=1.05)]),
        is_shallow=True,
        has_change_points=False,
        skipped=tuple(skipped(f"w.json: damaged {number}") for number in range(7)),
    ),
    "the slowdown that the gate excludes": a_branch_history(
        a_workload_history(*steps(4, moved_at=(2,)))
    ),
    "a metric that never changed is counted": a_branch_history(
        a_workload_history(*SESSIONS, lines=NEVER_CHANGED)
    ),
    "two metrics that never changed": a_branch_history(
        a_workload_history(*SESSIONS[:1] * 2, lines=NEVER_CHANGED)
    ),
}


def test_histories_read_as_reviewed():
    assert_all_reviewed({name: terminal(each) for name, each in SHAPES.items()}, GOLDEN)


def test_hostile_words_command_no_terminal():
    hostile = "\x1b[2J ::error::</td>|`@all\n\u202e"
    commits = tuple(a_commit(place, author=hostile, title=hostile) for place in range(4))
    history = a_branch_history(
        a_workload_history(*steps(4), lines=[a_line(a_change(2))], machine=hostile),
        ref=hostile,
        commits=commits,
    )

    shown = terminal(history)

    assert not any(mark in shown for mark in ("\x1b", " ::error", "\u202e"))


def test_a_line_of_bars_shows_the_last_sessions_and_leaves_gaps_out():
    sessions = [[{"step_time_s": 1.0 + place}] for place in range(30)]
    sessions[-2] = [{"graph_breaks": 1.0}]

    shown = terminal(a_branch_history(a_workload_history(*sessions)))

    (bars,) = re.findall("[▁-█]{5,}", shown)
    assert (len(bars), bars[0], bars[-1]) == (20, "▁", "█")
