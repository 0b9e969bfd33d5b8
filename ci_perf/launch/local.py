"""Launch workers as child processes on this machine."""

import contextlib
import functools
import hashlib
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from ci_perf.errors import CannotWriteError, CiPerfError
from ci_perf.launch import (
    Interrupted,
    child_environment,
    exit_status,
    memory_check,
    monitoring,
    never,
    run_task,
    side_paths,
    side_python,
)
from ci_perf.launch.exit_status import KillCount
from ci_perf.launch.fork_servers import ForkServer
from ci_perf.launch.run_task import Finished, Launcher
from ci_perf.launch.side_python import Installed, SidePython
from ci_perf.launch.turn_scheduler import Slot
from ci_perf.model.suite import OWN
from ci_perf.model.task import (
    FORK_SERVER,
    GPU_STATES,
    MACHINE,
    TASK,
    GpuStates,
    Task,
    TaskFailure,
    module_of,
)
from ci_perf.system import child, files, guardian, scratch
from ci_perf.system.child import Ended
from ci_perf.system.scratch import Scratch

# A driver that has lost a GPU may never answer.
_DRIVER_TIMEOUT_S = 60.0

# Six pairs of one workload, which is as many as follow each other, need no other server.
_MOST_SERVERS = 12
# The root, what is imported and where it lies, the settings of a process, and the number of the
# launch.
_ServerKey = tuple[str, str, tuple[str, ...], tuple[object, ...], int]


class LocalLauncher(Launcher):
    """Each task is a process in a session of its own: fresh, or forked where a task says so."""

    def __init__(
        self,
        root: Path,
        environment: Mapping[str, str] | None = None,
        *,
        caches: Path | None = None,
        home: Path | None = None,
        pythons: Mapping[Path, SidePython] | None = None,
        kill_count: Callable[[], KillCount | None] = exit_status.kill_count,
        servers_at_once: Callable[[int], int] = memory_check.servers_at_once,
    ) -> None:
        """Launch tasks in the root that each of them names; `root` is the repository under measure.

        Below `caches`, a workload finds the code that its earlier processes have compiled; without
        it every process has to compile all of it. Variables that lead into the checkout at `home`
        lead into that of each task's side. `pythons` launch the sides of these roots, ours the
        others. `kill_count` is about kills by the kernel,
        `servers_at_once` as memory_check has it.
        """
        self._root = root
        self._home = home
        self._pythons = {str(side): python for side, python in (pythons or {}).items()}
        self._environment = dict(os.environ if environment is None else environment)
        self._caches = caches
        self._kill_count = kill_count
        self._servers_at_once = servers_at_once
        # By root; those of a side stay the same, whatever its launches create.
        self._of_sides: dict[str, dict[str, str]] = {}
        # In the order of their last use; those of which the present launches are forked.
        self._servers: dict[_ServerKey, ForkServer] = {}
        self._forking: dict[_ServerKey, ForkServer] = {}
        # Whose imports start a thread: each further server would import for nothing.
        self._with_threads: set[tuple[object, ...]] = set()
        self._folders = contextlib.ExitStack()

    def notes(self, root: Path) -> tuple[str, ...]:
        """See Launcher."""
        if self._home is None:
            return ()
        ours, home = self._environment, self._home
        named = {
            "lead both sides into the head's checkout": side_paths.list_kept(ours, root, home),
            "lead each side into its own checkout": side_paths.list_different(
                ours, root, self._root, home
            ),
        }
        return tuple(f"these variables {do}: {', '.join(of)}" for do, of in named.items() if of)

    def look(
        self, gpus: Sequence[str], interrupted: Interrupted = never
    ) -> GpuStates | TaskFailure:
        """See Launcher."""
        return look(gpus, self._root, self._environment, interrupted)

    def for_side(self, root: Path) -> "LocalLauncher":
        """See Launcher."""
        pythons = {Path(side): python for side, python in self._pythons.items()}
        return LocalLauncher(root, self._environment, home=self._home, pythons=pythons)

    def list_installed(self) -> Installed:
        """See Launcher."""
        return side_python.ask(self._find_python(str(self._root)))

    def _run_ours(
        self,
        module: str,
        device: str,
        threads: int,
        more: Sequence[str],
        folder: Scratch,
        interrupted: Interrupted,
    ) -> Finished:
        """See Launcher: what describes the machine is in the place of a workload."""
        cwd, python = folder.path, _python(module, folder)
        environment = child_environment.apart_from(self._root, self._environment, threads)
        if module == MACHINE:
            cwd, side = self._root, self._build_side(str(self._root))
            python = self._spell_command(module, folder, str(self._root))
            environment = child_environment.build_child_environment(side, threads)
        command = [*python, device, str(threads), *more]
        return _run_ours(command, folder, cwd, environment, run_task.TORCH_TIMEOUT_S, interrupted)

    def shell(
        self,
        command: str,
        *,
        root: Path,
        variables: Mapping[str, str],
        timeout_s: float,
        interrupted: Interrupted = never,
    ) -> Ended:
        """See Launcher."""
        with scratch.folder() as folder:
            return child.run(
                ["/bin/sh", "-c", command],
                cwd=str(root),
                environment={
                    **child_environment.build_environment_as_it_is(self._find_side(str(root)), OWN),
                    **variables,
                },
                cookie=scratch.cookie_of_launch(folder.path),
                timeout_s=timeout_s,
                interrupted=interrupted,
            )

    def _prepare(self, tasks: Sequence[Task], interrupted: Interrupted) -> None:
        """Have a server of each of these launches ready, or none: all must be launched alike.

        Launches that the verdict compares as independent ones come from servers of their own: the
        layout of memory, which makes one process faster than another, is that of the server. On a
        GPU nothing is forked. Raises KeyboardInterrupt.
        """
        self._forking = {}
        forked = {
            _server_key(task): task
            for task in tasks
            if task.workload.launch == "fork" or task.libraries
        }
        most = min(_MOST_SERVERS, self._servers_at_once(len(self._servers)))
        spare = [key for key in self._servers if key not in forked]  # the longest unused first
        for key in spare[: max(len(spare) + len(forked) - most, 0)]:
            self._servers.pop(key).close()
        if any(task.device != "cpu" for task in forked.values()) or len(forked) > most:
            return
        if any(
            task.workload.has_threads or _name_imports(key) in self._with_threads
            for key, task in forked.items()
        ):
            return
        try:
            servers = {key: self._find_server(key, task) for key, task in forked.items()}
        except (OSError, CiPerfError):  # the launch itself says what is wrong
            return
        ready = [server.is_ready(interrupted) for server in servers.values()]
        if all(ready):
            self._forking = servers
        self._with_threads |= {
            _name_imports(key) for key, each in servers.items() if each.has_threads
        }

    def _find_server(self, key: _ServerKey, task: Task) -> ForkServer:
        """Return a server that was started before, or starts now. Raises OSError, CiPerfError."""
        server = self._servers.pop(key, None)
        if server is not None and server.has_ended():
            server.close()
            server = None
        if server is None:
            folder = self._folders.enter_context(scratch.folder())
            files.write(folder.path / TASK, task)
            protocol = task.workload.protocol
            caches = folder.path if self._caches is None else self._caches
            server = ForkServer(
                self._spell_command(FORK_SERVER, folder, task.root),
                cwd=task.root,
                environment=child_environment.build_task_environment(
                    self._build_side(task.root), task.workload, caches / cache_name(task)
                ),
                cookie=scratch.cookie_of_launch(folder.path),
                timeout_s=protocol.timeout_s,
            )
        self._servers[key] = server
        return server

    def _build_side(self, root: str) -> dict[str, str]:
        if root not in self._of_sides:
            self._of_sides[root] = self._find_side(root)
        return self._of_sides[root]

    def _find_side(self, root: str) -> dict[str, str]:
        return self._find_python(root).build_environment(
            side_paths.build_side_environment(self._environment, Path(root), self._home)
        )

    def _find_python(self, root: str) -> SidePython:
        return self._pythons.get(root, SidePython())

    def _spell_command(self, module: str, folder: Scratch, root: str) -> list[str]:
        return _python(module, folder, self._find_python(root).python)

    def free_memory(self) -> bool:
        """See Launcher."""
        had_servers = bool(self._servers)
        self._forking = {}
        while self._servers:
            self._servers.popitem()[1].close()
        return had_servers

    def close(self) -> None:
        """End the processes that fork others."""
        for server in self._servers.values():
            server.line.close()  # so that all of them end at once
        for server in self._servers.values():
            server.close()
        self._folders.close()

    def _run_process(
        self, task: Task, folder: Scratch, interrupted: Interrupted, slot: Slot | None
    ) -> Finished:
        protocol = task.workload.protocol
        # Compiled code of a workload on one side.
        caches = folder.path if self._caches is None else self._caches
        environment = child_environment.build_task_environment(
            self._build_side(task.root), task.workload, caches / cache_name(task)
        )
        count = self._kill_count()
        server = self._forking.get(_server_key(task))
        kept = {name: environment[name] for name in child_environment.CACHES}
        with watch_task(task, folder, self._root, self._environment) as report:
            cookie = scratch.cookie_of_launch(folder.path)
            ended = child.run(
                functools.partial(server.fork, folder.path, {cookie.variable: cookie.value, **kept})
                if server
                else self._spell_command(module_of(task), folder, task.root),
                cwd=task.root,
                environment=environment,
                cookie=cookie,
                timeout_s=task.workload.protocol.timeout_s,
                interrupted=interrupted,
                slot=slot,
            )
        evidence = run_task.evidence_from(report) if protocol.monitor_hz else None
        kills = count.read() if count else None
        return Finished(ended=ended, evidence=evidence, kills=kills, forked=server is not None)


@contextlib.contextmanager
def launcher(
    root: Path,
    home: Path | None = None,
    pythons: Mapping[Path, SidePython] | None = None,
) -> Iterator[LocalLauncher]:
    """Provide a launcher that keeps compiled code until the end. Raises CannotWriteError."""
    with (
        guardian.guard(child_environment.apart_from(root, os.environ, threads=1), scratch.__name__),
        caches() as folder,
        contextlib.closing(LocalLauncher(root, caches=folder, home=home, pythons=pythons)) as made,
    ):
        yield made


def _name_imports(key: _ServerKey) -> tuple[object, ...]:
    """Name what a server imports, for all of its numbers; of tests also for both sides."""
    _, *imports, _ = key
    return tuple(imports)


@contextlib.contextmanager
def caches() -> Iterator[Path]:
    """Provide a folder for compiled code; what killed launches leave is gone before and after.

    Raises CannotWriteError.
    """
    with contextlib.ExitStack() as stack:
        try:
            scratch.sweep()
            folder = stack.enter_context(scratch.folder())
            stack.callback(scratch.sweep)  # a worker that was ended removes no folder of its own
        except OSError as error:
            raise CannotWriteError(
                f"{error.filename}: cannot be made: {error.strerror}; TMPDIR names another place "
                "for temporary files"
            ) from None
        yield folder.path


def _server_key(task: Task) -> _ServerKey:
    workload, protocol = task.workload, task.workload.protocol
    # How long it times, and whatever else comes later, is the business of what is forked.
    settings = protocol.threads, protocol.allocator, protocol.cpus, protocol.memory_limit_bytes
    where, what = str(Path(workload.file).parent), task.libraries
    if workload.launch == "fork":
        where, what = workload.file, workload.collects
    return task.root, where, what, settings, task.index


def cache_name(task: Task) -> str:
    """Name the folder of compiled code; a short name, as compilers get it in commands.

    Each root has its own: what base has compiled must not be there for head.
    """
    whose = f"{task.workload.id}\n{task.root}"
    return hashlib.sha256(whose.encode()).hexdigest()[:12]


def look(
    gpus: Sequence[str], root: Path, environment: Mapping[str, str], interrupted: Interrupted
) -> GpuStates | TaskFailure:
    """Ask NVML of this host in what state GPUs are. See Launcher."""
    environment = child_environment.apart_from(root, environment, threads=1)
    timeout_s = _DRIVER_TIMEOUT_S

    def run(folder: Scratch) -> Finished:
        command = [*_python(GPU_STATES, folder), *gpus]
        return _run_ours(command, folder, folder.path, environment, timeout_s, interrupted)

    return run_task.run_module(run, GpuStates, what="looking at the GPUs", timeout_s=timeout_s)


def watch_task(
    task: Task, folder: Scratch, root: Path, environment: Mapping[str, str]
) -> contextlib.AbstractContextManager[monitoring.MonitorReport]:
    """Within, a monitor on this host watches the process of a task."""
    protocol = task.workload.protocol
    return monitoring.watch_host(
        folder.path,
        task.gpus,
        protocol.monitor_hz,
        [sys.executable, "-P"],
        child_environment.apart_from(root, environment, protocol.threads),
    )


def _run_ours(
    command: Sequence[str],
    folder: Scratch,
    cwd: Path,
    environment: Mapping[str, str],
    timeout_s: float,
    interrupted: Interrupted,
) -> Finished:
    """Run one of our modules that measures no workload."""
    ended = child.run(
        command,
        cwd=str(cwd),
        environment=environment,
        cookie=scratch.cookie_of_launch(folder.path),
        timeout_s=timeout_s,
        interrupted=interrupted,
    )
    return Finished(ended=ended)


def _python(module: str, folder: Scratch, python: str = "") -> list[str]:
    """Spell the command of one of our modules; it is told its folder, and who its parent is."""
    # -P: a file of the user's repository must not stand in for one of our imports.
    return [python or sys.executable, "-P", "-m", module, str(folder.path), str(os.getpid())]
