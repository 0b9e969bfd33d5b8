"""The demo's shell: what it shows, and how it ends what it has typed."""

import os
import signal
import sys
import threading
import time

import pytest

from ci_perf.demo import Shell, neutral
from ci_perf.errors import CiPerfError

PRINTS_AND_ENDS = "import sys; print('a result'); sys.exit(int(sys.argv[1]))"
SLEEPS = "import pathlib, time; pathlib.Path('started').touch(); time.sleep(60)"
WILL_NOT_END = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); " + SLEEPS


def a_shell(folder, program, shown=None, **more):
    return Shell(
        folder=folder,
        show=([] if shown is None else shown).append,
        environment=neutral(os.environ),
        programs={"it": (sys.executable, "-c", program)},
        **more,
    )


def wait_for(path):
    deadline = time.monotonic() + 30
    while not path.exists():
        assert time.monotonic() < deadline, f"{path} did not appear"
        time.sleep(0.01)


def test_the_shell_shows_a_command_as_a_person_would_type_it(tmp_path, capfd):
    shown = []

    code = a_shell(tmp_path, PRINTS_AND_ENDS, shown).run("it", "3", "two words")

    assert code == 3
    assert shown == ["it 3 'two words'"]
    assert capfd.readouterr() == ("", "a result\n")  # stdout belongs to the report


def test_a_command_that_must_succeed_and_does_not_ends_the_demo(tmp_path):
    with pytest.raises(CiPerfError, match="`it 3`: expected exit code 0, found 3"):
        a_shell(tmp_path, PRINTS_AND_ENDS).must("it", "3")


def test_a_child_that_was_interrupted_interrupts_the_demo(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        a_shell(tmp_path, PRINTS_AND_ENDS).run("it", "130")


def interrupt_once(path):
    """As a terminal does on Ctrl-C, as soon as the child has made `path`."""

    def wait_and_interrupt():
        wait_for(path)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=wait_and_interrupt)
    thread.start()
    return thread


def test_an_interrupt_ends_the_child(tmp_path):
    thread = interrupt_once(tmp_path / "started")
    start = time.monotonic()

    with pytest.raises(KeyboardInterrupt):
        a_shell(tmp_path, SLEEPS).run("it")

    thread.join()
    assert time.monotonic() - start < 50  # it sleeps for 60


def test_a_child_that_will_not_end_is_killed(tmp_path):
    thread = interrupt_once(tmp_path / "started")
    start = time.monotonic()

    with pytest.raises(KeyboardInterrupt):
        a_shell(tmp_path, WILL_NOT_END, grace_s=0.1).run("it")

    thread.join()
    assert time.monotonic() - start < 50


def test_the_demo_accepts_its_baseline_on_a_busy_machine_too():
    """Whatever the person has set: the baseline goes with the demo."""
    assert neutral({"CI_PERF_ACCEPT_FORCE": "0"})["CI_PERF_ACCEPT_FORCE"] == "1"


def test_settings_of_the_person_do_not_reach_the_demo():
    theirs = {
        "CI_PERF_RUN_PROCESSES": "50",
        "GITHUB_HEAD_REF": "another-branch",
        "GIT_DIR": "/elsewhere/.git",
        "PATH": "/usr/bin",
    }

    ours = neutral(theirs)

    assert ours["PATH"] == "/usr/bin"
    assert ours["GIT_CONFIG_GLOBAL"] == os.devnull
    assert not {"CI_PERF_RUN_PROCESSES", "GITHUB_HEAD_REF", "GIT_DIR"} & ours.keys()


def test_how_long_to_wait_for_a_quiet_machine_is_for_the_person_to_say():
    assert neutral({"CI_PERF_RUN_WAIT": "0"})["CI_PERF_RUN_WAIT"] == "0"
