"""A command locks the GPUs that it may use, and its baselines are of them."""

import json
from pathlib import Path

import pytest

from ci_perf.errors import ExitCode
from ci_perf.model.comparison import Code, Comparison
from ci_perf.system import files, lock
from tests import drivers, repositories
from tests.processes import run_python
from tests.projects import Project

ASK = """
import json, sys
from ci_perf.measuring import environment_probe
try:
    asked = {"commands": sys.argv[1] == "commands", "load": lambda: None}
    found = environment_probe.describe("cpu", 1, **asked)
    print(json.dumps([found.environment.hard.gpus, *found.locks]))
except environment_probe.DeviceError as error:
    print(json.dumps([str(error)]))
"""
H200, L4, SECOND = "NVIDIA H200", "NVIDIA L4", "GPU-1111"


def describe(driver, *, has="commands", **variables):
    """Return the GPUs by their models, and the locks."""
    environment = {**driver.environment, **variables}
    return json.loads(run_python("-P", "-c", ASK, has, **environment).stdout)


def test_a_command_locks_every_gpu_that_it_sees(driver):
    assert describe(driver) == [H200, "cpu", drivers.UUID]
    driver.says(count=2, **{"1.uuid": SECOND})
    assert describe(driver) == [f"{H200} x2", "cpu", drivers.UUID, SECOND]
    driver.says(**{"1.name": L4})
    assert describe(driver) == [f"{H200}, {L4}", "cpu", drivers.UUID, SECOND]


def test_a_workload_on_the_cpu_beside_a_gpu_is_of_the_cpu(driver):
    assert describe(driver, has="") == ["", "cpu"]


@pytest.mark.parametrize(
    ("visible", "seen"),
    [
        ("", []),
        ("-1", []),
        ("NoDevFiles", []),
        ("1", [SECOND]),
        ("1, 0", [SECOND, drivers.UUID]),
        ("0,7,1", [drivers.UUID]),  # CUDA stops at what it does not know
        ("GPU-11", [SECOND]),
        ("0,GPU-0000", [drivers.UUID]),
    ],
)
def test_cuda_visible_devices_says_which_gpus_a_command_sees(driver, visible, seen):
    driver.says(count=2, **{"1.uuid": SECOND})

    gpus, *locks = describe(driver, CUDA_VISIBLE_DEVICES=visible)

    assert locks == ["cpu", *seen]
    assert gpus == ("", H200, f"{H200} x2")[len(seen)]


def test_a_number_is_refused_where_cuda_may_count_otherwise(driver):
    driver.says(count=2, **{"1.uuid": SECOND, "1.name": L4})

    (error,) = describe(driver, CUDA_VISIBLE_DEVICES="1")
    by_bus = describe(driver, CUDA_VISIBLE_DEVICES="1", CUDA_DEVICE_ORDER="PCI_BUS_ID")

    assert f"CUDA_DEVICE_ORDER=PCI_BUS_ID, found numbers: of {H200} and {L4}" in error
    assert by_bus == [L4, "cpu", SECOND]
    assert describe(driver, CUDA_VISIBLE_DEVICES=SECOND) == [L4, "cpu", SECOND]


def test_a_divided_gpu_is_its_instances(driver):
    driver.says(count=3, **{"0.mig": 1, "1.uuid": "MIG-a", "2.uuid": "MIG-b"})
    driver.says(**{"1.name": f"{H200} MIG 1g.18gb", "2.name": f"{H200} MIG 1g.18gb"})

    assert describe(driver) == [f"{H200} MIG 1g.18gb x2", "cpu", "MIG-a", "MIG-b"]
    one = describe(driver, CUDA_VISIBLE_DEVICES="MIG-b")
    assert one == [f"{H200} MIG 1g.18gb", "cpu", "MIG-b"]
    whole = describe(driver, CUDA_VISIBLE_DEVICES=drivers.UUID)
    assert whole[1:] == ["cpu", "MIG-a", "MIG-b"]


def test_a_driver_that_is_not_loaded_has_no_gpus(driver):
    driver.says(fail={"nvmlInitWithFlags": drivers.DRIVER_NOT_LOADED})

    assert describe(driver) == ["", "cpu"]


SUITE = """
schema_version = 1
[suites.smoke]
device = "cpu"
canaries = false
[[suites.smoke.commands]]
name = "command"
command = "sleep 0.05"
protocol = { processes = 1, timed_min_s = 0.0, timed_max_s = 0.2, memory_steps = 1 }
"""


@pytest.fixture
def project(tmp_path):
    git = repositories.init(tmp_path / "project")
    (git.root / "workloads").mkdir()
    (git.root / "workloads/suite.toml").write_text(SUITE)
    git.ask("add", "--all")
    git.commit()
    return Project(git.root)


def test_two_models_of_gpu_behind_one_cpu_share_no_baseline(project, driver):
    def judge():
        done = project.run(
            *("check", "--comparison", "c.json", "--wait", "0s"), **driver.environment
        )
        rows = files.read(project.root / "c.json", Comparison).rows
        return {row.code for row in rows}, done

    codes, _ = judge()
    assert codes == {Code.NEW}
    done = project.run("accept", "run.json", "--reason", "x")
    assert done.code == ExitCode.OK, done.err
    (folder,) = (project.root / "baselines").iterdir()
    codes, _ = judge()
    assert not codes & {Code.NEW, Code.NOT_COMPARABLE}
    driver.says(name=L4)
    codes, done = judge()

    assert folder.name.endswith("-cores-nvidia-h200")
    assert codes == {Code.NOT_COMPARABLE}
    assert f"another machine: gpus: {H200} → {L4}" in done.out + done.err


def test_a_command_waits_for_a_workload_on_the_gpu(project, driver):
    with lock.hold_devices(
        [drivers.UUID],
        "a run on the GPU",
        where=Path(project.locks["CI_PERF_LOCK_DIR"]),
        timeout_s=0,
        waiting=lambda *_: None,
    ):
        done = project.run("run", "--wait", "0s", **driver.environment)

    assert done.code == ExitCode.NO_ANSWER
    assert f"{drivers.UUID} to become free" in done.err
    assert "a run on the GPU" in done.err
