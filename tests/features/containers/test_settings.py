"""Runners before any engine is asked: what a checkout must not do, and folders of data."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from ci_perf.errors import UsageError
from ci_perf.features.containers import settings
from ci_perf.features.containers.settings import KEYS, Choice
from ci_perf.gate.runners import Runner
from tests.plans import a_plan

WORKLOADS = Path("workloads")


# Each key said once, as a person says it, and what it becomes.
SAID: dict[str, tuple[str, Any]] = {
    "image": ("app@sha256:1", "app@sha256:1"),
    "allow-image": ("registry.example/team", ("registry.example/team",)),
    "allow-unpinned": ("true", True),
    "gpu-access": ("cdi", "cdi"),
    "memory": ("4g", "4g"),
    "shm-size": ("64m", "64m"),
    "tmp-size": ("512k", "512k"),
    "pids": ("64", 64),
    "cpus": ("0-3,8", "0-3,8"),
    "ulimit": ("memlock=-1:-1", ("memlock=-1:-1",)),
}


def read(*words):
    return settings.read(Runner(kind="podman", container=words))


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    root = tmp_path / "checkout"
    (root / "workloads").mkdir(parents=True)
    (root / "workloads/good.py").touch()
    monkeypatch.chdir(root)
    return root


def planned(root, file):
    plan = a_plan("one")
    one = msgspec.structs.replace(plan.workloads[0], file=str(file))
    return msgspec.structs.replace(plan, root=str(root), workloads=(one,))


def test_a_workload_of_the_checkout_is_seen(checkout):
    settings.check_mounts(planned(checkout, checkout / "workloads/good.py"), WORKLOADS)


def test_a_workload_from_a_folder_that_its_owner_names_is_seen(checkout, tmp_path):
    settings.check_mounts(planned(checkout, tmp_path / "own/good.py"), tmp_path / "own")


def test_a_workload_that_is_a_link_out_of_the_checkout_is_refused(checkout, tmp_path):
    with pytest.raises(UsageError, match=r"found a link that leads to .*/secrets/key\.py"):
        settings.check_mounts(planned(checkout, tmp_path / "secrets/key.py"), WORKLOADS)


def test_a_folder_of_workloads_that_is_such_a_link_is_refused(checkout, tmp_path):
    (tmp_path / "secrets").mkdir()
    (checkout / "linked").symlink_to(tmp_path / "secrets")

    with pytest.raises(UsageError, match="found a link that leads to"):
        settings.check_mounts(planned(checkout, tmp_path / "secrets/key.py"), Path("linked"))


@pytest.mark.parametrize("place", ["machine", "home"])
def test_the_whole_of_a_machine_or_of_a_home_is_no_checkout(checkout, monkeypatch, place):
    monkeypatch.setenv("HOME", str(checkout))
    root = Path("/") if place == "machine" else checkout

    with pytest.raises(UsageError, match=f"found the whole {place}"):
        settings.check_mounts(planned(root, checkout / "workloads/good.py"), WORKLOADS)


def test_a_folder_of_data_that_is_not_there_is_told_and_no_mistake(monkeypatch, tmp_path):
    monkeypatch.setenv("CI_PERF_DATA_DIR", str(tmp_path / "typo"))

    said = []

    assert settings._data(said.append) is None
    assert "typo, found none: /data is an empty folder of this run" in said[0]


def test_a_folder_of_data_of_the_machine_is_taken(monkeypatch, tmp_path):
    monkeypatch.setenv("CI_PERF_DATA_DIR", str(tmp_path))

    assert settings._data(print) == tmp_path


@pytest.mark.parametrize("key", SAID)
def test_a_word_becomes_a_field(key):
    text, value = SAID[key]

    assert read(f"{key}={text}") == Choice(engine="podman", **{KEYS[key]: value})


def test_folders_are_named_in_full_and_have_to_exist(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sets").mkdir()

    chosen = read("data=sets", "checkpoints=.")

    assert (chosen.data, chosen.checkpoints) == (tmp_path / "sets", tmp_path)
    with pytest.raises(
        UsageError, match=r"--container data=.*/nowhere: expected a folder, found none"
    ):
        read("data=nowhere")


@pytest.mark.parametrize(
    ("pair", "said"),
    [
        ("memory=4x", "--container memory: expected a size such as 32g or 512m, found '4x'"),
        ("memory=4G", "--container memory: expected a size such as 32g or 512m, found '4G'"),
        ("memory=0g", "--container memory: expected a size such as 32g or 512m, found '0g'"),
        ("shm-size=-1g", "--container shm-size: expected a size"),
        ("tmp-size=1g,exec", "--container tmp-size: expected a size"),
        ("tmp-size=", "--container: expected KEY=VALUE with one of the keys image, allow-image,"),
        ("disk=1g", "--container: expected KEY=VALUE with one of the keys image, allow-image,"),
        ("allow-unpinned", "--container: expected KEY=VALUE with one of the keys image,"),
        ("allow-unpinned=yes", "--container allow-unpinned: expected true or false, found 'yes'"),
        ("gpu-access=none", "--container gpu-access: expected "),
        ("pids=15", "--container pids: expected a number between 16 and 4194304, found '15'"),
        ("pids=many", "--container pids: expected a number between 16 and 4194304, found 'many'"),
        ("cpus=3-", "--container cpus: expected numbers of cores"),
        ("cpus=0 --privileged", "--container cpus: expected numbers of cores"),
        ("data=nowhere", "--container data="),
    ],
)
def test_a_value_that_fits_no_container_is_refused_by_its_key(pair, said):
    with pytest.raises(UsageError) as caught:
        read(pair)

    assert str(caught.value).startswith(said)
    assert pair.partition("=")[2] in str(caught.value)
