"""Units as child processes of this one, so many at a time: here, or by a scheduler's own client."""

import contextlib
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from ci_perf.errors import EngineError, UsageError
from ci_perf.features.fleet.unit import LOG, UnitFolder, environment_for_unit
from ci_perf.system import files

_LOOK_S = 0.1
# `ci-perf run` writes what it has, and removes containers and checkouts.
_TIDY_UP_S = 10.0


def run_local(units: Sequence[UnitFolder], *, at_once: int, devices: Sequence[str]) -> None:
    """Run units on this machine, at most `at_once` at a time, or one per CUDA device.

    Raises EngineError.
    """
    environment = environment_for_unit(os.environ)
    slots = [{**environment, "CUDA_VISIBLE_DEVICES": device} for device in devices]
    commands = [unit.command(sys.executable, str(os.getpid())) for unit in units]
    _run(units, commands, slots or [environment] * at_once)


def run_command(
    units: Sequence[UnitFolder], *, template: str, python: str, name: str, at_once: int
) -> None:
    """Run a command of the user's for each unit, which submits it and waits for its end.

    In its words {script} is the program that a node must run, {name} a name for the job. Raises
    UsageError and EngineError.
    """
    try:
        words = shlex.split(template)
    except ValueError as error:
        raise UsageError(f"--option: expected a command, found {template!r}: {error}") from None
    if not any("{script}" in word for word in words):
        raise UsageError(
            "--engine command: expected --option with a command that submits {script} and waits "
            f"for its end, such as --option 'bsub -K -J {{name}} {{script}}', found {template!r}"
        )
    commands = []
    for unit in units:
        script = unit.path / "unit.sh"
        files.write_text(script, f"#!/bin/sh\nexec {shlex.join(unit.command(python))}\n")
        script.chmod(0o755)
        named = f"{name}-{unit.path.name}"
        commands.append(
            [word.replace("{script}", str(script)).replace("{name}", named) for word in words]
        )
    _run(units, commands, [dict(os.environ)] * at_once)


def _run(
    units: Sequence[UnitFolder],
    commands: Sequence[Sequence[str]],
    slots: Sequence[Mapping[str, str]],
) -> None:
    """Start each command in a free slot, which has an environment; end them where we end."""
    waiting = list(zip(units, commands, strict=True))
    running: dict[int, tuple[UnitFolder, subprocess.Popen[bytes]]] = {}
    try:
        while waiting or running:
            for slot, (unit, process) in list(running.items()):
                if process.poll() is not None:
                    unit.note_end(_words(process.returncode))
                    del running[slot]
            free = [slot for slot in range(len(slots)) if slot not in running]
            for slot, (unit, command) in zip(free, waiting, strict=False):
                running[slot] = unit, _start(command, unit.path / LOG, slots[slot])
            del waiting[: len(free)]
            time.sleep(_LOOK_S)
    finally:
        _end([process for _, process in running.values()])


def _start(
    command: Sequence[str], log: Path, environment: Mapping[str, str]
) -> "subprocess.Popen[bytes]":
    try:
        with log.open("ab") as output:
            return subprocess.Popen(
                command,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C reaches us, and we end it in our own way
            )
    except OSError as error:
        raise EngineError(f"{command[0]}: cannot be started: {error.strerror}") from None


def _end(processes: Sequence["subprocess.Popen[bytes]"]) -> None:
    """Ask processes to end; kill what does not end in time."""
    for process in processes:
        process.terminate()
    deadline = time.monotonic() + _TIDY_UP_S
    for process in processes:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(max(0.0, deadline - time.monotonic()))
        process.kill()
        process.wait()


def _words(code: int) -> str:
    return f"ended by signal {-code}" if code < 0 else f"exit code {code}"
