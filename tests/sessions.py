"""What a session is given: launchers that only answer, a listener that notes, a plan, checks."""

import abc
import contextlib
import functools
import itertools
import time
from pathlib import Path
from typing import Any

import msgspec

from ci_perf import session
from ci_perf.model.explanation import StepProfile
from ci_perf.model.process import Phase, WorkerResult
from ci_perf.model.run import Source
from ci_perf.model.suite import Limits, Protocol
from ci_perf.model.task import GpuState, GpuStates, MachineDescription, TaskFailure
from ci_perf.session import Listener, MachineChecks
from ci_perf.system import signals
from ci_perf.worktree import Checkout
from tests.plans import a_plan, a_planned
from tests.runs import a_process, an_environment

SOURCE = Source(commit="b" * 40, branch="main", dirty=False)
BOOM = TaskFailure(phase=Phase.BUILD, reason="ImportError: no such thing", output="Traceback …")


class OneAfterTheOther(abc.ABC):
    """Launches that stand ready, whose imports nobody sees."""

    @abc.abstractmethod
    def launch(self, task, _interrupted=None):
        """See Launcher."""

    @contextlib.contextmanager
    def ready(self, tasks, interrupted=None):
        yield [functools.partial(self.launch, task, interrupted) for task in tasks]

    def free_memory(self):
        return False


class Launches(OneAfterTheOther):
    """A launcher that notes whose turn it is; `answers` says what comes of a launch, by side."""

    def __init__(self, answers=lambda _side, _task: None, *, device="cpu"):
        self.turns = []
        self.tasks = []
        self.pairs = 0
        self._answers = answers
        self._device = device

    def describe(self, *_, **__):
        return MachineDescription(
            device=self._device, locks=(), gpus=(), environment=an_environment()
        )

    def launch(self, task, _interrupted=None):
        side = Path(task.root).name
        self.turns.append((side, task.workload.id))
        self.tasks.append(task)
        return self._answers(side, task) or a_result(task.index)

    def profile(self, task, interrupted=None):
        outcome = self.launch(msgspec.structs.replace(task, profiler="a:profile"), interrupted)
        return outcome if isinstance(outcome, TaskFailure | StepProfile) else StepProfile(steps=2)

    def launch_pair(self, first, second, interrupted=None):
        self.pairs += 1
        return self.launch(first, interrupted), self.launch(second, interrupted)

    def noted(self):
        return list(zip(self.turns, self.tasks, strict=True))

    def of(self, side):
        return [task for task in self.tasks if Path(task.root).name == side]


class NoRoomForTwo(Launches):
    """Of two processes at once, the second fails."""

    def launch_pair(self, _first, _second, _interrupted=None):
        self.pairs += 1
        return a_result(), BOOM


class Recorder(Listener):
    """A listener that notes what it hears, as (method, *arguments); it has no other methods.

    `during` is called with each note, while the session waits.
    """

    def __init__(self, during=lambda _note: None):
        self.heard = []
        self._during = during

    def _note(self, *note):
        self.heard.append(note)
        self._during(note)

    def waiting(self, device, owner, waited_s, most_s):
        self._note("waiting", device, owner, waited_s, most_s)

    def machine_busy(self, why, waited_s, most_s):
        self._note("machine_busy", why, waited_s, most_s)

    def machine_awaited(self, why, waited_s):
        self._note("machine_awaited", why, waited_s)

    def planned(self, processes, pairs_s=0.0):
        del pairs_s
        self._note("planned", processes)

    def canary_started(self):
        self._note("canary_started")

    def started(self, workload, process, of):
        self._note("started", workload, process, of)

    def finished(self, workload, seconds):
        self._note("finished", workload, seconds)

    def failed(self, failed, skipped):
        self._note("failed", failed, skipped)

    def interleaving(self, workloads, budget_s, forecast):
        self._note("interleaving", workloads, budget_s, forecast)

    def pair_started(self, workload, number, left):
        self._note("pair_started", workload, number, left)

    def pair_finished(self, workload, row, most_s):
        self._note("pair_finished", workload, row, most_s)

    def base_failed(self, workload, reason):
        self._note("base_failed", workload, reason)

    def decided(self, verdict, explaining_s):
        self._note("decided", verdict, explaining_s)

    def recording(self, workload):
        self._note("recording", workload)

    def profiling(self, workload):
        self._note("profiling", workload)

    def round_finished(self, number, of):
        self._note("round_finished", number, of)


class Suspects:
    """A judge of pairs: `undecided` answers for each run so far; nothing was accepted.

    `launches` are those of the head that each workload starts with, `verdict` is what is told.
    `open_starts` are workloads of whose start something is open, `blind` says that no history is.
    """

    def __init__(self, undecided, launches=None, verdict=None, open_starts=None, *, blind=False):
        self._blind = blind
        self._open_starts = open_starts
        self._verdict = verdict
        self._undecided = undecided
        self._launches = launches

    def first_launches(self, _plan, _machine):
        return self._launches

    def is_blind(self, _plan, _machine):
        return self._blind

    def undecided(self, run):
        names, suspects = self._undecided(run)
        return names if isinstance(names, dict) else dict.fromkeys(names, 2.0), suspects

    def verdict(self, _run):
        return self._verdict

    def is_start_open(self, run, workload):
        return self._open_starts is None or workload in self._open_starts(run)

    def accepted(self, _suite, _machine):
        return {}


def measure_with(
    launcher,
    plan,
    *,
    listener=None,
    device="auto",
    checks=None,
    against=None,
    wait_s=0.0,
    clock=time.monotonic,
    **more,
):
    """Measure a plan in a session that is open, with a launcher that only answers."""
    with signals.note_signals() as interrupts:
        lab = session.Lab(
            root=plan.root,
            python_path=plan.python_path,
            launcher=launcher,
            listener=listener or Recorder(),
            interrupts=interrupts,
            machine=session.describe(plan, launcher, device, interrupts),
            lock_timeout_s=1,
            base=against and against.checkout,
            wait_s=wait_s,
            checks=checks or some_checks(),
            clock=clock,
        )
        return session.measure(lab, plan, against=against, **more)


def some_checks(*, host=(), has_room=False, every_s=0.001, canaries_every_s=0.0):
    """Checks of a machine: what speaks against the host, and against two processes at once."""
    return MachineChecks(
        host=lambda: host,
        has_room=lambda *_: has_room,
        every_s=every_s,
        canaries_every_s=canaries_every_s,
    )


def a_result(index=0, **more):
    """What a worker delivers; arguments that a result lacks are of its process."""
    names = "items_per_step", "item_unit", "late_libraries"
    own = {name: more.pop(name) for name in names if name in more}
    plain = WorkerResult(
        items_per_step=1,
        item_unit="step",
        precision="",
        knobs={},
        process=a_process(index, **more),
    )
    return msgspec.structs.replace(plain, **own)


def a_plan_at(root, *names, processes=1, canaries=False, **more):
    """Workloads below `root` with files of their names, and no limits."""
    planned = (
        a_planned(
            name,
            file=str(root / "workloads" / f"{name}.py"),
            protocol=Protocol(processes=processes),
            **more,
        )
        for name in names
    )
    return a_plan(*planned, root=str(root), limits=Limits(default={}), canaries=canaries)


def a_checkout(folder, *notes):
    """The checkouts of both sides in `folder`, which holds `head` and `base`."""
    return Checkout(
        root=folder / "base",
        top=folder / "base",
        head_top=folder / "head",
        source=SOURCE,
        ref="main",
        notes=notes,
        source_folders=("src",),
        native_source="fast.c",
    )


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

    def describe(self, _device, _threads, devices, *_, **__):
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


def a_look(used_bytes=0, uuid="GPU-a", lost=""):
    """What is seen of a GPU at rest, of which this much memory is in use."""
    seen = {"uuid": uuid, "utilization": 0.0, "used_bytes": used_bytes, "processes": 0}
    nothing: dict[str, Any] = dict.fromkeys(GpuState.__struct_fields__)
    return GpuStates(gpus=(GpuState(**(nothing | seen | {"absent": {}, "lost": lost})),))
