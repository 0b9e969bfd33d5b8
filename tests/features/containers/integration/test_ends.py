"""How containers end: by memory, by time, by signals, or before they begin. Nothing is left."""

import itertools
import os
import signal
from pathlib import Path

import msgspec
import pytest

from ci_perf.model.process import Phase
from ci_perf.model.task import TaskFailure
from ci_perf.system import child, processes
from tests.features.containers.helpers import benches, images, keeper, roots
from tests.features.containers.helpers.benches import BOTH, SMALL, Bench
from tests.launches import BUILD, GOOD, HEAD, failure_of, result_of
from tests.processes import wait_until
from tests.projects import SLOW_STEP

pytestmark = pytest.mark.container

NUMBERS = itertools.count(1)
# Hangs within a step, with all that it has started.
HANGING = """
import signal, subprocess, time
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
for environment in (None, {{}}):
    subprocess.Popen(["sleep", "{seconds}"], env=environment, start_new_session=True)
def step():
    time.sleep({seconds})
"""


def test_a_limit_that_is_too_small_to_describe_the_machine_is_named(request, tmp_path):
    limits = msgspec.structs.replace(SMALL, memory="8m")
    bench = benches.of(request, "docker", tmp_path, limits=limits)

    failure = bench.launcher.describe("cpu", 1, 1)

    assert isinstance(failure, TaskFailure)
    assert "the container's memory ran out" in failure.reason
    assert bench.left() == []


def test_who_waits_for_a_container_and_is_killed_does_not_make_it_end_well(bench):
    """It was the engine's client that was killed; the container went on."""
    killed = []

    def once_started():
        waiting = [one for one in processes.below(os.getpid()) if is_client(one.pid)]
        if waiting and not killed:
            killed.append(waiting[0].pid)
            wait_until(lambda: bench.engine.ask("ps", "--quiet").out)
            os.kill(waiting[0].pid, signal.SIGKILL)
        return False

    task = bench.task(HEAD + SLOW_STEP + BUILD)
    failure = failure_of(bench.launcher.launch(task, once_started))

    assert killed
    assert "expected to have ended, found it running" in failure.reason
    assert bench.left() == []


def is_client(pid):
    return b"start\0--attach" in Path(f"/proc/{pid}/cmdline").read_bytes()


@pytest.fixture
def seconds():
    """How long something sleeps: nobody else sleeps as long."""
    return f"612.{os.getpid()}{next(NUMBERS):03}"


def sleepers(seconds):
    """Return the processes of this host that sleep so long."""
    lines = [keeper.arguments(path) for path in Path("/proc").glob("[0-9]*")]
    return [line for line in lines if line.split("\0")[:2] == ["sleep", seconds]]


@BOTH
def test_memory_that_runs_out_is_named_and_the_next_task_is_measured(request, which, tmp_path):
    limits = msgspec.structs.replace(SMALL, memory="128m")
    bench = benches.of(request, which, tmp_path, limits=limits)
    hog = "def step():\n    return len(bytearray(2**30))\n"
    failure = failure_of(bench.launch(HEAD + hog + BUILD))

    assert failure.phase is Phase.FIRST_STEP
    assert "SIGKILL" in failure.reason
    assert "the container's memory ran out" in failure.reason
    assert "`memory` in [container]" in failure.reason
    assert failure.exhausted is not None
    assert failure.exhausted.kind == "host"
    assert result_of(bench.launch(GOOD))


def test_a_task_that_hangs_says_where_and_ends_with_all_it_has_started(bench, seconds):
    source = HEAD + HANGING.format(seconds=seconds) + BUILD
    failure = failure_of(bench.launch(source, protocol={"timeout_s": 3}))

    assert failure.phase is Phase.FIRST_STEP
    assert "no result within the time limit of 3 s" in failure.reason
    assert 'it.py", line 9 in step' in failure.output
    assert bench.left() == []
    assert sleepers(seconds) == []


def test_what_a_task_leaves_running_ends_with_it(bench, seconds):
    daemon = HEAD + HANGING.format(seconds=seconds) + "def step():\n    pass\n" + BUILD

    assert result_of(bench.launch(daemon))
    assert sleepers(seconds) == []


def test_an_interrupt_ends_a_task(bench, seconds):
    source = HEAD + HANGING.format(seconds=seconds) + BUILD

    with pytest.raises(KeyboardInterrupt):
        bench.launcher.launch(bench.task(source), lambda: bool(sleepers(seconds)))

    assert bench.left() == []
    assert sleepers(seconds) == []


@pytest.mark.parametrize(
    ("end", "reason", "output"),
    [
        ("ctypes.string_at(0)", "SIGSEGV in phase first_step; the stack", "in step"),
        (
            "os.kill(os.getpid(), signal.SIGKILL)",
            "SIGKILL in phase first_step; another",
            "",
        ),
    ],
)
def test_an_end_is_told_as_that_of_a_child(bench, end, reason, output):
    source = f"import ctypes, os, signal\ndef step():\n    {end}\n"
    failure = failure_of(bench.launch(HEAD + source + BUILD))

    assert failure.phase is Phase.FIRST_STEP
    assert reason in failure.reason
    assert output in failure.output
    assert failure.exhausted is None


def test_of_much_output_the_end_is_kept(bench):
    talk = "for _ in range(20):\n    print('x' * 2**20)\nprint('the last line')\n1 / 0\n"
    failure = failure_of(bench.launch(talk))

    assert len(failure.output) <= child.TAIL_BYTES
    # Which of two streams comes first through an engine is left to chance: the error is no measure.
    assert "the last line" in failure.output
    assert "ZeroDivisionError" in failure.reason


def test_a_link_in_the_place_of_a_result_is_not_followed(bench, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text('{"phase": "timed", "reason": "a secret of the host"}')
    source = f"""
import os, sys
for name in ("result.json", "phase"):
    it = os.path.join(sys.argv[1], name)
    if os.path.exists(it):
        os.unlink(it)
    os.symlink({str(secret)!r}, it)
os._exit(0)
"""
    failure = failure_of(bench.launch(source))

    assert "secret" not in failure.reason
    assert secret.stat().st_uid == os.getuid()
    assert "invalid result: " in failure.reason


@pytest.fixture
def image_without_python(request, which, tmp_path):
    engine = request.getfixturevalue(which)
    image = images.import_into(engine, roots.of_shell(), "LABEL of=test_ends")
    return Bench(tmp_path, engine, image)


@BOTH
def test_an_image_without_python_and_one_that_is_gone_are_named(image_without_python):
    failure = failure_of(image_without_python.launch(GOOD))

    assert failure.phase is Phase.LAUNCH
    assert "start` failed: " in failure.reason
    assert "python3" in failure.reason or "failed to exec pid1" in failure.reason
    assert image_without_python.left() == []

    bench = image_without_python
    bench.engine.must("rmi", "--force", bench.image.config)
    gone = failure_of(bench.launch(GOOD))

    assert gone.phase is Phase.LAUNCH
    assert f"`{bench.engine.name} create`: expected the image, found none: " in gone.reason


def test_an_image_that_lacks_what_a_worker_imports_is_named(docker, tmp_path):
    image = images.import_into(docker, roots.of_python())
    failure = failure_of(Bench(tmp_path, docker, image).launch(GOOD))
    docker.must("rmi", "--force", image)

    assert failure.phase is Phase.LAUNCH
    assert "expected the package msgspec" in failure.reason


@pytest.mark.skipif(os.geteuid() != 0, reason="others are themselves inside")
def test_a_checkout_that_only_root_can_read_is_named(bench):
    bench.root.chmod(0o700)
    failure = failure_of(bench.launch(GOOD))

    assert failure.phase is Phase.LAUNCH
    assert f"chmod o+rx {bench.root}" in failure.reason
