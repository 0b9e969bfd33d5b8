"""The command of a suite that makes a side ready: real shells, real ends."""

import signal

import pytest

from ci_perf import worktree
from ci_perf.errors import CiPerfError, ExitCode
from ci_perf.launch.local import LocalLauncher
from tests.processes import is_alive, wait_until


@pytest.fixture
def run(tmp_path):
    """Run a line of shell in a folder of its own."""

    def run_line(line, *, side="base", timeout_s=60.0, interrupted=lambda: False):
        worktree.run_setup(
            line,
            LocalLauncher(tmp_path),
            root=tmp_path,
            side=side,
            timeout_s=timeout_s,
            interrupted=interrupted,
        )

    return run_line


@pytest.mark.parametrize("side", ["base", "head"])
def test_the_command_runs_in_its_side_as_a_measured_process(run, tmp_path, monkeypatch, side):
    monkeypatch.setenv("GITHUB_TOKEN", "secret")
    run('echo "$CI_PERF_SIDE" > side && pwd >> side && env > environment', side=side)

    said = (tmp_path / "environment").read_text()
    assert (tmp_path / "side").read_text().split() == [side, str(tmp_path)]
    assert "secret" not in said
    assert "PYTHONHASHSEED=0" in said


@pytest.mark.parametrize(
    ("ends", "words"),
    [("exit 7", r"setup of the head .* found code 7"), ("kill -9 $$", "killed by signal 9")],
)
def test_a_failure_names_the_side_and_the_code_and_shows_the_last_output(run, ends, words):
    with pytest.raises(CiPerfError, match=words) as raised:
        run(f"echo no compiler >&2; {ends}", side="head")

    assert raised.value.exit_code == ExitCode.NO_ANSWER
    assert raised.value.output == "no compiler\n"


def test_a_failure_shows_no_credentials(run):
    with pytest.raises(CiPerfError, match=r"TOKEN=\*{3};") as raised:
        run("TOKEN=hunter2; echo https://me:$TOKEN@it.example; exit 7")

    assert raised.value.output == "https://***@it.example\n"
    assert "hunter2" not in str(raised.value)


def test_the_time_limit_ends_it_with_everything_that_it_has_started(run, tmp_path):
    deaf = f"trap '' {signal.SIGUSR1.value}"  # to what ends a hanging worker politely
    with pytest.raises(CiPerfError, match="within 1 s, found it still at work") as raised:
        run(f"{deaf}; echo begun; sleep 611 & echo $! > pid; wait", timeout_s=1)
    pid = int((tmp_path / "pid").read_text())

    wait_until(lambda: not is_alive(pid))
    assert raised.value.output == "begun\n"


def test_what_it_leaves_running_ends_with_it(run, tmp_path):
    run("setsid sleep 611 & echo $! > pid")

    pid = int((tmp_path / "pid").read_text())
    wait_until(lambda: not is_alive(pid))


def test_an_interrupt_ends_it(run, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        run("echo $$ > pid; exec sleep 611", interrupted=(tmp_path / "pid").exists)


def test_a_side_that_is_not_there_is_named(tmp_path):
    with pytest.raises(CiPerfError, match=r"setup of the base in .*nowhere: cannot be started"):
        worktree.run_setup(
            "true",
            LocalLauncher(tmp_path),
            root=tmp_path / "nowhere",
            side="base",
            timeout_s=60,
            interrupted=lambda: False,
        )


def test_a_base_that_changes_the_packages_of_both_sides_is_refused(run, tmp_path, monkeypatch):
    site = tmp_path / "site"
    monkeypatch.setenv("PYTHONPATH", str(site))
    line = f"mkdir -p {site}/library-$VERSION.dist-info"
    run(line.replace("$VERSION", "1"), side="head")
    run(line.replace("$VERSION", "1"), side="base")

    with pytest.raises(CiPerfError, match=r"setup of the base in .*: it changed") as raised:
        run(f"{line.replace('$VERSION', '2')}; echo https://me@it.example", side="base")

    assert raised.value.output == "https://***@it.example\n"
