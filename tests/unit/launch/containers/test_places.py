"""What of this host a container is given."""

import os
import stat

import pytest

from ci_perf.errors import CiPerfError
from ci_perf.launch.containers import places
from ci_perf.launch.containers.arguments import User
from ci_perf.launch.containers.engine import Engine

NOBODY = User(uid=places.NOBODY, gid=places.NOBODY)
UUIDS = ("GPU-a", "GPU-b")


@pytest.fixture
def engine(tmp_path):
    """Make an engine whose program says this of its security."""

    def make(name, security=""):
        program = tmp_path / name
        program.write_text(f"#!/bin/sh\necho '{security}'\n")
        program.chmod(0o755)
        return Engine(name=name, program=str(program), environment=dict(os.environ))

    return make


def as_user(monkeypatch, uid):
    monkeypatch.setattr(os, "geteuid", lambda: uid)
    monkeypatch.setattr(os, "getegid", lambda: uid)


@pytest.mark.parametrize("name", ["docker", "podman"])
def test_root_is_nobody_inside(engine, monkeypatch, name):
    as_user(monkeypatch, 0)

    assert places.user(engine(name, "[name=seccomp,profile=default]")) == NOBODY


def test_others_are_themselves_inside(engine, monkeypatch):
    as_user(monkeypatch, 1000)

    assert places.user(engine("docker", "[name=seccomp]")) == User(uid=1000, gid=1000)
    assert places.user(engine("podman")) == User(uid=1000, gid=1000, userns="keep-id")


def test_root_of_a_rootless_docker_is_the_caller_outside(engine, monkeypatch):
    as_user(monkeypatch, 1000)

    assert places.user(engine("docker", "[name=rootless name=cgroupns]")) == User(uid=0, gid=0)


def test_where_users_are_numbered_anew_the_hosts_numbers_are_asked_for(engine, monkeypatch):
    as_user(monkeypatch, 1000)

    assert places.user(engine("docker", "[name=userns]")).userns == "host"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_a_tree_is_handed_over_and_no_link_is_followed(tmp_path):
    folder, secret = tmp_path / "folder", tmp_path / "secret"
    (folder / "deep").mkdir(parents=True)
    secret.touch(0o600)
    (folder / "deep/link").symlink_to(secret)

    places.hand_over_tree(folder, NOBODY)

    assert (folder / "deep").stat().st_uid == places.NOBODY
    assert (folder / "deep/link").lstat().st_uid == places.NOBODY
    assert secret.stat().st_uid == 0
    mode = folder.stat().st_mode
    assert folder.stat().st_gid == places.NOBODY
    assert stat.S_IMODE(mode) & stat.S_IRWXG == stat.S_IRWXG


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_of_a_folder_only_what_lies_in_it_is_handed_over(tmp_path):
    (tmp_path / "folder/deep").mkdir(parents=True)
    (tmp_path / "folder/deep/file").touch()

    places.hand_over(tmp_path / "folder", NOBODY)

    assert (tmp_path / "folder/deep").stat().st_uid == places.NOBODY
    assert (tmp_path / "folder/deep/file").stat().st_uid == 0


def test_every_folder_of_git_is_hidden_and_no_link_to_one(tmp_path):
    for name in (".git", "other/.git", "deep/er/.git"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked/.git").symlink_to(tmp_path / ".git")
    (tmp_path / "worktree").mkdir()
    (tmp_path / "worktree/.git").write_text("gitdir: elsewhere")

    assert sorted(places.hidden(tmp_path)) == [
        "/workspace/.git",
        "/workspace/deep/er/.git",
        "/workspace/other/.git",
    ]


def test_a_checkout_that_nobody_could_read_is_refused_with_the_next_step(tmp_path):
    tmp_path.chmod(0o700)

    with pytest.raises(CiPerfError, match=f"chmod o\\+rx {tmp_path}"):
        places.check_readable(tmp_path, NOBODY)


def test_a_checkout_is_read_by_everybody_or_by_its_owner(tmp_path):
    tmp_path.chmod(0o700)
    places.check_readable(tmp_path, User(uid=1000, gid=1000))
    tmp_path.chmod(0o755)
    places.check_readable(tmp_path, NOBODY)


def test_the_folder_of_git_is_hidden_where_there_is_one(tmp_path):
    assert places.hidden(tmp_path) == ()

    (tmp_path / ".git").write_text("gitdir: elsewhere")  # a worktree holds no tokens
    assert places.hidden(tmp_path) == ()

    (tmp_path / ".git").unlink()
    (tmp_path / ".git").mkdir()
    assert places.hidden(tmp_path) == ("/workspace/.git",)


@pytest.mark.parametrize(
    ("device", "variable", "found"),
    [
        ("cpu", "0,1", ()),
        ("cuda", None, ("all",)),
        ("cuda:1", "GPU-a, GPU-b", UUIDS),
        ("cuda", "3", ("3",)),
        ("cuda", "-1", ()),
        ("cuda", "", ()),
    ],
)
def test_a_container_sees_the_gpus_that_we_see(device, variable, found):
    environment = {} if variable is None else {"CUDA_VISIBLE_DEVICES": variable}

    assert places.visible(device, environment) == found


@pytest.mark.parametrize(("driver", "found"), [("there", ("all",)), ("nowhere", ())])
def test_gpus_are_looked_for_where_there_is_a_driver(monkeypatch, tmp_path, driver, found):
    (tmp_path / "there").touch()
    monkeypatch.setattr(places, "_DRIVERS", (tmp_path / driver,))

    assert places.visible("auto", {}) == found


@pytest.mark.parametrize(
    ("device", "gpus", "count", "variable", "found"),
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
def test_a_task_gets_its_own_gpus(device, gpus, count, variable, found):
    environment = {} if variable is None else {"CUDA_VISIBLE_DEVICES": variable}

    assert places.of_task(device, gpus, count, environment) == found
