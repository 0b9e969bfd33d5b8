"""The steps of a proof that launch workloads: real launches, short; no word about a machine."""

import os
import signal
import subprocess
import sys
import time

import pytest

from ci_perf.errors import ExitCode
from ci_perf.gate import proof_sessions
from ci_perf.gate.proof_sessions import LockWaits, SessionBench
from ci_perf.gate.prove import ProofOptions, prove
from ci_perf.judging import proof
from ci_perf.launch import local
from ci_perf.model.proof import Probed, Proof
from ci_perf.report import proof_words
from ci_perf.session import Listener
from ci_perf.system import files
from ci_perf.system.signals import Interrupts


@pytest.fixture(scope="module")
def described(tmp_path_factory):
    """Provide a launcher, and the CPU as it describes it."""
    root = tmp_path_factory.mktemp("root")
    with local.launcher(root) as launcher:
        yield root, launcher, launcher.describe("cpu", 1, 1)


@pytest.fixture
def bench(described, tmp_path, monkeypatch):
    monkeypatch.setenv("CI_PERF_LOCK_DIR", str(tmp_path / "locks"))
    root, launcher, machine = described

    def within(seconds):
        return SessionBench(
            root=root,
            launcher=launcher,
            machine=machine,
            seconds=seconds,
            lock_timeout_s=60.0,
            waits=LockWaits(Listener()),
            interrupts=Interrupts(),
        )

    return within


def test_every_step_with_sessions_has_a_function_and_no_other():
    rows = {step.name for step in proof.STEPS if step.runs_sessions}

    assert proof_sessions.STEPS.keys() == rows


@pytest.mark.parametrize(
    ("name", "seconds"),
    [("monitor", 60), ("launch_noise", 1), ("launch_seconds", 1), ("resident_pair", 60)],
)
def test_a_step_ends_with_every_figure_that_is_bounded(bench, monkeypatch, name, seconds):
    monkeypatch.setattr(proof_sessions, "_MOST_ROUNDS", 3)

    probed = proof_sessions.STEPS[name](bench(seconds))

    assert not probed.not_tried
    bounded = {bound.figure for bound in proof.of_name(name).bounds}
    assert bounded <= {figure.name for figure in probed.figures}
    assert all(proof_words.of_figure(name, figure.name) for figure in probed.figures)


def test_what_was_planted_is_judged_by_the_pairs_that_fit(bench, monkeypatch):
    monkeypatch.setattr(proof_sessions, "_MOST_ROUNDS", 2)
    monkeypatch.setattr(proof_sessions, "_FEWEST_PAIRS", 2)

    shown = {figure.name: figure.value for figure in proof_sessions.planted(bench(120)).figures}

    assert shown["pairs"] == 2
    # Two pairs of a machine of which nothing is known prove nothing.
    assert {"false_alarms", "found_2", "found_3", "found_5", "measured_5"} <= shown.keys()


def test_a_step_without_time_for_its_rounds_says_how_much_there_was(bench):
    probed = proof_sessions.planted(bench(1))

    assert probed.figures == ()
    assert "6 rounds of 5 launches did not fit" in probed.not_tried
    assert probed.why == "time"


def proven(root, *steps, told):
    return prove(
        ProofOptions(root=root, device="cpu", steps=steps, output=root / "proof.json"),
        notify=told.append,
        listener=Listener(),
    )


def test_a_session_that_was_interrupted_ends_the_proof_and_keeps_it(tmp_path, monkeypatch):
    def interrupted(_bench):
        raise KeyboardInterrupt

    monkeypatch.setattr(proof_sessions, "STEPS", {"monitor": interrupted})
    told = []

    done = proven(tmp_path, "monitor", "planted", told=told)

    assert done.is_interrupted
    assert told == []
    assert files.read(tmp_path / "proof.json", Proof) == done.proof
    assert [step.why for step in done.proof.steps] == ["interrupted"] * 2


def test_steps_share_the_time_that_is_left_by_how_long_they_take(tmp_path, monkeypatch):
    seconds = []

    def note(bench):
        seconds.append(bench.seconds)
        return Probed(not_tried="only asked")

    monkeypatch.setattr(proof_sessions, "STEPS", {"monitor": note, "launch_noise": note})

    proven(tmp_path, "monitor", "launch_noise", told=[])

    first, second = seconds
    assert first < second < 480
    assert first == pytest.approx(second / 4, rel=0.1)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_proof_that_is_ended_while_a_session_launches_is_shown_and_kept(tmp_path, number):
    command = [sys.executable, "-m", "ci_perf", "prove", "throughput", "monitor"]
    with subprocess.Popen(
        [*command, "--device", "cpu", "--minutes", "1", "-o", "proof.json", "--page", "proof.html"],
        cwd=tmp_path,
        env={**os.environ, "CI_PERF_LOCK_DIR": str(tmp_path / "locks")},
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        # The proof has handlers of its own from before its first line.
        assert process.stderr.readline().startswith("throughput: ")
        time.sleep(2)
        process.send_signal(number)
        shown, said = process.communicate()

    assert process.returncode == ExitCode.INTERRUPTED, said
    kept = files.read(tmp_path / "proof.json", Proof)
    assert [step.why for step in kept.steps] == [None, "interrupted"]
    assert "rate in bf16: " in shown
    assert "1 could not be tried" in shown
    assert "<h1>" in (tmp_path / "proof.html").read_text()
