"""Owns what a session of tests has started; when that ends, however it ends, all of it is removed.

    python keeper.py FOLDER [COMMAND ...]

It runs the command, and waits for the end of its standard input: a pipe that the kernel closes with
the session. Everything belongs to the folder by its name, so that `sweep` finds what a keeper could
not remove, because somebody has killed it as well.
"""

import contextlib
import fcntl
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PREFIX = "ci-perf-engine-"
CDI = Path("/etc/cdi")

_PATIENCE_S = 20.0


def new_folder():
    """Make a folder; return it with an open file that holds its lock. Sweeps before."""
    sweep()
    new = Path(tempfile.mkdtemp(prefix=f".{PREFIX}"))
    held = _locked(new)
    folder = new.with_name(new.name[1:])
    new.rename(folder)  # visible to `sweep` only when it is locked
    return folder, held


def sweep():
    """Remove the folders whose keepers are gone, with everything that belongs to them."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):  # a keeper holds it, or another session sweeps too
            held = _locked(folder)
            try:
                remove(folder)
            finally:
                os.close(held)


def _locked(folder):
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        raise
    return handle


def remove(folder):
    """Remove a folder and what belongs to it: containers, processes, mounts, control groups."""
    if (folder / "podman.json").exists():
        environment = {**os.environ, **json.loads((folder / "podman.json").read_text())}
        subprocess.run(
            ["podman", "rm", "--all", "--force", "--time", "0"],
            env=environment,
            check=False,  # what is still there is ended below
            capture_output=True,
        )
    _end_processes(folder)
    _unmount(folder)
    _remove_control_groups(folder.name)
    (CDI / f"{folder.name}.json").unlink(missing_ok=True)
    with contextlib.suppress(OSError):  # not there, or not empty: of somebody else
        CDI.rmdir()
    shutil.rmtree(folder)


def processes_of(folder):
    """Return the processes that were started with a path in this folder."""
    return [
        int(process.name)
        for process in Path("/proc").iterdir()
        if process.name.isdigit()
        and int(process.name) != os.getpid()
        and f"{folder}/" in arguments(process)
    ]


def arguments(process):
    """Return the command line of a folder of /proc, each argument ended by a zero."""
    try:
        return (process / "cmdline").read_text(errors="replace")
    except OSError:  # has ended
        return ""


def _end_processes(folder):
    """Wait for those that are about to end, and end the others."""
    begin = time.monotonic()
    while found := processes_of(folder):
        if time.monotonic() > begin + 2 * _PATIENCE_S:
            raise TimeoutError(f"{folder}: expected its processes to end, found {found}")
        if time.monotonic() > begin + _PATIENCE_S:
            for process in found:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
        time.sleep(0.02)


def mounts_of(folder):
    """Return the mounts in this folder, the deepest first."""
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    targets = [line.split()[4] for line in lines]
    return sorted((at for at in targets if at.startswith(f"{folder}/")), key=len, reverse=True)


def _unmount(folder):
    for target in mounts_of(folder):
        subprocess.run(["umount", "--lazy", target], check=True)


def control_groups_of(name):
    """Return the control groups of a daemon, the deepest first."""
    root = Path("/sys/fs/cgroup")
    parents = [path / name for path in (root, *root.iterdir()) if (path / name).is_dir()]
    found = [folder for parent in parents for folder, _, _ in os.walk(parent)]
    return sorted(map(Path, found), key=lambda path: len(path.parts), reverse=True)


def _remove_control_groups(name):
    deadline = time.monotonic() + _PATIENCE_S
    while groups := control_groups_of(name):
        for group in groups:
            with contextlib.suppress(OSError):  # whoever was killed in it is not quite dead
                group.rmdir()
        if time.monotonic() > deadline:
            raise TimeoutError(f"expected these groups to become empty: {groups}")
        time.sleep(0.02)


def _main(folder, command):
    for ending in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(ending, signal.SIG_IGN)  # they come to the session; we end after it
    child = None
    watched = [sys.stdin.fileno()]
    if command:
        with (folder / "log").open("wb") as log:
            child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        watched.append(os.pidfd_open(child.pid))
    ready, _, _ = select.select(watched, [], [])
    has_failed = sys.stdin.fileno() not in ready
    if has_failed:
        sys.stderr.write((folder / "log").read_text(errors="replace")[-2000:])
    if child:
        child.kill()
        child.wait()
    remove(folder)
    return int(has_failed)


if __name__ == "__main__":
    sys.exit(_main(Path(sys.argv[1]), sys.argv[2:]))
