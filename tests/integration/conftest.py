"""One launch of one workload, for real."""

import pytest

from ci_perf.launch.local import LocalLauncher
from tests.launches import a_task


@pytest.fixture
def launch(tmp_path):
    """Launch a workload that consists of this source; return its result or trouble."""

    def launch_source(source, *, timeout_s=20.0, environment=None):
        file = tmp_path / "it.py"
        file.write_text(source)
        todo = a_task(file, protocol={"timeout_s": timeout_s}, workload={"parameters": {"n": 1}})
        return LocalLauncher(tmp_path, environment).launch(todo)

    return launch_source


@pytest.fixture
def task(tmp_path):
    """Make a task of a workload that consists of this source, in a root of its own."""

    def make(name, source, **protocol):
        file = tmp_path / name / "it.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(source)
        return a_task(file, protocol={"monitor_hz": 0, **protocol}, data_dir=str(tmp_path))

    return make


@pytest.fixture
def pair(task, tmp_path):
    """Launch two sources as a resident pair; return both outcomes."""

    def launch(first, second, **protocol):
        return LocalLauncher(tmp_path).launch_pair(
            task("first", first, **protocol), task("second", second, **protocol)
        )

    return launch
