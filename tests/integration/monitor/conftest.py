"""A driver that says what a test wants, and a monitor beside a worker that a test leads."""

import os

import pytest

from ci_perf.launch import monitoring
from tests.watched import PYTHON, WatchedWorker


@pytest.fixture
def folder(tmp_path):
    # Longer than the address of a socket may be.
    path = tmp_path / ("x" * 120)
    path.mkdir()
    return path


@pytest.fixture
def watch(folder):
    """Start a monitor; `gpus` are UUIDs."""

    def start(*gpus, hz=50.0, environment=(), python=PYTHON, **more):
        ours = {**os.environ, **dict(environment)}
        return monitoring.watch_host(folder, gpus, hz, python, ours, **more)

    return start


@pytest.fixture
def worker_under_watch(folder):
    started = []

    def start(**environment):
        started.append(WatchedWorker(folder, environment))
        return started[-1]

    yield start
    for worker in started:
        worker.child.kill()
        worker.child.wait()
