"""A proof as it is tried: step by step, while there is time; real child processes."""

import math

import pytest

from ci_perf.errors import UsageError
from ci_perf.gate import proof_sessions, prove
from ci_perf.gate.prove import ProofOptions
from ci_perf.judging import proof
from ci_perf.judging.proof import Step
from ci_perf.model.proof import Proof
from ci_perf.system import files


class Clock:
    """A clock on which every look takes a second."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        self.now += 1
        return self.now


@pytest.fixture
def told():
    return []


def proven(tmp_path, told, *steps, minutes=8.0, clock=None, output=None):
    options = ProofOptions(root=tmp_path, device="cpu", minutes=minutes, steps=steps, output=output)
    return prove.prove(options, notify=told.append, clock=clock or Clock())


def test_an_unknown_step_is_refused_with_the_names_of_all(tmp_path, told):
    with pytest.raises(UsageError, match=r"step typo: expected one of .*harness"):
        proven(tmp_path, told, "typo")


@pytest.mark.parametrize("minutes", [math.nan, math.inf, 0.0, -5.0])
def test_minutes_that_are_no_time_are_refused_before_the_work(tmp_path, told, minutes):
    with pytest.raises(UsageError, match="--minutes: expected minutes, more than 0, found"):
        proven(tmp_path, told, "events", minutes=minutes)


def test_steps_that_do_not_fit_into_the_time_say_so(tmp_path, told):
    (step,) = proven(tmp_path, told, "harness", minutes=0.1).steps

    assert step.outcome == "not_tried"
    assert "it takes about 15 s" in step.detail
    assert told == [f"harness: could not be tried: {step.detail} (0 s)"]


def test_a_step_about_gpus_cannot_be_tried_on_a_cpu(tmp_path, told):
    (step,) = proven(tmp_path, told, "events").steps

    assert (step.outcome, step.detail) == ("not_tried", "it needs a GPU")


def test_a_step_that_nobody_can_run_costs_only_itself(tmp_path, told, monkeypatch):
    broken = Step(name="broken", seconds=1, bounds=())
    # The steps are the data of the loop: one that no module has stands for one that crashes.
    monkeypatch.setattr(proof, "STEPS", (broken, *proof.STEPS))
    output = tmp_path / "proof.json"

    document = proven(tmp_path, told, "broken", "events", output=output)

    assert [step.outcome for step in document.steps] == ["did_not_hold", "not_tried"]
    assert "KeyError" in document.steps[0].detail
    assert files.read(output, Proof) == document


def test_a_bug_in_a_step_costs_only_this_step_and_is_told(tmp_path, told, monkeypatch):
    def fail(_bench):
        raise ZeroDivisionError("of nothing")

    monkeypatch.setitem(proof_sessions.STEPS, "monitor", fail)
    output = tmp_path / "proof.json"

    document = proven(tmp_path, told, "monitor", "events", output=output)

    reasons = {step.step: step.detail for step in document.steps}
    assert reasons["monitor"] == "a bug in ci-perf: ZeroDivisionError: of nothing"
    assert "events" in reasons
    assert any("Traceback" in line for line in told)
    assert files.read(output, Proof) == document
