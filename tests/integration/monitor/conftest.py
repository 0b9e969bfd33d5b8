"""A driver that says what a test wants, and a monitor beside a worker that a test leads."""

import os

import pytest

from ci_perf.launch import monitoring
from tests.watched import PYTHON, Sitting


@pytest.fixture
def folder(tmp_path):
    # Longer than the address of a socket may be.
    path = tmp_path / ("x" * 120)
    path.mkdir()
    return path


@pytest.fixture
def watch(folder):
    """Start a monitor; `gpus` are UUIDs."""

    def start(*gpus, hz=50.0, environment=(), python=PYTHON):
        return monitoring.beside(folder, gpus, hz, python, {**os.environ, **dict(environment)})

    return start


@pytest.fixture
def sitting(folder):
    started = []

    def start(**environment):
        started.append(Sitting(folder, environment))
        return started[-1]

    yield start
    for one in started:
        one.child.kill()
        one.child.wait()
