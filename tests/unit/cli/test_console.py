"""How wide a result may be, asked in a real terminal."""

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios

import pytest

# As in `main`: the streams are prepared before anything is written.
ASKING = (
    "import sys; from ci_perf.cli import console; console.prepare(); "
    "print(console.width(), file=sys.stderr)"
)


def width(stdout, **environment):
    """Return the width that a command finds whose stdout is this."""
    inherited = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    done = subprocess.run(
        [sys.executable, "-c", ASKING],
        env={**inherited, **environment},
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=subprocess.PIPE,
        check=True,
        text=True,
    )
    return int(done.stderr)


@pytest.fixture
def a_terminal():
    """Make terminals of so many columns, as a window would be."""
    opened = []

    def make(columns):
        ends = pty.openpty()
        opened.extend(ends)
        fcntl.ioctl(ends[1], termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        return ends[1]

    yield make
    for end in opened:
        os.close(end)


def test_a_result_is_as_wide_as_the_terminal_that_shows_it(a_terminal):
    assert width(a_terminal(80)) == 80
    assert width(a_terminal(203)) == 203


def test_what_a_person_says_of_the_width_goes_before_what_the_terminal_says(a_terminal):
    assert width(a_terminal(80), COLUMNS="60") == 60


@pytest.mark.parametrize("said", ["", "0", "wide", "-5"])
def test_a_width_that_is_none_is_passed_over(a_terminal, said):
    assert width(a_terminal(80), COLUMNS=said) == 80


def test_without_a_terminal_or_its_size_a_table_has_all_its_columns(a_terminal):
    assert width(subprocess.DEVNULL) == 160
    assert width(a_terminal(0)) == 160
