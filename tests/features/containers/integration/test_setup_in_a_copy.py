"""`setup` of a suite in containers: it changes a copy, and the task is measured in that."""

import pytest

from ci_perf import worktree
from ci_perf.errors import CiPerfError, ExitCode
from tests.features.containers.helpers import benches
from tests.launches import BUILD, HEAD, result_of

pytestmark = pytest.mark.container

# What a build leaves: a module, a file that a program made, and a link to what is not there inside.
BUILDING = """
set -e
python3 -c 'print("def step():\\n    pass")' > built.py
mkdir -p deep/er
echo "$CI_PERF_SIDE $(id -u)" > deep/er/note
ln -sf /etc/passwd link
rm old.py
"""
BUILT = """
import os
from pathlib import Path
from built import step
assert Path("deep/er/note").read_text().split() == ["head", str(os.getuid())]
assert Path("link").is_symlink()
assert not Path("old.py").exists()
assert not Path(".git").exists()
"""


@pytest.fixture
def bench(bench):
    (bench.root / "old.py").write_text("old = True\n")
    (bench.root / ".git").mkdir()
    (bench.root / ".git/config").write_text("a token\n")
    return bench


@pytest.fixture
def docker_bench(request, tmp_path):
    return benches.of(request, "docker", tmp_path)


def run(bench, line, *, root=None, side="base", timeout_s=60.0, interrupted=lambda: False):
    worktree.run_setup(
        line,
        bench.launcher,
        root=root or bench.root,
        side=side,
        timeout_s=timeout_s,
        interrupted=interrupted,
    )


def tree(folder):
    return {
        (str(path.relative_to(folder)), path.lstat().st_mode, path.lstat().st_uid)
        for path in folder.rglob("*")
    }


@benches.BOTH
def test_the_checkout_stays_as_it_was_and_the_task_sees_what_was_built(bench):
    task = bench.task(HEAD + BUILT + BUILD)
    before = tree(bench.root)
    run(bench, BUILDING, side="head")

    assert tree(bench.root) == before
    assert result_of(bench.launcher.launch(task))
    assert bench.left() == []


def test_it_sees_neither_the_repository_of_git_nor_a_variable_of_the_host(bench, monkeypatch):
    monkeypatch.setenv("GITHUB_TOKEN", "secret")
    with pytest.raises(CiPerfError) as raised:
        run(bench, "ls -a; env; touch /written; id -u; exit 7", side="head")

    assert "found code 7" in str(raised.value)
    assert "setup of the head" in str(raised.value)
    assert raised.value.exit_code == ExitCode.NO_ANSWER
    lines = raised.value.output.splitlines()
    assert "old.py" in lines
    assert ".git" not in lines
    assert "CI_PERF_SIDE=head" in lines
    assert "secret" not in raised.value.output
    assert "Read-only file system" in raised.value.output
    assert str(bench.launcher._user.uid) in lines  # the streams come in any order


def test_each_side_has_a_copy_of_its_own_where_the_next_command_finds_what_one_has_left(
    request, tmp_path
):
    other = benches.folder(tmp_path / "other")
    bench = benches.of(request, "docker", tmp_path / "bench", sides=[other])
    run(bench, "echo one > one")
    run(bench, "test -f one")
    run(bench, "test ! -f one", root=other, side="head")

    assert not [*bench.root.iterdir(), *other.iterdir()]


def test_a_command_that_is_killed_is_a_failure(docker_bench):
    with pytest.raises(CiPerfError, match="killed by signal 9"):
        run(docker_bench, "kill -9 $$")


def test_the_time_limit_ends_it(docker_bench):
    with pytest.raises(CiPerfError, match="within 2 s, found it still at work") as raised:
        run(docker_bench, "trap '' TERM; echo begun; sleep 611 & wait", timeout_s=2)

    assert raised.value.output == "begun\n"
    assert docker_bench.left() == []


def test_an_interrupt_ends_it(docker_bench):
    def interrupted():
        copies = docker_bench.launcher._copies.values()
        return any((copy / "begun").exists() for copy in copies)

    with pytest.raises(KeyboardInterrupt):
        run(docker_bench, "touch begun; exec sleep 611", interrupted=interrupted)

    assert docker_bench.left() == []
