"""How a container stopped, as docker 20.10 and podman 4.3 were seen to tell it."""

import dataclasses
import signal

import pytest

from ci_perf.launch.containers import running
from ci_perf.launch.containers.running import ContainerState

ENDED = ContainerState(
    began=True,
    code=0,
    oom_killed=False,
    error="",
    tail="",
    kernel_killed=False,
    ended_by_us=False,
)

TINI = "[FATAL tini (7)] exec python3 failed: No such file or directory\n"
CATATONIT = "ERROR (catatonit:6): failed to exec pid1: No such file or directory\n"
CATATONIT_FORK = (
    "ERROR (catatonit:1): failed to fork child: Resource temporarily unavailable\n"
    "ERROR (catatonit:1): failed to spawn pid1: Resource temporarily unavailable\n"
)


def ended(**more):
    return dataclasses.replace(ENDED, **more)


def refusal(engine, stopped):
    said = running.never_began(engine, stopped)
    assert said is not None
    return said


def memory(engine, stopped):
    said = running.out_of_memory(engine, stopped)
    assert said is not None
    return said


@pytest.mark.parametrize("code", [0, 1, 3, 126, 127, 137, 139, 143])
def test_a_worker_that_began_ends_as_it_likes(code):
    assert running.never_began("docker", ended(code=code, tail="some words\n")) is None


def test_docker_tells_why_a_container_never_began_in_its_state():
    error = (
        "failed to create shim task: OCI runtime create failed: runc create failed: unable to "
        'start container process: exec: "python3": executable file not found in $PATH: unknown'
    )

    found = refusal("docker", ended(began=False, code=127, error=error))

    assert 'failed: exec: "python3": executable file not found in $PATH; ' in found


def test_podman_tells_it_only_in_the_words_of_start():
    tail = f"Error: unable to start container {'a' * 64}: something new: OCI permission denied\n"

    found = refusal("podman", ended(began=False, code=0, tail=tail))

    assert found.startswith("`podman start` failed: something new; ")


@pytest.mark.parametrize(
    ("tail", "code", "meaning"),
    [
        (TINI, 127, "exec python3 failed: No such file"),
        (TINI.replace("No such file or directory", "Permission denied"), 126, "Permission denied"),
        (TINI.replace("No such file or directory", "Exec format error"), 1, "Exec format error"),
        (CATATONIT, 1, "failed to exec pid1: No such file"),
        (CATATONIT_FORK, 1, "Resource temporarily unavailable"),
        ("exec /usr/bin/python3: exec format error\n", 1, "exec format error"),
    ],
)
def test_an_init_that_cannot_start_the_worker_is_understood(tail, code, meaning):
    assert meaning in refusal("docker", ended(code=code, tail=tail))


def test_a_workload_that_prints_words_of_an_init_is_not_believed():
    tail = f"Traceback (most recent call last):\n{TINI}"

    assert running.never_began("docker", ended(code=1, tail=tail)) is None


def test_an_image_whose_python_is_too_old_is_named():
    tail = "Unknown option: -P\nusage: python3 [option] ... [-c cmd | -m mod | file | -] [arg]\n"

    found = running.never_began("docker", ended(code=2, tail=tail)) or ""

    assert "Python 3.11 or newer" in found


LACKING = """\
Traceback (most recent call last):
  File "<frozen runpy>", line 198, in _run_module_as_main
  File "/opt/ci-perf/ci_perf/files.py", line 9, in <module>
    import msgspec
ModuleNotFoundError: No module named 'msgspec'
"""


def test_an_image_that_lacks_what_every_worker_imports_is_named():
    found = running.never_began("docker", ended(code=1, tail=LACKING)) or ""

    assert "the package msgspec" in found
    assert "install what workers import" in found


@pytest.mark.parametrize(
    "tail",
    [
        f"some words of a workload\n{LACKING}",
        LACKING.replace("<frozen runpy>", "/workspace/it.py"),
        f"{LACKING}more words\n",
    ],
)
def test_what_a_workload_cannot_import_is_its_own_affair(tail):
    assert running.never_began("docker", ended(code=1, tail=tail)) is None


def test_docker_knows_when_memory_ran_out():
    assert "memory ran out" in memory("docker", ended(code=137, oom_killed=True))


def test_a_process_below_the_worker_may_have_been_the_one():
    assert "memory ran out" in memory("docker", ended(code=3, oom_killed=True))


def test_podman_does_not_know_and_the_kernel_does():
    killed = ended(code=137, kernel_killed=True)

    assert "most likely" in memory("podman", killed)


@pytest.mark.parametrize(
    "killed",
    [
        ended(code=137),
        ended(code=137, kernel_killed=True, ended_by_us=True),
        ended(code=1, kernel_killed=True),
    ],
)
def test_a_container_that_was_killed_otherwise_was_not_out_of_memory(killed):
    assert running.out_of_memory("podman", killed) is None


def test_docker_is_believed_when_it_says_no():
    assert running.out_of_memory("docker", ended(code=137, kernel_killed=True)) is None


@pytest.mark.parametrize(
    ("code", "as_child"),
    [
        (0, 0),
        (1, 1),
        (127, 127),
        (128, 128),
        (137, -signal.SIGKILL),
        (139, -signal.SIGSEGV),
        (143, -signal.SIGTERM),
        (255, 255),
    ],
)
def test_codes_of_signals_become_signals(code, as_child):
    assert running.signal_code(code) == as_child
