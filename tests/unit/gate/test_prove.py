"""A proof as it is tried: step by step, while there is time; real child processes."""

import contextlib
import math
import os
import signal
from pathlib import Path

import pytest

from ci_perf.doctor.machine_facts import Sources
from ci_perf.errors import CannotWriteError, CiPerfError, ExitCode, UsageError
from ci_perf.gate import proof_sessions, prove
from ci_perf.gate.prove import ProofOptions
from ci_perf.judging import proof
from ci_perf.judging.proof import Step
from ci_perf.launch.local import LocalLauncher
from ci_perf.model.proof import Probed, Proof
from ci_perf.session import Listener
from ci_perf.system import files, lock
from tests import machines


class Clock:
    """A clock on which every look takes a second."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        self.now += 1
        return self.now


class Waiting(Listener):
    """Remembers who held the device."""

    def __init__(self, then=lambda: None):
        self.owners = []
        self._then = then

    def waiting(self, _device, owner, _waited_s, _most_s):
        self.owners.append(owner)
        if len(self.owners) == 5:
            self._then()


@pytest.fixture
def told():
    return []


@pytest.fixture(autouse=True)
def locks(tmp_path, monkeypatch):
    folder = tmp_path / "locks"
    monkeypatch.setenv("CI_PERF_LOCK_DIR", str(folder))
    return folder


def run(tmp_path, told, *steps, clock=None, listener=None, **more):
    options = ProofOptions(**{"root": tmp_path, "device": "cpu", "steps": steps, **more})
    return prove.prove(
        options, notify=told.append, listener=listener or Waiting(), clock=clock or Clock()
    )


def proven(tmp_path, told, *steps, **more):
    return run(tmp_path, told, *steps, **more).proof


# --- before the first step


def test_an_unknown_step_is_refused_with_the_names_of_all(tmp_path, told):
    with pytest.raises(UsageError, match=r"step typo: expected one of .*harness"):
        proven(tmp_path, told, "typo")


@pytest.mark.parametrize("minutes", [math.nan, math.inf, 0.0, -5.0, 1441.0])
def test_minutes_that_are_no_time_are_refused_before_the_work(tmp_path, told, minutes):
    with pytest.raises(UsageError, match="--minutes: expected more than 0 and at most 1440, found"):
        proven(tmp_path, told, "harness", minutes=minutes)


@pytest.mark.parametrize("device", ["banana", "cuda:x", "cuda:-1", ""])
def test_a_device_that_is_none_is_refused_with_what_is_one(tmp_path, told, device):
    with pytest.raises(UsageError, match="expected auto, cpu, cuda or cuda:N, found"):
        proven(tmp_path, told, device=device)


def test_a_step_that_this_device_cannot_try_is_refused_before_anything_runs(tmp_path, told):
    with pytest.raises(UsageError, match="step events: it needs a GPU, and this proof is of cpu"):
        proven(tmp_path, told, "harness", "events", output=tmp_path / "proof.json")

    assert told == []
    assert not (tmp_path / "proof.json").exists()


def test_without_torch_there_is_one_sentence_and_no_step(tmp_path, told, monkeypatch):
    (tmp_path / "empty" / "torch").mkdir(parents=True)
    (tmp_path / "empty" / "torch" / "__init__.py").write_text("raise ImportError('none here')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "empty"))
    (tmp_path / "root").mkdir()

    with pytest.raises(CiPerfError, match="torch: expected it for this Python, found none") as why:
        proven(tmp_path / "root", told)

    assert why.value.exit_code == ExitCode.NO_ANSWER
    assert told == []


def no_torch_for_a_gpu(root):
    """Describe a machine with a GPU on its bus, and with a torch that was built without CUDA."""
    node = root / "dev" / "nvidia0"
    node.parent.mkdir(parents=True)
    node.touch()
    return Sources(
        root=root,
        environ={},
        temporary=root,
        torch=machines.a_cpu_torch,
        nvml=lambda: machines.a_silent_nvml("library_not_found"),
    )


def test_a_cpu_is_not_proven_in_place_of_a_gpu_that_torch_cannot_use(tmp_path, told):
    sources = no_torch_for_a_gpu(tmp_path / "machine")

    def tried(device):
        options = ProofOptions(root=tmp_path, device=device, minutes=1e-6)
        return prove.prove(
            options, notify=told.append, listener=Waiting(), sources=lambda: sources
        ).proof

    with pytest.raises(CiPerfError, match="shows an NVIDIA GPU, which torch cannot use") as why:
        tried("auto")

    assert "--device cpu" in str(why.value)
    assert "missing" in str(why.value)  # what the doctor says is wrong with the driver
    assert told == []
    assert tried("cpu").device == "cpu"


# --- steps


def test_steps_that_do_not_fit_into_the_time_say_so(tmp_path, told):
    (step,) = proven(tmp_path, told, "harness", minutes=0.1).steps

    assert (step.outcome, step.why) == ("not_tried", "time")
    assert "it takes about 15 s" in step.detail
    assert told == [f"harness: could not be tried: {step.detail} (0 s)"]


def test_steps_about_gpus_cannot_be_tried_on_a_cpu(tmp_path, told):
    steps = {step.step: step for step in proven(tmp_path, told, minutes=1e-6).steps}

    assert (steps["events"].why, steps["events"].detail) == ("device", "it needs a GPU")
    assert steps["harness"].why == "time"
    assert list(steps) == [step.name for step in proof.STEPS]
    assert not any("GPU" in line for line in told)


def test_a_step_that_nobody_can_run_costs_only_itself(tmp_path, told, monkeypatch):
    broken = Step(name="broken", seconds=1, bounds=())
    # The steps are the data of the loop: one that no module has stands for one that crashes.
    monkeypatch.setattr(proof, "STEPS", (broken, *proof.STEPS))
    monkeypatch.setitem(proof._BY_NAME, "broken", broken)
    output = tmp_path / "proof.json"

    document = proven(tmp_path, told, "broken", "monitor", minutes=0.3, output=output)

    assert [step.outcome for step in document.steps] == ["did_not_hold", "not_tried"]
    assert "KeyError" in document.steps[0].detail
    assert files.read(output, Proof) == document


def test_a_bug_in_a_step_costs_only_this_step_and_is_told(tmp_path, told, monkeypatch):
    def fail(_bench):
        raise ZeroDivisionError("of nothing")

    monkeypatch.setitem(proof_sessions.STEPS, "monitor", fail)
    monkeypatch.setitem(proof_sessions.STEPS, "planted", lambda _: Probed(not_tried="x"))
    output = tmp_path / "proof.json"

    document = proven(tmp_path, told, "monitor", "planted", output=output)

    reasons = {step.step: step.detail for step in document.steps}
    assert reasons["monitor"] == "a bug in ci-perf: ZeroDivisionError: of nothing"
    assert "planted" in reasons
    assert any("Traceback" in line for line in told)
    assert files.read(output, Proof) == document


# --- a disk that is full


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no full device")
def test_a_file_that_cannot_be_written_is_told_once_and_ends_nothing(tmp_path, told, monkeypatch):
    for name in ("monitor", "planted"):
        monkeypatch.setitem(proof_sessions.STEPS, name, lambda _: Probed(not_tried="x"))

    done = run(tmp_path, told, "monitor", "planted", output=Path("/dev/full"))

    assert [step.step for step in done.proof.steps] == ["monitor", "planted"]
    assert not done.is_written
    (line,) = [line for line in told if "/dev/full" in line]
    assert "No space left on device" in line
    assert "the proof goes on" in line


def test_a_target_that_cannot_be_made_is_refused_before_the_first_step(tmp_path, told):
    with pytest.raises(CannotWriteError):
        proven(tmp_path, told, output=tmp_path / "absent" / "proof.json")


# --- another run that holds the device


@contextlib.contextmanager
def holding(locks):
    """Hold the CPU as another run does; yields what lets go of it."""
    locks.mkdir(exist_ok=True)
    handle = os.open(locks / "cpu.lock", os.O_RDWR | os.O_CREAT)
    assert lock.try_to_get(handle)
    os.write(handle, b"another run\n")
    with contextlib.ExitStack() as stack:
        stack.callback(os.close, handle)
        yield stack.close


def test_waiting_for_another_run_takes_none_of_the_minutes(tmp_path, told, locks, monkeypatch):
    monkeypatch.setattr(
        LocalLauncher, "probe", lambda *_arguments, **_more: Probed(not_tried="only asked")
    )

    # A clock that only goes on while the device is waited for.
    with holding(locks) as let_go:
        listener = Waiting(let_go)
        document = proven(
            tmp_path,
            told,
            "harness",
            listener=listener,
            clock=lambda: 0.2 * max(0, len(listener.owners) - 1),
        )

    (step,) = document.steps
    assert step.detail == "only asked"
    assert listener.owners == ["another run"] * 5
    assert document.waited_s >= 0.8
    assert (step.seconds, document.duration_s) == (0, 0)
    assert all("waiting" not in line for line in told)


def test_a_device_that_never_becomes_free_is_waited_for_once(tmp_path, told, locks):
    with holding(locks):
        document = proven(
            tmp_path, told, "harness", "numerics", "monitor", lock_timeout_s=0.1, minutes=60.0
        )

    assert [step.why for step in document.steps] == ["busy"] * 3
    assert len({step.detail for step in document.steps}) == 1
    assert "held by another run" in document.steps[0].detail
    assert document.waited_s < 1


def test_a_proof_that_waits_for_another_run_ends_at_once_when_it_is_interrupted(
    tmp_path, told, locks
):
    with holding(locks):
        listener = Waiting(lambda: signal.raise_signal(signal.SIGTERM))
        done = run(tmp_path, told, "harness", "monitor", listener=listener)

    assert done.is_interrupted
    assert [step.why for step in done.proof.steps] == ["interrupted"] * 2
    assert len(listener.owners) == 5


def test_waits_add_up_whoever_tells_them():
    waits = proof_sessions.LockWaits(Listener())
    for waited_s in (0.0, 1.0, 2.5, 0.1, 3.0):
        waits.waiting("cpu", "somebody", waited_s, 60.0)

    assert waits.seconds == 5.5
