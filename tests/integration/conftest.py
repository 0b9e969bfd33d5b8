"""One launch of one workload, for real, and a driver of GPUs that says what a test wants."""

import msgspec
import pytest

from ci_perf.launch.local import LocalLauncher
from ci_perf.model.suite import PlannedWorkload
from ci_perf.model.task import Task
from tests import drivers
from tests.launches import QUICK


@pytest.fixture(scope="session")
def nvml_library(tmp_path_factory):
    """The folder of a library with NVML's own C interface."""
    return drivers.build(tmp_path_factory.mktemp("nvml"))


@pytest.fixture
def driver(nvml_library, tmp_path):
    """A driver that answers as a test wants."""
    return drivers.Driver(nvml_library, tmp_path / "state")


@pytest.fixture
def launch(tmp_path):
    """Launch a workload that consists of this source; return its result or trouble."""

    def launch_source(source, *, timeout_s=20.0, environment=None):
        file = tmp_path / "it.py"
        file.write_text(source)
        planned = PlannedWorkload(
            id="it",
            file=str(file),
            description="",
            parameters={"n": 1},
            protocol=msgspec.structs.replace(QUICK, timeout_s=timeout_s),
        )
        task = Task(
            workload=planned, index=0, device="cpu", root=str(tmp_path), data_dir=str(tmp_path)
        )
        return LocalLauncher(tmp_path, environment).launch(task)

    return launch_source


@pytest.fixture
def task(tmp_path):
    """Make a task of a workload that consists of this source, in a root of its own."""

    def make(name, source, **protocol):
        root = tmp_path / name
        root.mkdir(exist_ok=True)
        (root / "it.py").write_text(source)
        planned = PlannedWorkload(
            id="it",
            file=str(root / "it.py"),
            description="",
            parameters={},
            protocol=msgspec.structs.replace(QUICK, monitor_hz=0, **protocol),
        )
        return Task(workload=planned, index=0, device="cpu", root=str(root), data_dir=str(tmp_path))

    return make


@pytest.fixture
def pair(task, tmp_path):
    """Launch two sources as a resident pair; return both outcomes."""

    def launch(first, second, **protocol):
        return LocalLauncher(tmp_path).launch_pair(
            task("first", first, **protocol), task("second", second, **protocol)
        )

    return launch
