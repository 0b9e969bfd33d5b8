"""The order in which a session does things, with a launcher that only answers."""

import inspect
import itertools
import os
import signal
import time
from datetime import UTC, datetime

import msgspec
import pytest

from ci_perf import session
from ci_perf.errors import CiPerfError, WrongNodeError
from ci_perf.measuring import distrust
from ci_perf.model.fleet import Expectation
from ci_perf.model.node_check import CanaryBound, MachineBounds, NodeCheck
from ci_perf.model.process import Exhausted, Fingerprint, Phase
from ci_perf.model.task import GpuState, GpuStates, MachineDescription, TaskFailure
from ci_perf.model.validity import Status
from ci_perf.session import runner
from tests.clocks import Clock
from tests.runs import CPU, GPU, a_gpu_evidence, an_environment, an_evidence, an_image
from tests.sessions import OneAfterTheOther, Recorder, a_plan_at, a_result, some_checks

GPUS = ("GPU-a", "GPU-b")
BOOM = TaskFailure(phase=Phase.BUILD, reason="RuntimeError: boom")


class Answers(OneAfterTheOther):
    """A launcher of which every answer is given beforehand, and that notes what it was asked."""

    def __init__(
        self,
        *,
        failing=(),
        canaries=(),
        device="cpu",
        gpus=(),
        looks=(),
        evidence=None,
        image=None,
    ):
        self.asked = []
        self.tasks = []
        self._failing = dict.fromkeys(failing, BOOM) if not isinstance(failing, dict) else failing
        self._canaries = itertools.chain(canaries, itertools.repeat({"matmul": 1e-3}))
        self._device = device
        self._gpus = gpus
        self._looks = itertools.chain(looks, itertools.repeat(a_look()))
        self._evidence = evidence
        self._environment = msgspec.structs.replace(an_environment(), image=image)

    def describe(self, _device, _threads, devices, _interrupted=None):
        self.asked.append(f"describe {devices}")
        return MachineDescription(
            device=self._device, locks=(), gpus=self._gpus, environment=self._environment
        )

    def canaries(self, _device, _threads, _interrupted=None):
        self.asked.append("canaries")
        return next(self._canaries)

    def look(self, gpus, _interrupted=None):
        self.asked.append(f"look {len(gpus)}")
        return next(self._looks)

    def launch(self, task, _interrupted=None):
        self.asked.append(f"{task.workload.id} {task.index}")
        self.tasks.append(task)
        return self._failing.get(task.workload.id) or a_result(task.index, evidence=self._evidence)


class Undescribed(Answers):
    """A launcher on a machine that cannot say what it is."""

    def describe(self, _device, _threads, _devices, _interrupted=None):
        return BOOM


def a_look(used_bytes=0, uuid="GPU-a"):
    """What is seen of a GPU at rest, of which this much memory is in use."""
    return GpuStates(
        gpus=(
            GpuState(
                uuid=uuid,
                utilization=0.0,
                used_bytes=used_bytes,
                processes=0,
                ecc=None,
                ecc_errors=None,
                rows_broken=None,
                mig=None,
                persistence=None,
                power_limit_w=None,
                power_default_w=None,
                pcie_width=None,
                pcie_max_width=None,
                absent={},
            ),
        )
    )


@pytest.fixture
def measure(tmp_path, monkeypatch):
    """Measure workloads of these names; the lock folder is this test's own."""
    monkeypatch.setenv("CI_PERF_LOCK_DIR", str(tmp_path / "locks"))

    def measure(
        launcher,
        *names,
        listener=None,
        wait_s=0.0,
        canaries_every_s=0.0,
        node=None,
        clock=time.monotonic,
        **plan,
    ):
        return session.measure(
            a_plan_at(tmp_path, *names, **{"processes": 2, "canaries": True, **plan}),
            launcher,
            listener or Recorder(),
            device="auto",
            lock_timeout_s=1,
            wait_s=wait_s,
            checks=some_checks(canaries_every_s=canaries_every_s, node=node),
            clock=clock,
            now=lambda: datetime(2026, 11, 21, tzinfo=UTC),
        )

    return measure


def test_canaries_stand_before_between_and_after_the_rounds(measure):
    launcher = Answers()

    run = measure(launcher, "a", "b", processes=3)

    canaries, rounds = ["canaries"], [[f"a {i}", f"b {i}"] for i in range(3)]
    assert launcher.asked == [
        "describe 1",
        *canaries,
        *rounds[0],
        *canaries,
        *rounds[1],
        *canaries,
        *rounds[2],
        *canaries,
    ]
    assert [c.position for c in run.canaries] == ["before", "between", "between", "after"]
    assert run.validity.status is Status.VALID


def test_no_canary_stands_between_or_after_rounds_that_take_seconds(measure):
    run = measure(Answers(), "a", processes=3, canaries_every_s=3600.0)

    assert [canary.position for canary in run.canaries] == ["before"]


def test_canaries_stand_after_long_rounds_however_soon_after_the_ones_between(measure):
    clock = Clock()

    class Slow(Answers):
        def launch(self, task, interrupted=None):
            clock.now += 10
            return super().launch(task, interrupted)

    run = measure(Slow(), "a", "b", processes=5, canaries_every_s=30.0, clock=clock)

    positions = [canary.position for canary in run.canaries]
    assert positions == ["before", "between", "between", "after"]


def at_most(most_s, machine=CPU):
    """What a node must be whose canary may take so long."""
    bound = CanaryBound(usual_s=1e-3, most_s=most_s, sessions=3)
    return NodeCheck(bounds=(MachineBounds(machine=machine, canaries={"matmul": bound}),))


@pytest.mark.parametrize(
    ("expect", "why"),
    [
        (Expectation(cpu_model="other"), "cpu_model: expected 'other', found 'AMD"),
        (Expectation(device="cuda"), "device: expected 'cuda', found 'cpu'"),
    ],
)
def test_a_machine_that_a_unit_does_not_expect_launches_nothing(measure, expect, why):
    launcher = Answers()

    with pytest.raises(WrongNodeError, match=why):
        measure(launcher, "a", node=NodeCheck(expect=expect))
    assert launcher.asked == ["describe 1"]


def test_a_machine_that_cannot_be_described_is_not_the_one_that_a_unit_expects(measure):
    with pytest.raises(WrongNodeError, match="RuntimeError: boom"):
        measure(Undescribed(), "a", node=NodeCheck(expect=Expectation(gpu_count=1)))


def test_a_machine_that_is_slower_than_its_class_launches_nothing(measure):
    launcher = Answers(canaries=[{"matmul": 1.4e-3}, {"matmul": 1.3e-3}])

    with pytest.raises(WrongNodeError, match=r"matmul: expected at most 1.25 ms, as 3 .*1.3 ms"):
        measure(launcher, "a", node=at_most(1.25e-3))
    assert launcher.asked == ["describe 1", "canaries", "canaries"]


@pytest.mark.parametrize(
    ("first", "node"),
    [
        ({"matmul": 1.2e-3}, at_most(1.25e-3)),
        ({"matmul": 2e-4}, at_most(1.25e-3)),
        ({"another": 9.0}, at_most(1.25e-3)),
        ({}, at_most(1.25e-3)),
        (BOOM, at_most(1.25e-3)),
        ({"matmul": 9.0}, at_most(1.25e-3, machine=GPU)),
    ],
    ids=["near", "faster", "another canary", "no torch", "failed", "another kind of machine"],
)
def test_a_machine_of_which_nothing_says_that_it_is_slower_measures(measure, first, node):
    launcher = Answers(canaries=[first])

    assert measure(launcher, "a", node=node).measured


def test_a_machine_that_was_disturbed_for_a_moment_measures(measure):
    launcher = Answers(canaries=[{"matmul": 9.0}])

    run = measure(launcher, "a", node=at_most(1.25e-3))

    assert launcher.asked[:4] == ["describe 1", "canaries", "canaries", "canaries"]
    assert {canary.median_s for canary in run.canaries} == {1e-3}


def test_without_canaries_none_is_asked(measure):
    launcher = Answers()

    run = measure(launcher, "a", canaries=False)

    assert "canaries" not in launcher.asked
    assert run.canaries == ()


def test_a_machine_without_canaries_is_asked_once_and_is_not_blamed(measure):
    launcher = Answers(canaries=[{}])

    run = measure(launcher, "a")

    assert launcher.asked.count("canaries") == 1
    assert run.validity.status is Status.VALID


def test_a_canary_that_fails_is_told_and_stops_nothing(measure):
    launcher = Answers(canaries=[{"matmul": 1e-3}, BOOM])

    run = measure(launcher, "a", processes=3)

    (reason,) = run.validity.reasons
    assert (reason.code, reason.status) == ("canary_failed", Status.DEGRADED)
    assert "between" in reason.detail
    assert "RuntimeError: boom" in reason.detail
    assert launcher.asked.count("canaries") == 2
    assert [c.position for c in run.canaries] == ["before"]
    assert len(run.measured[0].processes) == 3


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
        def describe(self, *_):
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

    run = measure(launcher, "a", listener=Recorder(interrupt), wait_s=None)

    assert launcher.asked == ["describe 1", "look 1"]
    assert run.validity.reasons == (distrust.INTERRUPTED,)


def test_gpus_that_cannot_be_looked_at_are_said_to_be_unwatched(measure):
    run = measure(Answers(device="cuda:0", gpus=GPUS[:1], looks=[BOOM]), "a", processes=1)

    (reason,) = run.validity.reasons
    assert reason.code == "unwatched"
    assert "RuntimeError: boom" in reason.detail


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
        looks=[a_look(), *[held] * runner._LOOKS],
    )

    run = measure(launcher, "a", "b", "c", "d", processes=1, canaries=False)

    (reason,) = run.validity.reasons
    assert (reason.code, reason.workload) == ("foreign_memory", "c")
    assert "after a failed process" in reason.detail
    assert "8192 MiB" in reason.detail


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


def test_a_round_that_nobody_survives_is_the_last_one(measure):
    notes = Recorder()

    measure(Answers(failing=["a"]), "a", processes=5, listener=notes)

    assert ("round_finished", 1, 1) in notes.heard
    assert notes.heard[-1] == ("canary_started",)


def test_the_listener_of_these_tests_has_exactly_the_methods_of_the_protocol():
    def methods(listener):
        return {
            name: list(inspect.signature(method).parameters)
            for name, method in inspect.getmembers(listener, inspect.isfunction)
            if not name.startswith("_")
        }

    assert methods(Recorder) == methods(session.Listener)
