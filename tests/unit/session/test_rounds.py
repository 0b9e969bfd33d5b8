"""Which processes of the rounds stand ready at once, with a launcher that only answers."""

import dataclasses

import pytest

from tests.sessions import BOOM, Launches, Recorder, a_plan_at, a_result, measure_with, some_checks


class Rows(Launches):
    """Notes how many processes each row has."""

    def __init__(self, *answers):
        super().__init__(*answers)
        self.rows = []

    def ready(self, tasks, *arguments):
        if len(tasks) > 1:
            self.rows.append(len(tasks))
        return super().ready(tasks, *arguments)


@pytest.fixture
def measure(tmp_path, monkeypatch):
    """Measure workloads of these names in three processes each."""
    monkeypatch.setenv("CI_PERF_LOCK_DIR", str(tmp_path / "locks"))

    def measure(launcher, *names, at_once=4, listener=None, **more):
        checks = dataclasses.replace(some_checks(**more), at_once=lambda: at_once)
        plan = a_plan_at(tmp_path, *names, processes=3)
        return measure_with(launcher, plan, listener=listener, checks=checks)

    return measure


@pytest.mark.parametrize(
    ("names", "at_once", "rows"),
    [("a", 4, [3]), ("a", 2, [2]), ("a", 1, []), ("ab", 4, [2, 2, 2]), ("abc", 2, [2, 2, 2])],
)
def test_processes_of_one_workload_import_at_once_and_others_round_by_round(
    measure, names, at_once, rows
):
    launcher = Rows()

    run = measure(launcher, *names, at_once=at_once)

    assert launcher.rows == rows
    assert [task.index for task in launcher.tasks] == [i for i in range(3) for _ in names]
    assert [len(measured.processes) for measured in run.measured] == [3] * len(names)


def test_the_other_processes_of_a_workload_that_fails_are_not_launched(measure):
    launcher = Rows(lambda _side, task: BOOM if task.index == 1 else None)
    notes = Recorder()

    run = measure(launcher, "a", listener=notes)

    assert [task.index for task in launcher.tasks] == [0, 1]
    assert [failed.reason for failed in run.failed] == [BOOM.reason]
    assert [said for name, *said in notes.heard if name == "round_finished"] == [[1, 3], [2, 2]]


def test_a_workload_whose_others_have_failed_goes_on_in_a_row(measure):
    launcher = Rows(lambda _side, task: BOOM if task.workload.id == "b" else a_result(task.index))

    run = measure(launcher, "a", "b")

    assert launcher.rows == [2, 2]
    assert [len(measured.processes) for measured in run.measured] == [3]
