"""What of this host a container sees, and where it finds it."""

import os
import stat
from pathlib import Path

import msgspec
import pytest

from ci_perf.errors import CiPerfError
from ci_perf.features.containers.launch import mounts
from ci_perf.features.containers.launch.engine import Engine
from ci_perf.features.containers.launch.mounts import Folders, Mount, User
from ci_perf.model.task import Task
from tests.plans import a_planned

PACKAGE = Path("/site/ci_perf")
FOLDERS = Folders(out=Path("/t/out"), cache=Path("/t/cache"), own_data=Path("/t/data"))
NOBODY = User(uid=mounts.NOBODY, gid=mounts.NOBODY)


def a_task(file="/repo/workloads/it.py", **more):
    workload = msgspec.structs.replace(a_planned("it"), file=file)
    fields = {"workload": workload, "index": 0, "device": "cpu", "root": "/repo", "data_dir": "/d"}
    return Task(**{**fields, **more})


def mounted(task=None, place=Path("/repo"), **more):
    folders = Folders(out=FOLDERS.out, cache=FOLDERS.cache, own_data=FOLDERS.own_data, **more)
    return {
        mount.target: mount
        for mount in mounts.task_mounts(task or a_task(), place, folders, PACKAGE)
    }


def test_a_workload_of_the_checkout_stays_where_it_is_in_it():
    spelled = mounts.task_inside(a_task())

    assert spelled.workload.file == "/workspace/workloads/it.py"
    assert (spelled.root, spelled.data_dir) == ("/workspace", "/data")


@pytest.mark.parametrize("file", ["/site/it.py", "/repository/it.py", "/it.py"])
def test_a_workload_from_elsewhere_is_in_a_folder_of_its_own(file):
    outside = a_task(file)

    assert mounts.task_inside(outside).workload.file == "/suite/it.py"
    assert mounted(outside)["/suite"] == Mount(source=Path(file).parent, target="/suite")


@pytest.mark.parametrize(
    ("device", "spelled"), [("cuda:2", "cuda:0"), ("cuda", "cuda:0"), ("cpu", "cpu")]
)
def test_gpus_are_counted_from_the_first_that_is_given(device, spelled):
    assert mounts.task_inside(a_task(device=device)).device == spelled


def test_what_is_known_of_the_gpus_and_of_paths_in_the_checkout_is_passed_on():
    outside = a_task(gpus=("GPU-1",), python_path=("src",), foreign_root="/base")
    spelled = mounts.task_inside(outside)

    assert (spelled.gpus, spelled.python_path) == (("GPU-1",), ("src",))
    assert spelled.foreign_root == ""  # it is not there


def test_a_task_sees_no_more_of_the_host_than_it_needs():
    mounts_of_task = mounted()

    assert set(mounts_of_task) == {"/opt/ci-perf/ci_perf", "/out", "/workspace", "/cache", "/data"}
    assert {at for at, mount in mounts_of_task.items() if mount.writable} == {
        "/out",
        "/cache",
        "/data",
    }


def test_folders_of_a_launch_that_only_some_have():
    given = {"data": Path("/sets"), "checkpoints": Path("/c"), "turns": Path("/t/turns")}
    found = mounted(place=Path("/t/copy"), **given)

    assert found["/workspace"] == Mount(source=Path("/t/copy"), target="/workspace")
    assert found["/data"] == Mount(source=Path("/sets"), target="/data")
    assert found["/checkpoints"] == Mount(source=Path("/c"), target="/checkpoints", writable=True)
    assert found["/turns"].writable
    assert mounted()["/data"].source == FOLDERS.own_data
    assert mounts.task_inside(a_task(turns="/t/turns")).turns == "/turns"
    assert mounts.task_inside(a_task()).turns == ""


@pytest.fixture
def engine(tmp_path):
    """Make an engine whose program says this of its security."""

    def make(name, security=""):
        program = tmp_path / name
        program.write_text(f"#!/bin/sh\necho '{security}'\n")
        program.chmod(0o755)
        return Engine(name=name, program=str(program), environment=dict(os.environ))

    return make


@pytest.mark.parametrize(
    ("caller", "name", "security", "inside"),
    [
        (0, "docker", "[name=seccomp,profile=default]", NOBODY),
        (0, "podman", "", NOBODY),
        (1000, "docker", "[name=seccomp]", User(uid=1000, gid=1000)),
        (1000, "docker", "[name=rootless name=cgroupns]", User(uid=0, gid=0)),
        (1000, "docker", "[name=userns]", User(uid=1000, gid=1000, userns="host")),
        (1000, "podman", "", User(uid=1000, gid=1000, userns="keep-id")),
    ],
)
def test_nobody_is_root_of_the_host_inside(engine, monkeypatch, caller, name, security, inside):
    # The process of the tests has one user; every part of a launch asks the system for it.
    monkeypatch.setattr(os, "geteuid", lambda: caller)
    monkeypatch.setattr(os, "getegid", lambda: caller)

    assert mounts.user(engine(name, security)) == inside


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_a_tree_is_handed_over_and_no_link_is_followed(tmp_path):
    folder, secret = tmp_path / "folder", tmp_path / "secret"
    (folder / "deep").mkdir(parents=True)
    secret.touch(0o600)
    (folder / "deep/link").symlink_to(secret)

    mounts.hand_over(folder, NOBODY)

    assert (folder / "deep").stat().st_uid == mounts.NOBODY
    assert (folder / "deep/link").lstat().st_uid == mounts.NOBODY
    assert secret.stat().st_uid == 0
    mode = folder.stat().st_mode
    assert folder.stat().st_gid == mounts.NOBODY
    assert stat.S_IMODE(mode) & stat.S_IRWXG == stat.S_IRWXG


def test_every_folder_of_git_is_hidden_and_no_link_to_one(tmp_path):
    for name in (".git", "other/.git", "deep/er/.git"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked/.git").symlink_to(tmp_path / ".git")
    (tmp_path / "worktree").mkdir()
    (tmp_path / "worktree/.git").write_text("gitdir: elsewhere")

    assert sorted(mounts.find_hidden_folders(tmp_path)) == [
        "/workspace/.git",
        "/workspace/deep/er/.git",
        "/workspace/other/.git",
    ]


def test_a_checkout_that_nobody_could_read_is_refused_with_the_next_step(tmp_path):
    tmp_path.chmod(0o700)

    with pytest.raises(CiPerfError, match=f"chmod o\\+rx {tmp_path}"):
        mounts.check_readable(tmp_path, NOBODY)


def test_a_checkout_is_read_by_everybody_or_by_its_owner(tmp_path):
    tmp_path.chmod(0o700)
    mounts.check_readable(tmp_path, User(uid=1000, gid=1000))
    tmp_path.chmod(0o755)
    mounts.check_readable(tmp_path, NOBODY)
