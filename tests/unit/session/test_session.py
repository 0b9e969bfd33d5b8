"""The order in which a session does things, with a launcher that only answers."""

import inspect
import os
import signal

import msgspec
import pytest

from ci_perf import session
from ci_perf.errors import CiPerfError
from ci_perf.measuring import distrust
from ci_perf.model.process import Exhausted, Fingerprint, Phase
from ci_perf.model.task import TaskFailure
from ci_perf.model.validity import Status
from ci_perf.session import lab
from tests.runs import a_gpu_evidence, an_evidence, an_image
from tests.sessions import (
    BOOM,
    Answers,
    Recorder,
    a_look,
    a_result,
)

GPUS = ("GPU-a", "GPU-b")


def test_when_everything_has_failed_no_further_round_is_begun(measure):
    launcher = Answers(failing=["a", "b"])

    run = measure(launcher, "a", "b", processes=5)

    assert launcher.asked == ["describe 1", "canaries", "a 0", "b 0", "canaries"]
    assert [f.workload for f in run.failed] == ["a", "b"]


def test_memory_that_ran_out_is_kept_with_the_failure_and_stops_nothing(measure):
    exhausted = Exhausted(kind="limit", host_rss_peak_bytes=2**30)
    trouble = TaskFailure(phase=Phase.TIMED, reason="MemoryError", exhausted=exhausted)

    run = measure(Answers(failing={"a": trouble}), "a", "b")

    assert [(f.workload, f.exhausted) for f in run.failed] == [("a", exhausted)]
    assert [m.workload for m in run.measured] == ["b"]


def test_what_a_process_could_not_show_is_told_and_its_times_stand(measure):
    result = a_result()
    process = msgspec.structs.replace(
        result.process,
        absent={"memory": "MemoryError: no more"},
        fingerprint=Fingerprint(absent="3 steps of 9 s were too long"),
    )
    launcher = Answers(failing={"a": msgspec.structs.replace(result, process=process)})

    run = measure(launcher, "a", processes=1)

    assert [m.workload for m in run.measured] == ["a"]
    (reason,) = run.validity.reasons
    assert (reason.code, reason.status, reason.workload) == ("incomplete", Status.DEGRADED, "a")
    assert reason.detail == (
        "memory: MemoryError: no more; fingerprint: 3 steps of 9 s were too long"
    )


def test_a_process_gets_as_many_gpus_as_its_ranks_need(measure):
    launcher = Answers(device="cuda:0", gpus=GPUS)

    measure(launcher, "a", processes=1, world_size=2, launch="torchrun")
    measure(launcher, "b", processes=1)

    assert launcher.asked[0] == "describe 2"
    assert [task.gpus for task in launcher.tasks] == [GPUS, GPUS[:1]]


def test_too_few_gpus_are_told_with_the_workload_that_needs_them(measure):
    class OneGpu(Answers):
        def describe(self, *_, **__):
            return TaskFailure(phase=Phase.LAUNCH, reason="expected 2 GPUs, found 1")

    with pytest.raises(CiPerfError, match=r"expected 2 GPUs, found 1 \(ddp needs 2\)"):
        measure(OneGpu(), "ddp", world_size=2, launch="torchrun")


def test_the_gpus_are_looked_at_before_anything_of_ours_is_on_them(measure):
    launcher = Answers(device="cuda:0", gpus=GPUS[:1], looks=[a_look(8 * 2**30)])

    run = measure(launcher, "a", processes=1)

    assert launcher.asked == ["describe 1", "look 1", "canaries", "a 0", "canaries"]
    assert [(r.code, r.workload) for r in run.validity.reasons] == [("foreign_memory", "")]
    assert run.validity.status is Status.INVALID


def test_a_gpu_that_others_use_is_waited_for_until_they_have_ended(measure):
    launcher = Answers(device="cuda:0", gpus=GPUS[:1], looks=[a_look(8 * 2**30)] * 2)
    notes = Recorder()

    run = measure(launcher, "a", processes=1, listener=notes, wait_s=None)

    assert launcher.asked[:5] == ["describe 1", *["look 1"] * 3, "canaries"]
    assert [name for name, *_ in notes.heard][:4] == [
        "machine_busy",
        "machine_busy",
        "machine_awaited",
        "planned",
    ]
    assert run.validity.status is Status.VALID


def test_an_interrupt_while_a_quiet_machine_is_awaited_launches_nothing(measure):
    launcher = Answers(device="cuda:0", gpus=GPUS[:1], looks=[a_look(8 * 2**30)] * 3)

    def interrupt(note):
        if note[0] == "machine_busy":
            signal_to_self()

    with pytest.raises(KeyboardInterrupt):
        measure(launcher, "a", listener=Recorder(interrupt), wait_s=None)

    assert launcher.asked == ["describe 1", "look 1"]


def test_gpus_that_cannot_be_looked_at_are_said_to_be_unwatched(measure):
    run = measure(Answers(device="cuda:0", gpus=GPUS[:1], looks=[BOOM]), "a", processes=1)

    (reason,) = run.validity.reasons
    assert reason.code == "unwatched"
    assert "ImportError: no such thing" in reason.detail


def test_a_gpu_without_a_name_is_said_to_be_unwatched(measure):
    launcher = Answers(device="cuda:0", gpus=())

    run = measure(launcher, "a", processes=1, canaries=False)

    assert launcher.asked == ["describe 1", "a 0"]
    assert [r.code for r in run.validity.reasons] == ["unwatched"]


def test_after_a_failure_the_next_process_waits_for_the_memory_of_the_last(measure):
    launcher = Answers(
        failing=["a"],
        device="cuda:0",
        gpus=GPUS[:1],
        looks=[a_look(), a_look(8 * 2**30), a_look(2 * 2**30), a_look()],
    )

    run = measure(launcher, "a", "b", "c", processes=1, canaries=False)

    looks = ["look 1"] * 3
    assert launcher.asked == ["describe 1", "look 1", "a 0", *looks, "b 0", "c 0"]
    assert run.validity.status is Status.VALID


def test_memory_that_nobody_frees_is_held_against_whoever_has_to_do_without(measure):
    held = a_look(8 * 2**30)
    launcher = Answers(
        failing=["b"],
        device="cuda:0",
        gpus=GPUS[:1],
        looks=[a_look(), *[held] * lab._LOOKS],
    )

    run = measure(launcher, "a", "b", "c", "d", processes=1, canaries=False)

    (reason,) = run.validity.reasons
    assert (reason.code, reason.workload) == ("foreign_memory", "c")
    assert "after a failed process" in reason.detail
    assert "8192 MiB" in reason.detail


LOST = "GPU is lost"
SEEN_LOST = msgspec.structs.replace(BOOM, evidence=an_evidence(a_gpu_evidence(lost=LOST)))


@pytest.mark.parametrize(
    ("failure", "looks", "asked"),
    [
        (SEEN_LOST, [a_look()], ["look 1", "canaries", "a 0"]),
        (BOOM, [a_look(), a_look(lost=LOST)], ["look 1", "canaries", "a 0", "look 1"]),
        (BOOM, [a_look(lost=LOST)], ["look 1"]),
    ],
    ids=["by the monitor", "after the failure", "before the run"],
)
def test_nothing_is_launched_on_a_gpu_that_is_lost(measure, failure, looks, asked):
    launcher = Answers(failing={"a": failure}, device="cuda:0", gpus=GPUS[:1], looks=looks)

    run = measure(launcher, "a", "b", processes=2)

    assert launcher.asked == ["describe 1", *asked]
    assert [(reason.code, reason.workload) for reason in run.validity.reasons] == [("gpu_lost", "")]
    assert run.failed[-1].reason == "not launched: a GPU was lost"


def test_what_the_monitor_saw_is_held_against_its_workload(measure):
    throttled = a_gpu_evidence(uuid="GPU-a", event_reasons=("hw_thermal_slowdown",))
    launcher = Answers(device="cuda:0", gpus=GPUS[:1], evidence=an_evidence(throttled))

    run = measure(launcher, "a", processes=3)

    (reason,) = run.validity.reasons
    assert (reason.code, reason.workload) == ("thermal_throttling", "a")


def test_a_gpu_that_the_monitor_has_not_watched_is_said_to_be_so(measure):
    evidence = an_evidence(trouble="the monitor could not be started")
    launcher = Answers(device="cuda:0", gpus=GPUS[:1], evidence=evidence)

    run = measure(launcher, "a", "b", processes=2)

    assert [(r.code, r.workload) for r in run.validity.reasons] == [
        ("unwatched", "a"),
        ("unwatched", "b"),
    ]
    assert "could not be started" in run.validity.reasons[0].detail


def test_an_image_that_is_not_pinned_degrades_the_run_once_and_is_kept(measure):
    image = an_image(reference="perf:dev", is_pinned=False)
    run = measure(Answers(image=image), "a", "b")

    assert [reason.code for reason in run.validity.reasons] == ["unpinned_image"]
    assert run.validity.status is Status.DEGRADED
    assert run.environment.image == image


def test_an_interrupt_between_two_launches_asks_no_canary_and_keeps_what_is_finished(measure):
    def interrupt(note):
        if note[:2] == ("finished", "a"):
            signal_to_self()

    launcher = Answers()

    run = measure(launcher, "a", "b", listener=Recorder(interrupt))

    assert launcher.asked == ["describe 1", "canaries", "a 0"]
    assert [m.workload for m in run.measured] == ["a"]
    assert distrust.INTERRUPTED in run.validity.reasons


def test_an_interrupt_while_canaries_sing_keeps_what_is_finished(measure):
    def interrupted():
        yield {"matmul": 1e-3}
        raise KeyboardInterrupt

    run = measure(Answers(canaries=interrupted()), "a", processes=3)

    assert [len(m.processes) for m in run.measured] == [1]
    assert run.validity.status is Status.INVALID
    assert [c.position for c in run.canaries] == ["before"]


def signal_to_self():
    os.kill(os.getpid(), signal.SIGTERM)


def test_a_listener_hears_every_step_in_its_order(measure):
    notes = Recorder()

    measure(Answers(failing=["b"]), "a", "b", listener=notes)

    heard = [name for name, *_ in notes.heard]
    assert heard == [
        "planned",
        "canary_started",
        *["started", "finished", "started", "failed", "round_finished"],
        "canary_started",
        *["started", "finished", "round_finished"],
        "canary_started",
    ]
    assert notes.heard[0] == ("planned", {"a": 2, "b": 2})
    assert [said for name, *said in notes.heard if name == "round_finished"] == [[1, 2], [2, 2]]


def test_the_listener_of_these_tests_has_exactly_the_methods_of_the_protocol():
    def methods(listener):
        return {
            name: list(inspect.signature(method).parameters)
            for name, method in inspect.getmembers(listener, inspect.isfunction)
            if not name.startswith("_")
        }

    assert methods(Recorder) == methods(session.Listener)
