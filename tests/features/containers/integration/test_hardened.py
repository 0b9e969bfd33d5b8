"""What a container is not given, seen from the inside, through our own launcher."""

import os
import subprocess

import pytest

from ci_perf.model.container import Container
from tests.features.containers.helpers import benches
from tests.features.containers.helpers.benches import Bench

pytestmark = pytest.mark.container

MIB = 2**20
LIMITS = Container(memory="512m", shm_size="48m", tmp_size="64m", pids=40, cpus="0")
# What a runner has in its own environment.
SECRETS = {
    "GITHUB_TOKEN": "ghs_not_for_you",
    "ACTIONS_RUNTIME_TOKEN": "not_for_you",
    "AWS_SECRET_ACCESS_KEY": "not_for_you",
    "SSH_AUTH_SOCK": "/run/not_for_you",
    "PYTHONPATH": "/not_for_you",
    "LD_PRELOAD": "",
}
TOKEN = "ghs_in_the_checkout"
# Reports all that it can find out, and what becomes of it when it tries more.
PROBE = """
import getpass, os, socket, stat, subprocess, sys, threading
from pathlib import Path
import ci_perf

def status():
    lines = Path("/proc/self/status").read_text().splitlines()
    return {key: value.split() for key, _, value in (line.partition(":") for line in lines)
            if key.startswith(("Uid", "Gid", "Groups", "NoNewPrivs", "Seccomp", "Cap"))}

def mounts():
    lines = [line.split() for line in Path("/proc/self/mounts").read_text().splitlines()]
    return {at: options.split(",") for _, at, _, options, *_ in lines}

def tried(what):
    try:
        what()
    except Exception as error:
        return type(error).__name__ + ": " + str(getattr(error, "strerror", error))
    return "done"

def write(folder):
    def put():
        Path(folder, "written").write_text("here")
    return tried(put)

def script():
    file = Path("/tmp/script")
    file.write_text("#!/bin/sh\\necho it ran\\n")
    file.chmod(0o755)
    return subprocess.run([file], capture_output=True, text=True, check=True).stdout.strip()

def special():
    found = []
    for folder, names, files in os.walk("/"):
        names[:] = [] if folder in ("/proc", "/sys") else names
        for name in files:
            kind = stat.S_IFMT(os.lstat(os.path.join(folder, name)).st_mode)
            if kind in (stat.S_IFSOCK, stat.S_IFBLK):
                found.append(os.path.join(folder, name))
    return found

def privileged():
    found = []
    for folder, names, files in os.walk("/"):
        names[:] = [] if folder in ("/proc", "/sys") else names
        found += [name for name in files
                  if os.lstat(os.path.join(folder, name)).st_mode & (stat.S_ISUID | stat.S_ISGID)]
    return found

def forks():
    # Each waits for the end of a pipe, and so ends with us.
    ours, theirs = os.pipe()
    count = 0
    while count < 1000:
        try:
            if os.fork() == 0:
                os.close(theirs)
                os.read(ours, 1)
                os._exit(0)
        except OSError as error:
            os.close(theirs)
            return count, error.strerror
        count += 1
    return count, ""

def core():
    if (pid := os.fork()) == 0:
        os.chdir("/tmp")
        os.abort()
    return os.WCOREDUMP(os.waitpid(pid, 0)[1]), len(list(Path("/tmp").glob("*core*")))

def reach(address):
    def connect():
        socket.create_connection(address, timeout=1)
    return tried(connect)

limits = [Path("/sys/fs/cgroup") / name for name in ("memory.max", "memory/memory.limit_in_bytes")]
shm = os.statvfs("/dev/shm")
tmp = os.statvfs("/tmp")
seen = {
    "status": status(),
    "mounts": {at: mounts().get(at) for at in
               ("/", "/tmp", "/dev/shm", "/workspace", "/opt/ci-perf/ci_perf", "/workspace/.git")},
    "written": {at: write(at) for at in ("/", "/workspace", "/workspace/.git", "/suite", "/usr",
        "/opt/ci-perf", "/opt/ci-perf/ci_perf", "/data", "/etc",
        "/out", "/cache", "/tmp", "/dev/shm", "/sys/fs/cgroup")},
    "script": script(),
    "special": special(),
    "privileged": privileged(),
    "shm": shm.f_blocks * shm.f_frsize,
    "tmp": tmp.f_blocks * tmp.f_frsize,
    "memory": [file.read_text().strip() for file in limits if file.exists()],
    "cpus": sorted(os.sched_getaffinity(0)),
    "interfaces": [name for _, name in socket.if_nameindex()],
    "routes": Path("/proc/net/route").read_text().splitlines()[1:],
    "reached": [reach(("192.0.2.1", 80)), reach(("example.com", 80))],
    "name": [socket.gethostname(), socket.gethostbyname(socket.gethostname())],
    "environment": dict(os.environ),
    "user": [getpass.getuser(), os.path.expanduser("~")],
    "git": os.listdir("/workspace/.git"),
    "token": tried(Path("/workspace/.git/config").read_text),
    "core": core(),
    "package": ci_perf.__file__,
    "directory": os.getcwd(),
    "processes": len([name for name in os.listdir("/proc") if name.isdigit()]),
    "forks": forks(),
}
report(seen)
"""


@pytest.fixture(scope="module", params=["docker", "podman"])
def engine(request):
    return request.getfixturevalue(request.param)


@pytest.fixture(scope="module")
def image(engine, request):
    name = "python_image" if engine.name == "docker" else "podman_python_image"
    return request.getfixturevalue(name)


@pytest.fixture(scope="module")
def seen(engine, image, tmp_path_factory):
    """What a workload of a suite from elsewhere finds in a container with all limits."""
    folder = tmp_path_factory.mktemp("hardened")
    data, suite = benches.folder(folder / "data"), benches.folder(folder / "suite")
    bench = Bench(folder, engine, image, limits=LIMITS, data=data)
    (bench.root / ".git").mkdir()
    (bench.root / ".git/config").write_text(f"extraheader = {TOKEN}\n")
    with pytest.MonkeyPatch.context() as patch:
        for name, value in SECRETS.items():
            patch.setenv(name, value)
        user = bench.launcher._user
        return {**bench.facts(PROBE, suite=suite), "numbers": [user.uid, user.gid]}


def test_it_runs_without_any_right(seen):
    uid, gid = map(str, seen["numbers"])
    status = seen["status"]
    sets = {name: value for name, value in status.items() if name.startswith("Cap")}

    assert status["Uid"] == [uid] * 4
    assert status["Gid"] == [gid] * 4
    assert set(status["Groups"]) <= {gid}
    assert os.geteuid() != 0 or uid == gid == "10001"
    assert set(sets) >= {"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"}
    assert all(int(value, 16) == 0 for (value,) in sets.values())
    assert status["NoNewPrivs"] == ["1"]
    assert status["Seccomp"] == ["2"]
    assert seen["privileged"] == []


def test_only_what_is_its_own_can_be_written(seen):
    written = {at for at, said in seen["written"].items() if said == "done"}
    refusals = ("OSError: Read-only file system", "PermissionError")

    assert written == {"/out", "/cache", "/tmp", "/dev/shm"}
    assert all(said.startswith((*refusals, "done")) for said in seen["written"].values())
    for at in ("/workspace", "/opt/ci-perf/ci_perf", "/"):
        assert "ro" in seen["mounts"][at], at


def test_what_is_compiled_into_tmp_can_be_run(seen):
    assert seen["script"] == "it ran"
    assert {"nosuid", "nodev"} <= set(seen["mounts"]["/tmp"])
    assert "noexec" not in seen["mounts"]["/tmp"]


def test_it_has_as_much_of_the_machine_as_its_limits_say(seen):
    assert (seen["shm"], seen["tmp"]) == (48 * MIB, 64 * MIB)
    assert seen["memory"] == [str(512 * MIB)]
    assert seen["cpus"] == [0]


def test_a_fork_bomb_ends_at_the_limit_of_processes(seen):
    count, why = seen["forks"]

    assert 10 < count < LIMITS.pids
    assert why == "Resource temporarily unavailable"
    assert subprocess.run(["true"], check=True).returncode == 0  # this host still can


def test_it_has_no_network_and_knows_its_own_name(seen):
    assert seen["interfaces"] == ["lo"]
    assert seen["routes"] == []
    assert all(not said.startswith("done") for said in seen["reached"])
    assert seen["name"] == ["ci-perf", "127.0.0.1"]


def test_it_sees_no_variable_of_the_host(seen):
    of_engine = {"HOSTNAME", "PATH", "TERM", "container"}
    ours = set(seen["environment"]) - of_engine

    assert ours == {
        "CI_PERF_NAME",
        *("CUDA_DEVICE_ORDER", "HF_DATASETS_OFFLINE", "HF_HUB_DISABLE_TELEMETRY", "HF_HUB_OFFLINE"),
        *("HOME", "LC_ALL", "LOGNAME", "MKL_NUM_THREADS", "NCCL_SOCKET_IFNAME"),
        *("NVIDIA_DRIVER_CAPABILITIES", "NVIDIA_VISIBLE_DEVICES", "OMP_NUM_THREADS"),
        *("PWD", "PYTHONDONTWRITEBYTECODE", "PYTHONHASHSEED", "PYTHONPATH", "PYTHONUNBUFFERED"),
        *("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF", "TOKENIZERS_PARALLELISM"),
        *("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR", "USER"),
    }
    assert not any("not_for_you" in value for value in seen["environment"].values())
    assert seen["environment"]["NVIDIA_VISIBLE_DEVICES"] == "void"
    assert seen["user"] == ["ci-perf", "/tmp"]


def test_it_finds_nothing_of_the_host(seen):
    assert seen["special"] == []
    assert seen["processes"] <= 3
    assert seen["git"] == []
    assert seen["token"].startswith("FileNotFoundError")
    assert seen["core"] == [False, 0]
    assert seen["package"] == "/opt/ci-perf/ci_perf/__init__.py"
    assert seen["directory"] == "/workspace"
