"""The flags of a container, in both engines' spelling; what they do is seen in integration/."""

import itertools
from pathlib import Path

import pytest

from ci_perf.errors import CiPerfError
from ci_perf.launch.containers import arguments
from ci_perf.launch.containers.arguments import Gpus, Labels
from ci_perf.launch.containers.mounts import Mount, User
from ci_perf.model.container import Container

ENGINES = pytest.mark.parametrize("engine", ["docker", "podman"])
UUIDS = ("GPU-a", "GPU-b")


def create(engine="docker", **more):
    found = {
        "name": "ci-perf-run-1",
        "image": "sha256:0",
        "command": ("python3", "-m", "worker"),
        "labels": Labels(run="run", owner="owner"),
        "user": User(uid=10001, gid=10002),
        "limits": Container(),
        "gpus": Gpus(),
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
def test_nothing_is_open(engine):
    words = create(engine)

    assert {"--read-only", "--init"} <= set(words)
    assert values(words, "--network") == ["none"]
    assert values(words, "--cap-drop") == ["ALL"]
    assert values(words, "--security-opt") == ["no-new-privileges"]
    assert values(words, "--pull") == ["never"]
    assert values(words, "--user") == ["10001:10002"]


@ENGINES
@pytest.mark.parametrize(
    "flag", ["--privileged", "--cap-add", "--device", "--volume", "-v", "--pid", "--ipc", "--gpus"]
)
def test_no_door_is_named(engine, flag):
    assert flag not in create(engine)


@ENGINES
def test_the_program_stands_before_the_image_and_its_words_behind(engine):
    assert create(engine)[-5:] == ["--entrypoint", "python3", "sha256:0", "-m", "worker"]


@ENGINES
def test_whose_it_is_can_be_asked_for(engine):
    words = create(engine)

    assert values(words, "--name") == ["ci-perf-run-1"]
    assert values(words, "--label") == ["dev.ci_perf.run=run", "dev.ci_perf.owner=owner"]
    assert variables(words)["CI_PERF_NAME"] == "ci-perf-run-1"


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


@ENGINES
def test_what_is_not_limited_has_no_flag(engine):
    words = create(engine)

    assert not {"--memory", "--memory-swap", "--cpuset-cpus", "--cpus", "--cpu-quota"} & set(words)


def test_the_engine_is_told_whose_numbers_of_users_are_meant():
    assert "--userns" not in create()
    assert values(create(user=User(uid=1, gid=1, userns="host")), "--userns") == ["host"]


def test_limits_of_processes_are_passed_on_and_podman_keeps_its_own():
    given = ("memlock=-1", "nofile=1024:4096")

    assert values(create("docker", ulimits=given), "--ulimit") == ["core=0:0", *given]
    assert values(create("podman", ulimits=given), "--ulimit") == [*given]


def test_gpus_of_docker_are_quoted_as_it_takes_them():
    words = create(gpus=Gpus(devices=("GPU-1", "GPU-2")))

    assert values(words, "--gpus") == ['"device=GPU-1,GPU-2"']
    assert "NVIDIA_VISIBLE_DEVICES" not in variables(words)


def test_all_gpus_of_docker_are_called_so():
    assert values(create(gpus=Gpus(devices=("all",))), "--gpus") == ["all"]


@ENGINES
def test_gpus_by_cdi_are_devices_and_the_runtime_of_nvidia_gives_no_more(engine):
    words = create(engine, gpus=Gpus(devices=("GPU-1", "GPU-2"), access="cdi"))

    assert values(words, "--device") == ["nvidia.com/gpu=GPU-1", "nvidia.com/gpu=GPU-2"]
    assert variables(words)["NVIDIA_VISIBLE_DEVICES"] == "void"


@ENGINES
@pytest.mark.parametrize("access", ["gpus", "cdi"])
def test_on_a_cpu_the_runtime_of_nvidia_gives_none(engine, access):
    assert variables(create(engine, gpus=Gpus(access=access)))["NVIDIA_VISIBLE_DEVICES"] == "void"


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
    found = variables(create(environment={"OMP_NUM_THREADS": "2", "HOME": "/elsewhere"}))

    assert "GITHUB_TOKEN" not in found
    assert (found["OMP_NUM_THREADS"], found["HOME"]) == ("2", "/elsewhere")
    assert found["USER"] == found["LOGNAME"] == "ci-perf"


def test_a_value_of_a_variable_is_one_word_whatever_it_holds():
    words = create(environment={"A": "x --privileged y"})

    assert "A=x --privileged y" in words


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
