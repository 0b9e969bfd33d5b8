"""Runners before any engine is asked: what a checkout must not do, and folders of data."""

from pathlib import Path

import msgspec
import pytest

from ci_perf.errors import UsageError
from ci_perf.gate import runners
from ci_perf.gate.runners import Runner
from tests.plans import a_plan

DOCKER = Runner(kind="docker")
WORKLOADS = Path("workloads")


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
    runners.check_mounts(planned(checkout, checkout / "workloads/good.py"), WORKLOADS)


def test_a_workload_from_a_folder_that_its_owner_names_is_seen(checkout, tmp_path):
    runners.check_mounts(planned(checkout, tmp_path / "own/good.py"), tmp_path / "own")


def test_a_workload_that_is_a_link_out_of_the_checkout_is_refused(checkout, tmp_path):
    with pytest.raises(UsageError, match=r"found a link that leads to .*/secrets/key\.py"):
        runners.check_mounts(planned(checkout, tmp_path / "secrets/key.py"), WORKLOADS)


def test_a_folder_of_workloads_that_is_such_a_link_is_refused(checkout, tmp_path):
    (tmp_path / "secrets").mkdir()
    (checkout / "linked").symlink_to(tmp_path / "secrets")

    with pytest.raises(UsageError, match="found a link that leads to"):
        runners.check_mounts(planned(checkout, tmp_path / "secrets/key.py"), Path("linked"))


@pytest.mark.parametrize("place", ["machine", "home"])
def test_the_whole_of_a_machine_or_of_a_home_is_no_checkout(checkout, monkeypatch, place):
    monkeypatch.setenv("HOME", str(checkout))
    root = Path("/") if place == "machine" else checkout

    with pytest.raises(UsageError, match=f"found the whole of a {place}"):
        runners.check_mounts(planned(root, checkout / "workloads/good.py"), WORKLOADS)


def test_what_only_a_container_obeys_is_refused_without_one():
    with pytest.raises(UsageError, match="--container memory: expected only with a container"):
        runners.check_local(Runner(memory="4g"))

    runners.check_local(Runner(kind="docker", memory="4g"))


def test_a_folder_that_a_container_is_given_exists(tmp_path):
    with pytest.raises(
        UsageError, match=r"--container data=.*/sets: expected a folder, found none"
    ):
        runners.check(Runner(kind="docker", data=tmp_path / "sets"))


def test_a_folder_of_data_that_is_not_there_is_told_and_no_mistake(monkeypatch, tmp_path):
    monkeypatch.setenv("CI_PERF_DATA_DIR", str(tmp_path / "typo"))

    said = []

    assert runners._data(said.append) is None
    assert "typo, found none: /data is an empty folder of this run" in said[0]


def test_a_folder_of_data_of_the_machine_is_taken(monkeypatch, tmp_path):
    monkeypatch.setenv("CI_PERF_DATA_DIR", str(tmp_path))

    assert runners._data(print) == tmp_path
