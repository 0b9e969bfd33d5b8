"""Waiting until nobody else uses the machine."""

import contextlib
import itertools
from typing import Any

import pytest

from ci_perf.model.task import MachineDescription
from ci_perf.model.validity import Doubt
from ci_perf.session import Lab, MachineChecks
from ci_perf.system import lock
from ci_perf.system.signals import Interrupts
from tests.clocks import Clock
from tests.runs import an_environment
from tests.sessions import Launches, Recorder

BUSY = Doubt.HOST_PRESSURE.reason("tasks waited for a CPU 90%")
NO_ROOM = Doubt.LOW_DISK.reason("nothing left")


class Sleepless(Interrupts):
    """Its sleep takes time of the clock alone."""

    def __init__(self, clock):
        super().__init__()
        self.clock = clock

    def sleep(self, seconds):
        self.clock.now += seconds


@pytest.fixture
def wait(tmp_path):
    """Wait while these looks see these reasons, the last one for ever; return what came of it."""
    clock, listener = Clock(), Recorder()
    launcher: Any = Launches()

    def wait(*looks, device="cpu", wait_s=None):
        seen = itertools.chain(looks, itertools.repeat(looks[-1]))
        lab = Lab(
            root=str(tmp_path),
            python_path=(),
            launcher=launcher,
            listener=listener,
            interrupts=Sleepless(clock),
            machine=MachineDescription(
                device=device, locks=(), gpus=(), environment=an_environment()
            ),
            lock_timeout_s=1,
            wait_s=wait_s,
            checks=MachineChecks(host=lambda: next(seen)),
            clock=clock,
        )
        lab.await_quiet()
        assert lab.waited_s == clock.now
        return lab.reasons, clock.now, listener.heard

    return wait


def test_a_quiet_machine_is_not_waited_for_and_nothing_is_said(wait):
    assert wait([]) == ([], 0.0, [])


def test_waiting_ends_as_soon_as_the_machine_is_quiet(wait):
    reasons, waited_s, heard = wait([BUSY], [BUSY], [])

    assert (reasons, waited_s) == ([], 4.0)
    assert heard == [
        ("machine_busy", BUSY.detail, 0.0, 60.0),
        ("machine_busy", BUSY.detail, 2.0, 60.0),
        ("machine_awaited", "", 4.0),
    ]


def test_when_the_time_is_over_what_still_disturbs_is_told_and_held_against_the_machine(wait):
    reasons, waited_s, heard = wait([BUSY], wait_s=5.0)

    assert (reasons, waited_s) == ([BUSY], 5.0)
    assert heard[-1] == ("machine_awaited", BUSY.detail, 5.0)


def test_nobody_waits_for_what_does_not_end_by_itself(wait):
    assert wait([NO_ROOM])[:2] == ([NO_ROOM], 0.0)


def test_no_time_to_wait_is_one_look(wait):
    assert wait([BUSY], wait_s=0.0) == ([BUSY], 0.0, [])


@pytest.mark.parametrize(
    ("device", "is_asked", "code", "is_awaited"),
    [
        ("cpu", False, "host_pressure", True),
        ("cpu", False, "low_disk", False),
        ("cuda:0", False, "host_pressure", False),
        ("cuda:0", True, "host_pressure", True),
        ("cuda:0", False, "gpu_busy", True),
        ("cuda:0", False, "second_process", True),
    ],
)
def test_a_gpu_is_waited_for_where_others_use_it_and_its_host_where_a_person_asks(
    wait, device, is_asked, code, is_awaited
):
    reason = Doubt[code.upper()].reason("as seen")

    *_, heard = wait([reason], device=device, wait_s=5.0 if is_asked else None)

    assert bool(heard) is is_awaited


def test_the_time_until_another_run_has_ended_is_counted(tmp_path, monkeypatch):
    monkeypatch.setenv("CI_PERF_LOCK_DIR", str(tmp_path))
    launcher: Any = Launches()
    machine = MachineDescription(
        device="cpu", locks=("cpu-0",), gpus=(), environment=an_environment()
    )

    class Ending(Interrupts):
        """Its sleep is as long as the other run."""

        def sleep(self, _seconds):
            other.close()

    lab = Lab(
        root=str(tmp_path),
        python_path=(),
        launcher=launcher,
        listener=Recorder(),
        interrupts=Ending(),
        machine=machine,
        lock_timeout_s=60,
    )
    with contextlib.ExitStack() as other:
        nobody = lock.hold_devices(
            ["cpu-0"], "run b", where=tmp_path, timeout_s=0, waiting=lambda *_: None
        )
        other.enter_context(nobody)
        with lab.held():
            assert lab.waited_s > 0
