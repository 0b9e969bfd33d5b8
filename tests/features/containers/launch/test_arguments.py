"""The flags of a container, in both engines' spelling; what they do is seen in integration/."""

import itertools
from pathlib import Path

import pytest

from ci_perf.errors import CiPerfError
from ci_perf.features.containers.launch import arguments
from ci_perf.features.containers.launch.mounts import Mount, User
from ci_perf.model.container import Container

ENGINES = pytest.mark.parametrize("engine", ["docker", "podman"])
UUIDS = ("GPU-a", "GPU-b")
CDI = ["nvidia.com/gpu=GPU-a", "nvidia.com/gpu=GPU-b"]


def create(engine="docker", **more):
    found = {
        "name": "ci-perf-run-1",
        "image": "sha256:0",
        "command": ("python3", "-m", "worker"),
        "run": "run",
        "owner": "owner",
        "user": User(uid=10001, gid=10002),
        "limits": Container(),
        "mounts": (),
        "environment": {},
        "workdir": "/out",
    }
    return arguments.create(engine, **{**found, **more})


def values(words, flag):
    return [value for name, value in itertools.pairwise(words) if name == flag]


def variables(words):
    return dict(value.split("=", 1) for value in values(words, "--env"))


@ENGINES
def test_nothing_is_open_and_no_door_is_named(engine):
    words = create(engine)
    doors = {"--privileged", "--cap-add", "--device", "--volume", "-v", "--pid", "--ipc", "--gpus"}
    quotas = {"--memory", "--memory-swap", "--cpuset-cpus", "--cpus", "--cpu-quota", "--userns"}

    assert {"--read-only", "--init"} <= set(words)
    assert not (doors | quotas) & set(words)
    assert values(words, "--network") == ["none"]
    assert values(words, "--cap-drop") == ["ALL"]
    assert values(words, "--security-opt") == ["no-new-privileges"]
    assert values(words, "--pull") == ["never"]
    assert values(words, "--user") == ["10001:10002"]


@ENGINES
def test_whose_it_is_and_what_it_runs(engine):
    words = create(engine)

    assert values(words, "--name") == ["ci-perf-run-1"]
    assert values(words, "--label") == ["dev.ci_perf.run=run", "dev.ci_perf.owner=owner"]
    assert variables(words)["CI_PERF_NAME"] == "ci-perf-run-1"
    assert words[-5:] == ["--entrypoint", "python3", "sha256:0", "-m", "worker"]


def test_limits_become_flags():
    limits = Container(memory="32g", shm_size="1g", tmp_size="2g", pids=99, cpus="0-3,8")
    words = create(limits=limits)
    of_podman = values(create("podman", limits=limits), "--tmpfs")

    assert values(words, "--memory") == values(words, "--memory-swap") == ["32g"]
    assert values(words, "--shm-size") == ["1g"]
    assert values(words, "--pids-limit") == ["99"]
    assert values(words, "--cpuset-cpus") == ["0-3,8"]
    assert values(words, "--tmpfs") == ["/tmp:rw,exec,nosuid,nodev,size=2g,mode=1777"]
    assert of_podman == ["/tmp:rw,exec,nosuid,nodev,size=2g,mode=1777,notmpcopyup"]


def test_limits_of_processes_are_passed_on_and_podman_keeps_its_own():
    given = ("memlock=-1", "nofile=1024:4096")

    assert values(create("docker", ulimits=given), "--ulimit") == ["core=0:0", *given]
    assert values(create("podman", ulimits=given), "--ulimit") == [*given]
    assert values(create(user=User(uid=1, gid=1, userns="host")), "--userns") == ["host"]


@pytest.mark.parametrize(
    ("engine", "gpus", "access", "flag", "said", "visible"),
    [
        ("docker", UUIDS, "gpus", "--gpus", ['"device=GPU-a,GPU-b"'], None),
        ("docker", ("all",), "gpus", "--gpus", ["all"], None),
        ("docker", UUIDS, "cdi", "--device", CDI, "void"),
        ("podman", UUIDS, "cdi", "--device", CDI, "void"),
        ("docker", (), "gpus", "--gpus", [], "void"),
        ("podman", (), "cdi", "--device", [], "void"),
    ],
)
def test_gpus_are_named_as_the_engine_takes_them_and_no_runtime_gives_more(
    engine, gpus, access, flag, said, visible
):
    words = create(engine, gpus=gpus, gpu_access=access)

    assert values(words, flag) == said
    assert variables(words).get("NVIDIA_VISIBLE_DEVICES") == visible


def test_a_mount_can_be_written_when_it_says_so():
    mounts = (
        Mount(source=Path("/a b"), target="/workspace"),
        Mount(source=Path("/c"), target="/out", writable=True),
    )

    assert values(create(mounts=mounts), "--mount") == [
        "type=bind,src=/a b,dst=/workspace,readonly",
        "type=bind,src=/c,dst=/out",
    ]


@pytest.mark.parametrize("name", ["/a,readonly=false", '/a"b', "/a\nb"])
def test_a_path_that_would_be_read_as_more_is_refused(name):
    with pytest.raises(CiPerfError, match="expected a path without commas") as raised:
        create(mounts=(Mount(source=Path(name), target="/workspace"),))

    assert "--runner local" in str(raised.value)


def test_what_is_hidden_is_empty_in_both_engines():
    """podman copies what lies below into a memory file system, unless it is told not to."""
    hidden = ("/workspace/.git",)
    of_docker, of_podman = (
        values(create(engine, hidden=hidden), "--tmpfs")[-1] for engine in ("docker", "podman")
    )

    assert of_docker == "/workspace/.git:ro,size=4k,mode=0555"
    assert of_podman == "/workspace/.git:ro,size=4k,mode=0555,notmpcopyup"


def test_no_variable_is_the_hosts(monkeypatch):
    monkeypatch.setenv("GITHUB_TOKEN", "secret")
    given = {"OMP_NUM_THREADS": "2", "HOME": "/elsewhere", "A": "x --privileged y"}
    found = variables(create(environment=given))

    assert "GITHUB_TOKEN" not in found
    assert (found["OMP_NUM_THREADS"], found["HOME"]) == ("2", "/elsewhere")
    assert found["A"] == "x --privileged y"
    assert found["USER"] == found["LOGNAME"] == "ci-perf"


@pytest.mark.parametrize(
    ("device", "variable", "gpus"),
    [
        ("cpu", "0,1", ()),
        ("cuda", None, ("all",)),
        ("cuda:1", "GPU-a, GPU-b", UUIDS),
        ("cuda", "3", ("3",)),
        ("cuda", "-1", ()),
        ("cuda", "", ()),
    ],
)
def test_a_container_sees_the_gpus_that_we_see(device, variable, gpus):
    environment = {} if variable is None else {"CUDA_VISIBLE_DEVICES": variable}

    assert arguments.visible_gpus(device, environment) == gpus


@pytest.mark.parametrize(("driver", "gpus"), [("there", ("all",)), ("nowhere", ())])
def test_gpus_are_looked_for_where_there_is_a_driver(monkeypatch, tmp_path, driver, gpus):
    (tmp_path / "there").touch()
    # The files are those of a real driver, and not to be made by a test.
    monkeypatch.setattr(arguments, "_DRIVERS", (tmp_path / driver,))

    assert arguments.visible_gpus("auto", {}) == gpus


@pytest.mark.parametrize(
    ("device", "known", "count", "variable", "gpus"),
    [
        ("cpu", (), 1, None, ()),
        ("cuda:0", ("GPU-a",), 1, None, ("GPU-a",)),
        ("cuda:0", UUIDS, 2, None, UUIDS),
        ("cuda:2", (), 1, None, ("2",)),
        ("cuda:2", (), 2, None, ("2", "3")),
        ("cuda:1", (), 1, "5,GPU-b,7", ("GPU-b",)),
        ("cuda", (), 2, "5,6,7", ("5", "6")),
        ("cuda:0", UUIDS, 1, "GPU-a", ("GPU-a",)),
    ],
)
def test_a_task_gets_its_own_gpus(device, known, count, variable, gpus):
    environment = {} if variable is None else {"CUDA_VISIBLE_DEVICES": variable}

    assert arguments.gpus_of_task(device, known, count, environment) == gpus
