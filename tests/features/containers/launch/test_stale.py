"""Whose a container is, and when its owner is known to be gone. Containers are in integration/."""

import os
import subprocess

import pytest

from ci_perf.features.containers.launch import stale

START = 4711


@pytest.fixture
def proc(tmp_path):
    """A machine with one process, 42, in the boot "boot" and in the namespace 1."""
    (tmp_path / "sys/kernel/random").mkdir(parents=True)
    (tmp_path / "sys/kernel/random/boot_id").write_text("boot\n")
    (tmp_path / "self/ns").mkdir(parents=True)
    (tmp_path / "self/ns/pid").symlink_to("pid:[1]")
    (tmp_path / "42").mkdir()
    says(tmp_path)
    return tmp_path


def says(proc, *, name="python", state="S", start=START):
    fields = [state, *(str(number) for number in range(4, 22)), str(start), "0"]
    (proc / "42/stat").write_text(f"42 ({name}) {' '.join(fields)}\n")


def test_an_owner_is_a_process_in_a_boot_and_a_namespace(proc):
    assert stale.owner(42, proc) == f"boot.1.42.{START}"


def test_this_process_is_its_own_owner_and_there():
    assert stale.owner() == stale.owner(os.getpid())
    assert not stale.is_gone(stale.owner())


@pytest.mark.parametrize("name", ["a) S 1 2 (b", "a b", ")", "\n"])
def test_the_name_of_a_process_may_hold_anything(proc, name):
    says(proc, name=name)

    assert not stale.is_gone(f"boot.1.42.{START}", proc)


@pytest.mark.parametrize(
    "whose",
    [
        f"boot.1.{2**22 + 1}.{START}",  # no such process: Linux counts to 2**22
        f"boot.1.42.{START + 1}",  # another one has its number
        f"reboot.1.42.{START}",
        f"reboot.2.42.{START}",
    ],
)
def test_an_owner_that_is_not_there_is_gone(proc, whose):
    assert stale.is_gone(whose, proc)


def test_an_owner_whom_proc_hides_is_not_gone(proc):
    hidden = os.getpid()  # it is there, and this /proc does not show it

    assert not stale.is_gone(f"boot.1.{hidden}.{START}", proc)


def test_a_zombie_is_gone(proc):
    says(proc, state="Z")

    assert stale.is_gone(f"boot.1.42.{START}", proc)


@pytest.mark.parametrize(
    "whose",
    [
        f"boot.2.42.{START}",  # whether this one lives cannot be seen from here
        f"boot.2.43.{START}",
        *("", "boot", "boot.1", "boot.1.42", "boot.1.42.", "boot.1.x.1", "boot.1.42.-1", "..."),
    ],
)
def test_what_cannot_be_known_is_left_alone(proc, whose):
    assert not stale.is_gone(whose, proc)


def test_a_process_that_has_ended_is_gone():
    with subprocess.Popen(["sleep", "600"]) as process:
        whose = stale.owner(process.pid)
        was_there = not stale.is_gone(whose)
        process.kill()

    assert was_there
    assert stale.is_gone(whose)
