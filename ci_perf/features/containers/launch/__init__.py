"""Launch workers in containers: one fresh container per task, by the engine's command line.

What holds the device, watches it and judges stays on the host. docs/decisions/011 says why each
task has a container of its own.
"""

import contextlib
import copy
import itertools
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from ci_perf.errors import CiPerfError
from ci_perf.features.containers.launch import arguments, images, mounts, running, stale
from ci_perf.features.containers.launch.arguments import GpuAccess
from ci_perf.features.containers.launch.engine import Engine
from ci_perf.features.containers.launch.mounts import OUT, Folders, Mount
from ci_perf.launch import Interrupted, child_environment, local, never, run_task, side_python
from ci_perf.launch.run_task import Finished, Launcher
from ci_perf.launch.side_python import Installed
from ci_perf.launch.turn_scheduler import Slot
from ci_perf.model.container import Container, Image
from ci_perf.model.suite import OWN
from ci_perf.model.task import (
    RESULT,
    GpuStates,
    MachineDescription,
    Task,
    TaskFailure,
    module_of,
)
from ci_perf.system import linux
from ci_perf.system.child import Ended
from ci_perf.system.scratch import Scratch
from ci_perf.version import __version__


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerSide:
    """A checkout, and the image in which it is measured."""

    root: Path
    image: Image


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What whoever starts ci-perf has chosen, and suite.toml where it may.

    ``data`` is mounted read-only, ``checkpoints`` writable; ``ulimits`` are as docker spells them.
    """

    engine: Engine
    limits: Container
    gpu_access: GpuAccess
    data: Path | None = None
    checkpoints: Path | None = None
    ulimits: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Spec:
    """One container to run."""

    image: Image
    command: tuple[str, ...]
    mounts: tuple[Mount, ...]
    environment: Mapping[str, str]
    workdir: str = OUT
    hidden: tuple[str, ...] = ()
    gpus: tuple[str, ...] = ()


class ContainerLauncher(Launcher):
    """Each task is a fresh process in a fresh container."""

    def __init__(
        self,
        sides: Sequence[ContainerSide],
        settings: Settings,
        *,
        run: str,
        folder: Path,
    ) -> None:
        """Launch tasks of each of `sides`; what belongs to none of them runs as the first does.

        `run` is the id of the run. Compiled code, and data that nobody has given, are kept in
        `folder`, which somebody else removes. Raises EngineError.
        """
        self.sides = tuple(sides)
        self._settings = settings
        self._folder = folder
        self._user = mounts.user(settings.engine)
        self._identity = run
        self._owner = stale.owner()
        self._numbers = itertools.count(1)
        # Of each checkout that `setup` has changed, the copy that holds the change.
        self._copies: dict[Path, Path] = {}
        # A checkout has many folders, and is looked through once.
        self._hidden_folders: dict[Path, tuple[str, ...]] = {}
        # The threads that launch a pair want the same folders at once.
        self._making_folder = threading.Lock()

    def notes(self, root: Path) -> tuple[str, ...]:
        """See Launcher. Of the variables of this host, a container has none."""
        del root
        head, *others = self.sides
        return tuple(
            note
            for base in others
            if base.image.config != head.image.config
            for note in (_note_images(head.image, base.image), self._note_installed(base))
            if note
        )

    def _note_installed(self, side: ContainerSide) -> str:
        """Ask an image that nobody describes for its ci_perf; "" where it cannot say."""
        with contextlib.suppress(CiPerfError):  # its launches say what is wrong with it
            installed = self.for_side(side.root).list_installed()
            return _note_version(side.image, side_python.find_version(installed, "ci-perf"))
        return ""

    def for_side(self, root: Path) -> "ContainerLauncher":
        """See Launcher."""
        other = copy.copy(self)
        other.sides = tuple(sorted(self.sides, key=lambda side: side.root != root))
        return other

    def list_installed(self) -> Installed:
        """See Launcher."""
        command = ("python3", "-P", "-c", side_python.ASK, f"{OUT}/{RESULT}")
        installed = run_task.run_module(
            lambda folder: self._run_in_first(command, folder, threads=1),
            Installed,
            what="listing packages",
            timeout_s=run_task.TORCH_TIMEOUT_S,
        )
        if isinstance(installed, TaskFailure):
            raise CiPerfError(installed.reason, output=installed.output)
        return installed

    def look(
        self, gpus: Sequence[str], interrupted: Interrupted = never
    ) -> GpuStates | TaskFailure:
        """See Launcher. This host is asked: a container is not told who else uses a GPU."""
        return local.look(gpus, self.sides[0].root, os.environ, interrupted)

    def shell(
        self,
        command: str,
        *,
        root: Path,
        variables: Mapping[str, str],
        timeout_s: float,
        interrupted: Interrupted = never,
    ) -> Ended:
        """See Launcher. It changes a copy, which is measured instead of the checkout."""
        if root not in self._copies:
            copy = self._folder / f"copy-{len(self._copies)}" / root.name
            mounts.copy_checkout(root, copy)
            mounts.hand_over(copy, self._user)
            self._copies[root] = copy
        spec = _Spec(
            image=self._image_of(root),
            command=("sh", "-c", command),
            mounts=(Mount(source=self._copies[root], target=mounts.WORKSPACE, writable=True),),
            environment={
                **child_environment.build_environment_as_it_is({}, OWN),
                **variables,
            },
            workdir=mounts.WORKSPACE,
        )
        return self._run(spec, timeout_s, interrupted).ended

    def _spell(self, task: Task) -> Task:
        return mounts.task_inside(task)

    def _run_process(
        self, task: Task, folder: Scratch, interrupted: Interrupted, slot: Slot | None
    ) -> Finished:
        """Run the container of one task, with the monitor on this host beside it."""
        root = Path(task.root)
        place = self._copies.get(root, root)
        mounts.check_readable(place, self._user)
        folders = Folders(
            out=folder.path,
            cache=self._kept(local.cache_name(task)),
            own_data=self._kept("data"),
            data=self._settings.data,
            checkpoints=self._settings.checkpoints,
            turns=None if slot is None else slot.folder,
        )
        protocol = task.workload.protocol
        if place not in self._hidden_folders:
            self._hidden_folders[place] = mounts.find_hidden_folders(place)
        spec = _Spec(
            image=self._image_of(root),
            command=_module(module_of(task)),
            mounts=mounts.task_mounts(task, place, folders, child_environment.PACKAGE),
            hidden=self._hidden_folders[place],
            environment=_ours(
                child_environment.build_task_environment({}, task.workload, Path(mounts.CACHE))
            ),
            workdir=mounts.WORKSPACE,
            gpus=arguments.gpus_of_task(
                task.device, task.gpus, task.workload.world_size, os.environ
            ),
        )
        with local.watch_task(task, folder, root, os.environ) as report:
            for path in (folders.out, folders.turns):
                if path is not None:
                    mounts.hand_over(path, self._user)
            finished = self._run(spec, task.workload.protocol.timeout_s, interrupted, slot)
        evidence = run_task.evidence_from(report) if protocol.monitor_hz else None
        return replace(finished, evidence=evidence)

    def _run_ours(
        self,
        module: str,
        device: str,
        threads: int,
        more: Sequence[str],
        folder: Scratch,
        interrupted: Interrupted,
    ) -> Finished:
        command = (*_module(module), device, str(threads), *more)
        gpus = arguments.visible_gpus(device, os.environ)
        return self._run_in_first(command, folder, interrupted, threads=threads, gpus=gpus)

    def _run_in_first(
        self,
        command: tuple[str, ...],
        folder: Scratch,
        interrupted: Interrupted = never,
        *,
        threads: int,
        gpus: tuple[str, ...] = (),
    ) -> Finished:
        """Run a command of ours in the image of the first side."""
        mounts.hand_over(folder.path, self._user)
        spec = _Spec(
            image=self.sides[0].image,
            command=command,
            mounts=mounts.our_mounts(folder.path, child_environment.PACKAGE),
            environment=_ours(child_environment.build_child_environment({}, threads)),
            gpus=gpus,
        )
        return self._run(spec, run_task.TORCH_TIMEOUT_S, interrupted)

    def _run(
        self,
        spec: _Spec,
        timeout_s: float,
        interrupted: Interrupted,
        slot: Slot | None = None,
    ) -> Finished:
        settings = self._settings
        name = f"ci-perf-{self._identity}-{next(self._numbers)}"
        create = arguments.create(
            settings.engine.name,
            name=name,
            image=spec.image.config,
            command=spec.command,
            run=self._identity,
            owner=self._owner,
            user=self._user,
            limits=settings.limits,
            gpus=spec.gpus,
            gpu_access=settings.gpu_access,
            mounts=spec.mounts,
            hidden=spec.hidden,
            environment={**spec.environment, "PWD": spec.workdir},
            workdir=spec.workdir,
            ulimits=settings.ulimits,
        )
        return running.run(
            settings.engine, name, create, timeout_s=timeout_s, interrupted=interrupted, slot=slot
        )

    def _image_of(self, root: Path) -> Image:
        of_root = (side.image for side in self.sides if side.root == root)
        return next(of_root, self.sides[0].image)

    def _kept(self, name: str) -> Path:
        path = self._folder / name
        with self._making_folder:
            if not path.exists():
                path.mkdir()
                mounts.hand_over(path, self._user)
        return path

    def _add_host(self, machine: MachineDescription) -> MachineDescription:
        """Say what a container cannot know: which host it is on, and of which image it is."""
        image = self.sides[0].image
        environment = machine.environment
        soft = msgspec.structs.replace(environment.soft, image=images.name_for_comparison(image))
        noted = msgspec.structs.replace(environment.noted, host_hash=linux.name_hash())
        environment = msgspec.structs.replace(environment, soft=soft, noted=noted, image=image)
        note = _note_version(image, machine.ci_perf)
        return msgspec.structs.replace(machine, environment=environment, note=note)


@contextlib.contextmanager
def launcher(
    sides: Sequence[ContainerSide], settings: Settings, *, run: str, say: Callable[[str], None]
) -> Iterator[ContainerLauncher]:
    """Provide a launcher that keeps compiled code until the end.

    What killed launches left is removed before. Raises CannotWriteError and EngineError.
    """
    stale.sweep(settings.engine, say)
    with local.caches() as folder:
        yield ContainerLauncher(sides, settings, run=run, folder=folder)


def _module(name: str) -> tuple[str, ...]:
    """Spell the command of one of our modules, whose parent is the engine's init."""
    return ("python3", "-P", "-m", name, OUT, "1")


def _ours(environment: Mapping[str, str]) -> dict[str, str]:
    """Let Python find our own package."""
    return {**environment, "PYTHONPATH": mounts.PACKAGE}


def _note_version(image: Image, installed: str) -> str:
    """Say that an image has another ci_perf, which ours replaces: two would measure differently."""
    if installed in {"", __version__}:
        return ""
    name = images.name_for_comparison(image)
    return f"{name} has ci_perf {installed}; that of this host, {__version__}, was used instead"


def _note_images(head: Image, base: Image) -> str:
    tagged = "" if base.is_pinned else " (which is not pinned: it may be another one tomorrow)"
    return (
        f"each side has its own image: the head is measured in {images.name_for_comparison(head)}, "
        f"the base, where it is launched, in {images.name_for_comparison(base)}{tagged}"
    )
