"""How a container stopped, as docker 20.10 and podman 4.3 were seen to tell it."""

import signal

import pytest

from ci_perf.features.containers.launch import running
from ci_perf.features.containers.launch.running import ContainerState
from ci_perf.system.child import Ended

TINI = "[FATAL tini (7)] exec python3 failed: No such file or directory\n"
CATATONIT = "ERROR (catatonit:6): failed to exec pid1: No such file or directory\n"
CATATONIT_FORK = (
    "ERROR (catatonit:1): failed to fork child: Resource temporarily unavailable\n"
    "ERROR (catatonit:1): failed to spawn pid1: Resource temporarily unavailable\n"
)
NOT_CREATED = (
    "failed to create shim task: OCI runtime create failed: runc create failed: unable to "
    'start container process: exec: "python3": executable file not found in $PATH: unknown'
)
PODMAN = f"Error: unable to start container {'a' * 64}: something new: OCI permission denied\n"
TOO_OLD = "Unknown option: -P\nusage: python3 [option] ... [-c cmd | -m mod | file | -] [arg]\n"
LACKING = """\
Traceback (most recent call last):
  File "<frozen runpy>", line 198, in _run_module_as_main
  File "/opt/ci-perf/ci_perf/files.py", line 9, in <module>
    import msgspec
ModuleNotFoundError: No module named 'msgspec'
"""


def exited(code=1, status="exited", **more):
    return ContainerState(status=status, exit_code=code, **more)


@pytest.mark.parametrize("code", [0, 1, 3, 126, 127, 137, 139, 143])
def test_a_worker_that_began_ends_as_it_likes(code):
    assert running.never_began("docker", exited(code), "some words\n") == ""


@pytest.mark.parametrize(
    ("state", "tail", "words"),
    [
        (
            exited(127, "created", error=NOT_CREATED),
            "",
            '`docker start` failed: exec: "python3": executable file not found in $PATH; ',
        ),
        (exited(0, "created"), PODMAN, "`docker start` failed: something new; "),
        (exited(127), TINI, "exec python3 failed: No such file"),
        (exited(126), TINI.replace("No such file or directory", "Permission denied"), "Permission"),
        (exited(1), TINI.replace("No such file or directory", "Exec format error"), "Exec format"),
        (exited(1), CATATONIT, "failed to exec pid1: No such file"),
        (exited(1), CATATONIT_FORK, "Resource temporarily unavailable"),
        (exited(1), "exec /usr/bin/python3: exec format error\n", "exec format error"),
        (exited(2), TOO_OLD, "expected Python 3.11 or newer as `python3`"),
        (exited(1), LACKING, "expected the package msgspec for its `python3`, found none; install"),
    ],
)
def test_a_worker_that_never_began_says_why(state, tail, words):
    assert words in running.never_began("docker", state, tail)


@pytest.mark.parametrize(
    "tail",
    [
        f"Traceback (most recent call last):\n{TINI}",
        f"some words of a workload\n{LACKING}",
        LACKING.replace("<frozen runpy>", "/workspace/it.py"),
        f"{LACKING}more words\n",
    ],
)
def test_a_workload_that_prints_such_words_is_not_believed(tail):
    assert running.never_began("docker", exited(), tail) == ""


@pytest.mark.parametrize(
    ("engine", "state", "timed_out", "has_killed", "words"),
    [
        ("docker", exited(137, oom_killed=True), False, False, "memory ran out (`memory`"),
        ("docker", exited(3, oom_killed=True), False, False, "memory ran out (`memory`"),
        ("docker", exited(137), False, True, ""),
        ("podman", exited(137), False, True, "memory ran out, most likely"),
        ("podman", exited(137), False, False, ""),
        ("podman", exited(137), True, True, ""),
        ("podman", exited(1), False, True, ""),
    ],
)
def test_docker_knows_when_memory_ran_out_and_for_podman_the_kernel_does(
    engine, state, timed_out, has_killed, words
):
    ended = Ended(code=0, timed_out=timed_out, tail="")

    found = running.out_of_memory(engine, state, ended, has_killed=has_killed)

    assert words in found
    assert bool(found) == bool(words)


@pytest.mark.parametrize(
    ("code", "as_child"),
    [
        *((code, code) for code in (0, 1, 127, 128, 255)),
        *((128 + one, -one) for one in (signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM)),
    ],
)
def test_codes_of_signals_become_signals(code, as_child):
    assert running.signal_code(code) == as_child
