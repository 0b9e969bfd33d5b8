"""What holds for every test."""

import os
import signal
import subprocess
import tempfile
from collections.abc import Generator
from pathlib import Path

import pytest
import pytest_timeout
from hypothesis import settings

from ci_perf.system import processes
from tests import browser as browsers
from tests import drivers, repositories
from tests.histories import beside
from tests.projects import Project
from tests.runs import BASE_COMMIT, SLOW, STEADY, a_measured

# Tests keep the machine busy: what they measure does not wait until they have ended.
for command in ("CHECK", "RUN", "FLEET_MEASURE"):
    os.environ[f"CI_PERF_{command}_WAIT"] = "0s"
# Tests of measuring need launches; those of same program turn it on again.
os.environ["CI_PERF_CHECK_ALL"] = os.environ["CI_PERF_RUN_ALL"] = "1"
# What is slower is not profiled; tests of explain ask for it.
os.environ["CI_PERF_CHECK_EXPLAIN"] = "0s"
# A measurement of a busy machine becomes a baseline all the same.
os.environ["CI_PERF_ACCEPT_FORCE"] = "1"
# torch knows by its flags what a CPU can do; otherwise each new cache compiles programs to try it.
os.environ["TORCHINDUCTOR_VEC_ISA_OK"] = "1"

# An example may take long because the machine is busy: no absolute time is asserted anywhere. CI
# draws the same examples each time: a rare one is found by who runs the tests by hand.
settings.register_profile("steady", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("steady")

# Tests of these folders run real processes by real clocks, so they are `slow`: `make test-all` runs
# them, and `make test` those that are a `story`. A busy machine can stop each of them for seconds.
# One that fails runs once more; the last lines of pytest name it as "rerun".
SLOW_FOLDERS = {"integration", "gpu", "e2e"}

# A shell starts background jobs (`make test &`) with SIGINT ignored; their children inherit that.
# The children of tests must be interrupted as they are by Ctrl-C on a terminal. nohup has them
# ignore that the terminal is gone.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.fixture
def lone_git(monkeypatch):
    """A git that knows nothing of the user."""
    for name, value in repositories.ALONE.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def use_tempdir(monkeypatch):
    """Return a function that chooses where temporary files lie; `None` is what TMPDIR says."""

    def use(path):
        # tempfile keeps its first answer for the whole process: TMPDIR alone comes too late, and
        # no argument leads through all that a launch starts.
        monkeypatch.setattr(tempfile, "tempdir", None if path is None else str(path))

    return use


@pytest.fixture
def project(tmp_path):
    """An empty folder, with a space in its name."""
    found = Project(tmp_path / "a project")
    found.root.mkdir()
    return found


@pytest.fixture
def judged(project):
    """Two runs of which the second is slower, as its pairs prove."""
    project.recorded("a.json", a_measured("w", *STEADY), commit=BASE_COMMIT)
    project.recorded("b.json", a_measured("w", *SLOW), **beside(2.0))
    return project


@pytest.fixture(scope="module")
def browser():
    if reason := browsers.missing():
        if os.environ.get("REQUIRE_BROWSER"):
            pytest.fail(f"REQUIRE_BROWSER is set, but {reason}")
        pytest.skip(reason)
    with browsers.browser() as started:
        yield started


@pytest.fixture(scope="session")
def nvml_library(tmp_path_factory):
    """The folder of a library with NVML's own C interface."""
    return drivers.build(tmp_path_factory.mktemp("nvml"))


@pytest.fixture
def driver(nvml_library, tmp_path):
    """A driver that answers as a test wants."""
    return drivers.Driver(nvml_library, tmp_path / "state")


def pytest_runtest_setup(item):
    """Limit the time of a second try, too; skip what needs a GPU where there is none."""
    if getattr(item, "execution_count", 1) > 1:  # a failure ends the clock of pytest-timeout
        settings = pytest_timeout.get_env_settings(item.config)
        item.ihook.pytest_timeout_set_timer(item=item, settings=settings)
    if item.get_closest_marker("gpu"):
        import torch

        if not torch.cuda.is_available():
            pytest.skip("a CUDA device is needed; `ci-perf doctor` says why there is none")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """Mark what is slow. One process has all tests of a file whose fixtures they share."""
    for item in items:
        if SLOW_FOLDERS & {*item.path.relative_to(Path(__file__).parent).parts}:
            item.add_marker(pytest.mark.flaky(reruns=1))
            if not item.get_closest_marker("story"):
                item.add_marker(pytest.mark.slow)
        fixtures = [ours for name in item.fixturenames for ours in defined(item, name)]
        is_grouped = any(map(item.get_closest_marker, ("container", "xdist_group")))
        if not is_grouped and any(ours.scope == "module" for ours in fixtures):
            item.add_marker(pytest.mark.xdist_group(item.location[0]))
    yield
    if config.getoption("loadgroup", default=False):
        for item in items:
            name_group(item)


def name_group(item):
    """Append the group to the id, where xdist looks for it: pytest 9.2 does not hear of what
    xdist 3.8 appends.
    """
    mark = item.get_closest_marker("xdist_group")
    if mark is not None and not item.nodeid.endswith(f"@{mark.args[0]}"):
        item._id = item._id.parse(f"{item.nodeid}@{mark.args[0]}")


def defined(item, name):
    """Return the definitions of a fixture; those of pytest itself are no matter."""
    return item._fixtureinfo.name2fixturedefs.get(name, ())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None]:
    """Kill what a test has started and not ended, if the test fails or is interrupted."""
    try:
        yield
    except BaseException:
        # pytest sets this variable; whatever fixtures have started carries another value.
        for pid in processes.find_carrying(
            "PYTEST_CURRENT_TEST", os.environ["PYTEST_CURRENT_TEST"]
        ):
            if pid != os.getpid():
                processes.kill(pid)
        raise


@pytest.fixture
def mounted(tmp_path):
    """Provide a folder that is a file system by itself, as a mount in a container is."""
    folder = tmp_path / "mounted"
    folder.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "none", folder], check=False)
    if done.returncode:
        pytest.skip("root may not mount here")
    yield folder
    subprocess.run(["umount", "--lazy", folder], check=True)
