"""Where a task finds its files inside, and which folders of the host get there."""

from pathlib import Path

import msgspec
import pytest

from ci_perf.launch.containers import inside
from ci_perf.launch.containers.inside import Folders, Mount
from ci_perf.model.task import Task
from tests.plans import a_planned

PACKAGE = Path("/site/ci_perf")
FOLDERS = Folders(out=Path("/t/out"), cache=Path("/t/cache"), own_data=Path("/t/data"))


def a_task(file="/repo/workloads/it.py", **more):
    workload = msgspec.structs.replace(a_planned("it"), file=file)
    found = {"workload": workload, "index": 0, "device": "cpu", "root": "/repo", "data_dir": "/d"}
    return Task(**{**found, **more})


def mounts(task=None, place=Path("/repo"), **more):
    folders = Folders(out=FOLDERS.out, cache=FOLDERS.cache, own_data=FOLDERS.own_data, **more)
    return {one.target: one for one in inside.mounts(task or a_task(), place, folders, PACKAGE)}


def test_a_workload_of_the_checkout_stays_where_it_is_in_it():
    spelled = inside.task(a_task())

    assert spelled.workload.file == "/workspace/workloads/it.py"
    assert (spelled.root, spelled.data_dir) == ("/workspace", "/data")


def test_a_workload_from_elsewhere_is_in_a_folder_of_its_own():
    outside = a_task("/site/workloads/it.py")

    assert inside.task(outside).workload.file == "/suite/it.py"
    assert mounts(outside)["/suite"] == Mount(source=Path("/site/workloads"), target="/suite")


@pytest.mark.parametrize("file", ["/repository/it.py", "/it.py"])
def test_a_folder_whose_name_begins_alike_is_elsewhere(file):
    assert inside.task(a_task(file)).workload.file == "/suite/it.py"


@pytest.mark.parametrize(
    ("device", "spelled"), [("cuda:2", "cuda:0"), ("cuda", "cuda:0"), ("cpu", "cpu")]
)
def test_gpus_are_counted_from_the_first_that_is_given(device, spelled):
    assert inside.task(a_task(device=device)).device == spelled


def test_what_is_known_of_the_gpus_and_of_paths_in_the_checkout_is_passed_on():
    outside = a_task(gpus=("GPU-1",), python_path=("src",), foreign_root="/base")
    spelled = inside.task(outside)

    assert (spelled.gpus, spelled.python_path) == (("GPU-1",), ("src",))
    assert spelled.foreign_root == ""  # it is not there


def test_turns_are_taken_in_a_folder_inside():
    assert inside.task(a_task(turns="/t/turns"), turns=True).turns == "/turns"
    assert inside.task(a_task()).turns == ""
    assert mounts(turns=Path("/t/turns"))["/turns"].writable


def test_a_task_sees_no_more_of_the_host_than_it_needs():
    found = mounts()

    assert set(found) == {"/opt/ci-perf/ci_perf", "/out", "/workspace", "/cache", "/data"}
    assert {at for at, one in found.items() if one.writable} == {"/out", "/cache", "/data"}


def test_a_copy_stands_in_for_a_checkout_that_setup_has_changed():
    found = mounts(place=Path("/t/copy"))["/workspace"]

    assert found == Mount(source=Path("/t/copy"), target="/workspace")


def test_data_that_somebody_has_given_is_not_written():
    assert mounts(data=Path("/sets"))["/data"] == Mount(source=Path("/sets"), target="/data")
    assert mounts()["/data"] == Mount(source=Path("/t/data"), target="/data", writable=True)


def test_checkpoints_are_written():
    assert mounts(checkpoints=Path("/c"))["/checkpoints"].writable
