import socket
import time

import pytest

from ci_perf.measuring import monitor
from ci_perf.model import task


@pytest.mark.parametrize("name", ["empty", "not here"])
def test_marks_without_a_monitor_do_nothing_and_raise_nothing(tmp_path, name):
    (tmp_path / "empty").mkdir()
    silent = monitor.Marks(tmp_path / name)
    silent.hello()
    silent.begin()
    silent.end()

    assert [path.name for path in tmp_path.rglob("*")] == ["empty"]


def test_a_monitor_that_is_dead_is_not_waited_for(tmp_path):
    line = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    line.bind(str(tmp_path / task.MONITOR_SOCKET))
    line.close()
    start = time.monotonic()

    monitor.Marks(tmp_path).hello()

    assert time.monotonic() - start < monitor._HELLO_S


def test_a_monitor_that_does_not_answer_is_waited_for_once(tmp_path):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as line:
        line.bind(str(tmp_path / task.MONITOR_SOCKET))
        ours = monitor.Marks(tmp_path, mark_s=0.05)
        ours.begin()
        ours.end()

        heard = [line.recv(200)]
        line.settimeout(0.01)
        with pytest.raises(TimeoutError):
            line.recv(200)
    assert heard[0].startswith(b"begin ")
