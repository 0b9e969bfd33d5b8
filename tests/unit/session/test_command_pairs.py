"""Which commands take turns at the steps that they print, and what ends that."""

import msgspec
import pytest

from ci_perf.model.process import Printing
from tests.sessions import BOOM, Launches, Suspects, a_plan_at, a_result, some_checks

ALONE = "command: each launch ran to its end before the next one began, because "


def a_launch(task, *, times=100.0, against="", step_s=0.2, **process):
    plain = a_result(task.index, printed_times=times, step_s=step_s, **process)
    return msgspec.structs.replace(plain, printing=Printing(against=against, longest_s=2.0))


@pytest.fixture
def launch_pairs(measure_against, tmp_path):
    """Launch two pairs of a command; return them, the turns that they had, and the notes."""

    def launch(answer, *, has_room=True, skip=4):
        plan = a_plan_at(tmp_path / "head", "command", parameters={"skip": skip})

        def undecided(run):
            return {"command": 1.0} if sum(len(each.pairs) for each in run.paired) < 2 else {}, 1

        launcher = Launches(answer)
        checks = some_checks(has_room=has_room)
        run = measure_against(
            launcher, plan, how={"budget_s": 9.0, "judge": Suspects(undecided)}, checks=checks
        )
        (paired,) = run.paired
        assert len(paired.pairs) == 2
        turns = [task.command_turn and task.command_turn.steps for task in launcher.tasks]
        return launcher.tasks, turns[1:], run.interleaved.notes

    return launch


@pytest.mark.parametrize(
    ("times", "step_s", "skip", "turn"),
    [
        (100.0, 0.2, 4, 3),
        (52.0, 0.2, 4, 3),
        (51.0, 0.2, 4, None),
        (49.0, 0.2, 0, 3),
        (48.0, 0.2, 0, None),
        (1e4, 0.01, 0, 5),
        (72.0, 0.01, 0, None),
    ],
)
def test_a_command_with_enough_steps_takes_turns(launch_pairs, times, step_s, skip, turn):
    tasks, turns, notes = launch_pairs(
        lambda _, task: a_launch(task, times=times, step_s=step_s), skip=skip
    )

    assert (turns, notes) == ([turn] * 4, ())
    assert tasks[0].command_turn is None
    patience = {task.command_turn.timeout_s for task in tasks if task.command_turn}
    assert patience == ({20.0} if turn else set())


@pytest.mark.parametrize(
    ("what", "reason"),
    [
        ({"against": "it uses a GPU"}, "it uses a GPU"),
        (
            {"metrics": {"rate.tokens": 3.0}},
            "its own metric rate.tokens would count the seconds in which it waits",
        ),
    ],
)
def test_a_head_that_cannot_be_stopped_is_launched_as_before(launch_pairs, what, reason):
    _, turns, notes = launch_pairs(lambda _, task: a_launch(task, **what))

    assert (turns, notes) == ([None] * 4, (ALONE + reason,))


def test_copies_that_do_not_fit_are_launched_one_by_one(launch_pairs):
    _, turns, notes = launch_pairs(lambda _, task: a_launch(task), has_room=False)

    assert turns == [None] * 4
    assert notes == (ALONE + "there is no room in memory for both sides at once",)


@pytest.mark.parametrize("side", ["base", "head"])
@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (lambda _: BOOM, f"one of two copies that took turns has failed: {BOOM.reason}"),
        (
            lambda task: a_launch(task, times=98.0),
            "launches print another number of times than the first one",
        ),
        (lambda task: a_launch(task, against="it uses a GPU"), "it uses a GPU"),
    ],
    ids=["fails", "clock", "base"],
)
def test_a_pair_in_turns_that_shows_a_reason_is_launched_again(launch_pairs, side, answer, reason):
    """A second copy may find its port taken, and a loop may end by the clock."""

    def launch(of, task):
        return answer(task) if task.command_turn and of == side else a_launch(task)

    _, turns, notes = launch_pairs(launch)

    assert turns == [3, 3, None, None, None, None]
    assert notes == (ALONE + reason,)


def test_what_prints_no_times_is_never_asked(launch_pairs):
    _, turns, notes = launch_pairs(lambda _, task: a_result(task.index))

    assert (turns, notes) == ([None] * 4, ())
