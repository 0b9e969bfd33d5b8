"""How two processes end that are there at once, when somebody wants them to end."""

import os
import signal
import threading

import pytest

from ci_perf.launch import never
from ci_perf.launch.local import LocalLauncher
from tests.launches import BUILD, GOOD, HEAD, PASS
from tests.processes import is_alive, kill_while, wait_until


@pytest.mark.parametrize(("is_first", "is_noted"), [(True, False), (False, True)])
def test_an_interrupt_ends_both_processes(task, tmp_path, is_first, is_noted):
    """Where nobody notes signals, Ctrl-C is an exception in the midst of conducting."""
    note = tmp_path / "pid"
    hanging = (
        f"import os, time\nopen({str(note)!r}, 'w').write(str(os.getpid()))\ntime.sleep(600)\n"
    )
    one, other = task("one", hanging), task("other", GOOD)
    first, second = (one, other) if is_first else (other, one)

    def is_there():
        return note.exists() and bool(note.read_text())

    def press():
        wait_until(is_there)
        os.kill(os.getpid(), signal.SIGINT)

    presser = threading.Thread(target=(lambda: None) if is_noted else press)
    presser.start()
    with pytest.raises(KeyboardInterrupt):
        LocalLauncher(tmp_path).launch_pair(first, second, is_there if is_noted else never)
    presser.join()

    assert not is_alive(int(note.read_text()))


def test_processes_that_wait_for_their_turn_end_with_their_parent(task, tmp_path, use_tempdir):
    """However the parent dies: here by SIGKILL, which no handler sees."""
    use_tempdir(tmp_path)  # nobody is left to clean up
    notes = [tmp_path / "one.pid", tmp_path / "other.pid"]
    sources = [
        f"import os, time\nopen({str(note)!r}, 'w').write(str(os.getpid()))\n" for note in notes
    ]
    hang = "def step():\n    time.sleep(600)\n"
    tasks = [
        task("one", HEAD + sources[0] + hang + BUILD),
        task("other", HEAD + sources[1] + PASS + BUILD),
    ]
    kill_while(lambda: LocalLauncher(tmp_path).launch_pair(*tasks), notes)

    for note in notes:
        wait_until(lambda note=note: not is_alive(int(note.read_text())))
