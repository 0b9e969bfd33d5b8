"""Which GPUs a task in a container is given: by docker's --gpus, and by podman's CDI.

The engines' way is the real one up to the hook; what hooks give is a stand-in for the driver.
"""

import pytest

from ci_perf.model.task import TaskFailure
from tests.features.containers.helpers import benches

pytestmark = pytest.mark.container

# What the workload's own process sees, by the real pynvml, and what it is told to use.
PROBE = """
import os, sys
from pathlib import Path
def uuids():
    import pynvml
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        return type(error).__name__
    handles = map(pynvml.nvmlDeviceGetHandleByIndex, range(pynvml.nvmlDeviceGetCount()))
    return [pynvml.nvmlDeviceGetUUID(handle) for handle in handles]
task = json.loads(Path(sys.argv[1], "task.json").read_text())
report([uuids(), task["device"], os.environ.get("NVIDIA_VISIBLE_DEVICES")])
"""


@pytest.fixture(params=["docker", "podman"])
def gpus(request):
    return request.getfixturevalue(f"{request.param}_gpus")


@pytest.fixture
def bench(request, gpus, tmp_path):
    assert gpus.uuids
    which = request.node.callspec.params["gpus"]
    return benches.of(request, which, tmp_path, access="gpus" if which == "docker" else "cdi")


def test_a_task_is_given_its_gpus_and_no_other_and_counts_from_the_first(bench, gpus):
    one, _, other, _ = gpus.uuids

    assert bench.facts(PROBE, device="cuda:2", gpus=(other,))[:2] == [[other], "cuda:0"]
    both = bench.facts(PROBE, device="cuda", gpus=(one, other), world_size=2)
    assert both[:2] == [[one, other], "cuda:0"]


def test_a_task_on_the_cpu_is_given_none(bench):
    uuids, device, visible = bench.facts(PROBE)

    assert uuids == "NVMLError_LibraryNotFound"
    assert (device, visible) == ("cpu", "void")


def test_a_machine_is_described_with_the_gpus_that_its_owner_shows(bench, gpus, monkeypatch):
    """The image has no torch: the answer is a failure, and the hook tells what was asked for."""
    one, _, other, _ = gpus.uuids
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", f"{other},{one}")
    asked = len(gpus.asked())

    assert isinstance(bench.launcher.describe("cuda:0", 1, 1), TaskFailure)
    assert sorted(",".join(gpus.asked()[asked:]).split(",")) == sorted([one, other])
