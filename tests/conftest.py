"""What holds for every test."""

import os
import signal
import tempfile
from collections.abc import Generator

import pytest
from hypothesis import settings

from ci_perf.system import processes

# Tests keep the machine busy: what they measure does not wait until they have ended.
os.environ["CI_PERF_CHECK_WAIT"] = os.environ["CI_PERF_RUN_WAIT"] = "0"
# Tests of measuring need launches; tests/integration/cli/test_same_program.py is about those that
# need none.
for command in ("CHECK", "RUN"):
    os.environ[f"CI_PERF_{command}_ALL"] = "1"
    os.environ[f"CI_PERF_{command}_RECORD"] = "0"
# And it becomes a baseline all the same.
os.environ["CI_PERF_ACCEPT_FORCE"] = "1"

# An example may take long because the machine is busy: no absolute time is asserted anywhere.
settings.register_profile("steady", deadline=None)
settings.load_profile("steady")

# A shell starts background jobs (`make test &`) with SIGINT ignored; their children inherit that.
# The children of tests must be interrupted as they are by Ctrl-C on a terminal.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def use_tempdir(monkeypatch):
    """Return a function that chooses where temporary files lie; `None` is what TMPDIR says."""

    def use(path):
        # tempfile keeps its first answer for the whole process: TMPDIR alone comes too late, and
        # no argument leads through all that a launch starts.
        monkeypatch.setattr(tempfile, "tempdir", None if path is None else str(path))

    return use


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None]:
    """Kill what a test has started and not ended, if the test fails or is interrupted."""
    try:
        yield
    except BaseException:
        # pytest sets this variable; whatever fixtures have started carries another value.
        for pid in processes.carrying("PYTEST_CURRENT_TEST", os.environ["PYTEST_CURRENT_TEST"]):
            if pid != os.getpid():
                processes.kill(pid)
        raise
