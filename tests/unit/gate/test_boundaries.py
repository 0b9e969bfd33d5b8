"""What a checkout must not do where it is measured in containers."""

from pathlib import Path

import msgspec
import pytest

from ci_perf.errors import UsageError
from ci_perf.gate import boundaries
from tests.plans import a_plan

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
    boundaries.check_mounts(planned(checkout, checkout / "workloads/good.py"), WORKLOADS)


def test_a_workload_from_a_folder_that_its_owner_names_is_seen(checkout, tmp_path):
    boundaries.check_mounts(planned(checkout, tmp_path / "own/good.py"), tmp_path / "own")


def test_a_workload_that_is_a_link_out_of_the_checkout_is_refused(checkout, tmp_path):
    with pytest.raises(UsageError, match=r"found a link that leads to .*/secrets/key\.py"):
        boundaries.check_mounts(planned(checkout, tmp_path / "secrets/key.py"), WORKLOADS)


def test_a_folder_of_workloads_that_is_such_a_link_is_refused(checkout, tmp_path):
    (tmp_path / "secrets").mkdir()
    (checkout / "linked").symlink_to(tmp_path / "secrets")

    with pytest.raises(UsageError, match="found a link that leads to"):
        boundaries.check_mounts(planned(checkout, tmp_path / "secrets/key.py"), Path("linked"))


@pytest.mark.parametrize("place", ["machine", "home"])
def test_the_whole_of_a_machine_or_of_a_home_is_no_checkout(checkout, monkeypatch, place):
    monkeypatch.setenv("HOME", str(checkout))
    root = Path("/") if place == "machine" else checkout

    with pytest.raises(UsageError, match=f"found the whole of a {place}"):
        boundaries.check_mounts(planned(root, checkout / "workloads/good.py"), WORKLOADS)


def test_an_output_is_not_written_through_a_link_out_of_the_checkout(checkout, tmp_path):
    (checkout / "run.json").symlink_to(tmp_path / "authorized_keys")

    with pytest.raises(UsageError, match=r"run\.json: expected a file below .*authorized_keys"):
        boundaries.check_outputs([None, Path("run.json")])


def test_nor_through_a_folder_that_is_one(checkout, tmp_path):
    (checkout / "out").symlink_to(tmp_path)

    with pytest.raises(UsageError, match="expected a file below"):
        boundaries.check_outputs([checkout / "out/run.json"])


def test_outputs_elsewhere_and_links_within_are_no_matter(checkout, tmp_path):
    (checkout / "run.json").symlink_to(checkout / "results.json")

    boundaries.check_outputs([Path("run.json"), Path("../elsewhere.json"), tmp_path / "x.json"])
