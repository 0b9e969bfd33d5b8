"""A docker and a podman of a session's own: nothing of the machine's is used, nothing is left."""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

from ci_perf.features.containers.launch import engine
from tests.features.containers.helpers import keeper

# What tells a client which engine is meant.
VARIABLES = ("DOCKER_HOST", "DOCKER_CONFIG", "CONTAINERS_CONF", "CONTAINERS_STORAGE_CONF")

# Ends a program with its keeper, also where that is killed.
WITH_KEEPER = ("setpriv", "--pdeathsig", "KILL")

# A daemon's processes end with the first of its namespace, and its mounts with the last of them.
# What is mounted on the machine is seen within, and nothing the other way. docker-init takes
# orphans. Shims put their sockets into /run/containerd, whatever the daemon's own folders are.
_ALONE = (
    *("unshare", "--mount", "--propagation", "slave", "--pid", "--mount-proc"),
    *("--fork", "--kill-child", "sh", "-c"),
    'mkdir -p /run/containerd && mount -t tmpfs none /run/containerd && exec docker-init -- "$@"',
    "sh",
)
# Where Debian has dockerd and runc; not everybody's PATH says so.
_PROGRAMS = f"{os.environ['PATH']}:/usr/sbin:/sbin"
_START_S = 60.0

_CONTAINERS_CONF = """\
[containers]
# Podman's own ask for more than a user without CAP_SYS_RESOURCE may give.
default_ulimits = ["nofile=1024:1024", "nproc=1024:1024"]
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
tmp_dir = "{folder}/tmp"
[network]
network_config_dir = "{folder}/networks"
"""
_STORAGE_CONF = """\
[storage]
driver = "overlay"
graphroot = "{folder}/root"
runroot = "{folder}/run"
"""


class NoEngineError(Exception):
    """This machine has no such program, or cannot run it."""


@contextlib.contextmanager
def kept(folder, held, command=()):
    """Own a folder and run a command, both until the end of the session; give the keeper."""
    process = subprocess.Popen(
        [sys.executable, keeper.__file__, folder, *command],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
        pass_fds=[held],
    )
    os.close(held)  # the keeper's now
    try:
        yield process
    finally:
        _, said = process.communicate(timeout=120)
        if process.returncode != 0:
            raise NoEngineError(said)


def folder_of(found):
    """Return the folder of an engine of our own; None for the machine's."""
    variable = "DOCKER_HOST" if found.name == "docker" else "CONTAINERS_CONF"
    folder = Path(found.environment.get(variable, "").removeprefix("unix://")).parent
    return folder if folder.name.startswith(keeper.PREFIX) else None


def need(*programs):
    """Raise NoEngineError for the first of these that is not there."""
    for program in programs:
        if not shutil.which(program, path=_PROGRAMS):
            raise NoEngineError(f"{program}: not there (`.ci/packages` installs it)")


@contextlib.contextmanager
def docker(hooks):
    """Give the docker that answers, or one of our own, which has the folder `hooks` in its PATH."""
    need("docker")
    if (found := engine.find("docker")).ask("version").code == 0:
        yield found
        return
    if os.geteuid() != 0:
        raise NoEngineError("no docker answers, and only root may start one")
    need("dockerd", "docker-init", "containerd", "runc", "unshare")
    with contextlib.ExitStack() as stack:
        try:
            own = stack.enter_context(_own_docker(hooks, "overlay2"))
        except NoEngineError:  # not every file system can be below it
            own = stack.enter_context(_own_docker(hooks, "vfs"))
        yield own


@contextlib.contextmanager
def _own_docker(hooks, storage):
    folder, held = keeper.new_folder()
    (folder / "daemon.json").write_text(json.dumps({"storage-driver": storage}))
    own = {"DOCKER_HOST": f"unix://{folder}/socket", "DOCKER_CONFIG": f"{folder}/config"}
    found = engine.find("docker", {**os.environ, **own})
    with kept(folder, held, _dockerd(folder, hooks)) as process:
        _wait_until_it_answers(found, process)
        yield found


def _dockerd(folder, hooks):
    return [
        *WITH_KEEPER,
        *("env", f"PATH={hooks}:{_PROGRAMS}"),
        *_ALONE,
        *("dockerd", "--config-file", f"{folder}/daemon.json", "--host", f"unix://{folder}/socket"),
        *("--data-root", f"{folder}/data", "--exec-root", f"{folder}/exec"),
        *("--pidfile", f"{folder}/pid", "--cgroup-parent", f"/{folder.name}"),
        *("--exec-opt", "native.cgroupdriver=cgroupfs", "--bridge=none", "--iptables=false"),
        *("--ip6tables=false", "--ip-forward=false", "--ip-masq=false"),
    ]


def _wait_until_it_answers(found, process):
    deadline = time.monotonic() + _START_S
    while found.ask("version").code != 0:
        if process.poll() is not None or time.monotonic() > deadline:
            raise NoEngineError("dockerd does not answer")
        time.sleep(0.02)


@contextlib.contextmanager
def podman():
    """Give podman with images, containers and settings of our own; for root, whose they are."""
    need("podman", "conmon", "runc")
    folder, held = keeper.new_folder()
    own = {}
    for name, text in (("CONF", _CONTAINERS_CONF), ("STORAGE_CONF", _STORAGE_CONF)):
        file = folder / f"{name.lower()}.toml"
        file.write_text(text.format(folder=folder))
        own[f"CONTAINERS_{name}"] = str(file)
    (folder / "podman.json").write_text(json.dumps(own))
    with kept(folder, held):
        yield engine.find("podman", {**os.environ, **own})
