"""However a base ends, its worktree is gone afterwards, or after the next start."""

import os
import signal
import subprocess
import sys
import time

import pytest

from tests import repositories
from tests.processes import is_alive, wait_for_children, wait_until

pytestmark = pytest.mark.usefixtures("lone_git")

# Has the base checked out, and waits.
KEEPER = """
import signal, sys, time
from pathlib import Path
from ci_perf import worktree
Path("started").touch()
with worktree.base_of(Path.cwd(), "main") as base:
    Path("there.new").write_text(str(base.root))
    Path("there.new").rename("there")
    time.sleep(600)
"""
# As where the guardian is killed, too.
UNGUARDED = f"""
import contextlib
from ci_perf.system import guardian
guardian.guard = lambda *_: contextlib.nullcontext()
{KEEPER}"""
ONCE = """
from pathlib import Path
from ci_perf import worktree
with worktree.base_of(Path.cwd(), "main") as base:
    print((base.root / "code.py").read_text())
"""


@pytest.fixture
def forked(tmp_path, monkeypatch):
    scratch = tmp_path / "temporary"
    scratch.mkdir()
    monkeypatch.setenv("TMPDIR", str(scratch))
    return repositories.forked(tmp_path / "app")  # its base is a sibling, by any name


def start(forked, program):
    return subprocess.Popen(
        [sys.executable, "-P", "-c", program],
        cwd=forked.root,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def code_of_the_next_base(forked):
    """Start once more, to the end."""
    return subprocess.check_output(
        [sys.executable, "-P", "-c", ONCE], cwd=forked.root, text=True, timeout=120
    )


def there(forked):
    """Wait for the base; return its folder."""
    note = forked.root / "there"
    wait_until(note.exists)
    return note.read_text()


def nothing_is_left(forked):
    beside = {one.name for one in forked.root.parent.iterdir()}
    temporary = list((forked.root.parent / "temporary").iterdir())
    return beside == {"app", "temporary"} and not temporary and len(forked.worktrees()) == 1


def slow_filter(forked, seconds):
    """Have git take its time over the base's files: it waits for a filter of the user's."""
    (forked.root / ".git/info/attributes").write_text("*.py filter=slow\n")
    forked.ask("config", "filter.slow.smudge", f"sleep {seconds}; cat")


STORM = [signal.SIGINT] * 60


@pytest.mark.parametrize(
    "signals",
    [[signal.SIGTERM], [signal.SIGHUP], STORM],
    ids=["SIGTERM", "SIGHUP", "a storm of SIGINT"],
)
def test_signals_to_a_whole_terminal_end_it_and_remove_everything(forked, signals):
    process = start(forked, KEEPER)
    there(forked)

    for one in signals:
        if process.poll() is None:
            os.killpg(process.pid, one)
        time.sleep(0.003)
    process.wait(timeout=120)

    assert process.returncode != 0
    assert nothing_is_left(forked)


def test_ctrl_c_while_git_checks_out_does_not_wait_for_it(forked):
    slow_filter(forked, 611)
    process = start(forked, KEEPER)
    wait_until((forked.root / "started").exists)
    wait_until((forked.root / ".git/worktrees").is_dir)

    process.send_signal(signal.SIGINT)
    process.wait(timeout=120)

    assert nothing_is_left(forked)


@pytest.mark.story
@pytest.mark.parametrize("is_there", [True, False])
def test_what_sigkill_left_is_gone_although_nobody_starts_again(forked, is_there):
    """Also while git checks out."""
    slow_filter(forked, 0 if is_there else 611)
    process = start(forked, KEEPER)
    wait_until((forked.root / ("there" if is_there else ".git/worktrees")).exists)
    process.kill()
    process.wait()

    wait_until(lambda: nothing_is_left(forked))


def test_what_sigkill_left_of_a_checkout_is_gone_too_with_the_git_that_still_works_on_it(forked):
    slow_filter(forked, 611)
    process = start(forked, UNGUARDED)
    wait_until((forked.root / ".git/worktrees").is_dir)
    checking_out = int(wait_for_children(process.pid)[0])
    process.kill()
    process.wait()
    assert is_alive(checking_out)
    forked.ask("config", "filter.slow.smudge", "cat")

    assert code_of_the_next_base(forked) == "base\n"
    wait_until(lambda: not is_alive(checking_out))
    assert nothing_is_left(forked)
