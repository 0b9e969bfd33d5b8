"""What a command prints is copied, whatever it does with its output."""

import os
import subprocess
from pathlib import Path

import pytest

from ci_perf.measuring.printed_steps import Untouched


@pytest.fixture
def copy():
    """Copy the output of a command to a file; return whether our end of the pipe stays open."""

    def copy(line, file):
        pipe, to = os.pipe()
        process = subprocess.Popen(["sh", "-c", line], stdout=to, start_new_session=True)
        os.close(to)
        with file.open("wb") as target:
            try:
                Untouched().copy(process.pid, pipe, target.fileno())
            finally:
                process.wait()
        return Path(f"/proc/self/fd/{pipe}").exists()

    return copy


@pytest.mark.parametrize(
    ("line", "text", "is_kept"),
    [
        ("echo told", "told\n", False),
        ("echo told; exec >&-; sleep 0.1", "told\n", False),
        # What it leaves behind may print: it must not hear SIGPIPE.
        ("sleep 2 & echo told", "told\n", True),
    ],
)
def test_a_run_leaves_no_open_pipe_unless_somebody_holds_it(copy, tmp_path, line, text, is_kept):
    assert copy(line, tmp_path / "output") == is_kept
    assert (tmp_path / "output").read_text() == text


def test_a_full_disk_is_told_as_what_it_is(copy):
    with pytest.raises(RuntimeError, match="output of the command cannot be kept: No space left"):
        copy("echo told", Path("/dev/full"))
