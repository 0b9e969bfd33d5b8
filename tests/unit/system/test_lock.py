import multiprocessing
import os
import resource
import signal
import socket
from pathlib import Path

import pytest

from ci_perf.errors import BusyError, CannotWriteError
from ci_perf.system import lock
from tests.clocks import Clock

SPAWN = multiprocessing.get_context("spawn")


def held(where, *devices, owner="run b", timeout_s=0.0, waiting=lambda *_: None, **world):
    return lock.hold_devices(
        devices, owner, where=where, timeout_s=timeout_s, waiting=waiting, **world
    )


def hold(where, devices, ready, done):
    """Hold locks in another process until told, or killed."""
    with held(Path(where), *devices, owner="run a"):
        ready.set()
        done.wait(60)


@pytest.fixture
def holder(tmp_path):
    """Start another process that holds these devices."""
    started = []

    def start(*devices):
        ready, done = SPAWN.Event(), SPAWN.Event()
        process = SPAWN.Process(target=hold, args=(str(tmp_path), devices, ready, done))
        process.start()
        started.append((process, done))
        assert ready.wait(60)
        return process, done

    yield start
    for process, done in started:
        if process.is_alive():  # an Event waits for ever for a listener that was killed
            done.set()
        process.join(60)


def test_a_free_device_is_held_and_free_again(tmp_path):
    for _ in range(2):
        with held(tmp_path, "GPU-1", "GPU-0"):
            assert (tmp_path / "GPU-0.lock").read_text() == "run b\n"


def test_a_device_is_held_also_where_no_byte_can_be_written(tmp_path):
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))
        with held(tmp_path, "GPU-0"):
            text = (tmp_path / "GPU-0.lock").read_text()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)

    assert text == ""


def test_who_waits_is_told_the_owner_and_gives_up_in_time(tmp_path, holder):
    holder("GPU-0")
    told, clock = [], Clock()

    def sleep(seconds):
        clock.now += seconds

    with (
        pytest.raises(
            BusyError, match=r"GPU-0 to become free .* 5 s.*held by run a.*CI_PERF_LOCK_DIR"
        ),
        held(
            tmp_path,
            "GPU-0",
            timeout_s=5,
            waiting=lambda *said: told.append(said),
            clock=clock,
            sleep=sleep,
        ),
    ):
        pytest.fail("held twice")
    assert {said[:2] for said in told} == {("GPU-0", "run a")}
    assert told[0][2:] == (0.0, 5)
    assert told[-1][2:] == (pytest.approx(5, abs=1), 5)
    assert clock.now == pytest.approx(5, abs=1)


def test_a_device_is_held_as_soon_as_it_is_free(tmp_path, holder):
    process, done = holder("GPU-0")

    def release(*_):
        done.set()
        process.join(60)

    with held(tmp_path, "GPU-0", timeout_s=60, waiting=release):
        pass


def test_a_killed_owner_holds_nothing(tmp_path, holder):
    process, _ = holder("GPU-0")

    os.kill(process.pid, signal.SIGKILL)
    process.join(60)

    with held(tmp_path, "GPU-0"):
        pass


def test_another_device_is_not_waited_for(tmp_path, holder):
    holder("GPU-0")

    with held(tmp_path, "GPU-1"):
        pass


def test_half_of_what_is_wanted_is_given_back(tmp_path, holder):
    holder("GPU-1")

    with pytest.raises(BusyError), held(tmp_path, "GPU-0", "GPU-1"):
        pytest.fail("held twice")
    with held(tmp_path, "GPU-0"):
        pass


def make_socket(path):
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))


@pytest.mark.parametrize(
    ("name", "make", "message"),
    [
        ("locks", os.mkfifo, "CI_PERF_LOCK_DIR"),
        ("locks", Path.touch, "CI_PERF_LOCK_DIR"),
        ("locks/GPU-0.lock", os.mkfifo, r"found a pipe; remove it, .*CI_PERF_LOCK_DIR"),
        ("locks/GPU-0.lock", make_socket, "cannot be locked"),
    ],
)
def test_what_stands_in_the_place_of_a_lock_or_its_folder_is_refused(tmp_path, name, make, message):
    (tmp_path / name).parent.mkdir(exist_ok=True)
    make(tmp_path / name)

    with (
        pytest.raises(CannotWriteError, match=message),
        held(tmp_path / "locks", "GPU-0"),
    ):
        pytest.fail("held")


def test_an_owner_that_is_no_text_is_shown_as_far_as_it_can_be(tmp_path, holder):
    holder("GPU-0")
    (tmp_path / "GPU-0.lock").write_bytes(b"run \xff of nobody")

    with (
        pytest.raises(BusyError, match="held by run \ufffd of nobody"),
        held(tmp_path, "GPU-0"),
    ):
        pytest.fail("held twice")


def test_a_link_in_the_shared_folder_is_not_followed(tmp_path):
    """The folder belongs to all users: somebody could point the file anywhere."""
    (tmp_path / "GPU-0.lock").symlink_to(tmp_path / "victim")

    with pytest.raises(CannotWriteError), held(tmp_path, "GPU-0"):
        pytest.fail("held")
    assert not (tmp_path / "victim").exists()
