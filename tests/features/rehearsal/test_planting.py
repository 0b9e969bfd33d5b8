"""A plant is work of a fixed size, which each step of the head does."""

import os

import pytest

from ci_perf.errors import CiPerfError, UsageError
from ci_perf.features.rehearsal import trial
from ci_perf.measuring import planting
from ci_perf.model.plant import PLANT_VARIABLE
from ci_perf.model.validity import validity_of
from ci_perf.report import markdown
from ci_perf.workload import Workload
from tests.comparisons import a_change, a_comparison, a_plant, an_interleaved
from tests.histories import a_head, a_pair, in_turns
from tests.launches import a_task
from tests.plans import a_planned
from tests.runs import a_reason


@pytest.fixture(autouse=True)
def variable(monkeypatch):
    monkeypatch.setenv(PLANT_VARIABLE, "7")


def planted(tmp_path, launch="process", *, plant=None, **workload):
    """Plant into a workload; return it, and what each of its steps does."""
    done = []
    task = a_task(tmp_path / "it.py", workload={"launch": launch}, plant=plant or a_plant("it"))
    plain = Workload(step=lambda: done.append("step"), **workload)
    return planting.plant(plain, task, lambda: done.append("wait")), done


def test_each_step_ends_with_the_work_once_the_device_has_done_its_own(tmp_path):
    workload, done = planted(tmp_path)

    workload.step()
    workload.step()

    assert done == ["step", "wait", "step", "wait"]


def test_a_loop_of_a_command_does_the_work_itself(tmp_path):
    reported = []
    workload, done = planted(tmp_path, "command", reported_s=lambda: reported)

    workload.step()
    reported.append(0.1)
    workload.step()

    assert done == ["step", "wait", "step"]


def test_a_test_that_times_a_part_of_itself_is_refused(tmp_path):
    with pytest.raises(UsageError, match="times a part of itself"):
        planted(tmp_path, "fork", reported_s=lambda: [0.1])


@pytest.mark.parametrize(
    ("launch", "plant", "told"),
    [("command", a_plant(), "1000"), ("command", None, None), ("process", a_plant(), None)],
)
def test_only_a_command_is_told_and_never_by_the_environment_of_the_user(
    tmp_path, launch, plant, told
):
    planting.announce(a_task(tmp_path / "it.py", workload={"launch": launch}, plant=plant))

    assert os.environ.get(PLANT_VARIABLE) == told


@pytest.mark.parametrize(("ratio", "share"), [(1.01, 0.1), (1.05, 0.2), (0.9, 0.42), (3.0, 1.0)])
def test_a_plant_is_a_tenth_or_four_times_what_pairs_differ_by_and_at_most_all_of_a_step(
    ratio, share
):
    run = in_turns(a_head(), [a_pair(1.0, 1.0), a_pair(1.0, ratio)])

    plant = trial.make_plant(run, a_planned("w"), iteration_s=1e-6)

    assert plant.share == pytest.approx(share)
    assert plant.iterations == pytest.approx(share * 1e6, rel=0.05)


def test_what_was_planted_is_told_by_any_report():
    how = an_interleaved(planted=a_plant("mlp"), pairs=6)

    told = markdown.render(a_comparison(a_change("mlp"), interleaved=how))

    assert "slowed down on purpose by ci-perf try</sub>" in told
    assert "Base (the same files) and head launched alternately: 6 pairs" in told


def test_a_machine_on_which_nothing_holds_is_named_and_never_the_budget():
    run = in_turns(a_head(validity=validity_of((a_reason("gpu_lost"),))))

    with pytest.raises(CiPerfError, match="w: nothing holds on this machine now: nothing left"):
        trial.check_pairs(run, a_planned("w"))
