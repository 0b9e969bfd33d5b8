"""What a branch does to its own tests is a change of the gate: said first, never in a fold."""

import json
import shutil

import pytest

from ci_perf.errors import ExitCode
from tests import headlines, repositories
from tests.projects import Project

SUITE = """
python_path = ["src"]
[suites.smoke]
device = "cpu"
canaries = false
[suites.smoke.limits]
step_time_s = { limit = 0.5 }
step_cpu_s = { gate = false }
host_rss_peak_bytes = { gate = false }
"""
TABLE = """
[[suites.smoke.pytest]]
paths = ["bench"]
[suites.smoke.pytest.protocol]
processes = 1
warmup_min_s = 0.01
timed_min_s = 0.05
block_min_s = 0.002
statistic = "min"
monitor_hz = 0
"""
COMMAND = '[[suites.smoke.commands]]\nname = "nap"\ncommand = "sleep 0.05"\n'
KEPT = """
import time
import pytest

def test_kept(benchmark):
    benchmark(time.sleep, 0.003)

@pytest.mark.skip(reason="on both sides")
def test_never(benchmark):
    benchmark(abs, -1)
"""
GONE = """
import time

def test_gone(benchmark):
    benchmark(time.sleep, 0.003)
"""
# Two plugins that are installed beside ours import for seconds.
SETTINGS = "[pytest]\naddopts = -p no:anyio -p no:hypothesispytest"


@pytest.fixture(scope="module")
def main(tmp_path_factory):
    """A repository with a command, two tests and one that is skipped, and no baselines."""
    git = repositories.init(tmp_path_factory.mktemp("main") / "project")
    for folder in ("bench", "workloads", "src"):
        (git.root / folder).mkdir()
    (git.root / "bench/test_kept.py").write_text(KEPT)
    (git.root / "bench/test_gone.py").write_text(GONE)
    (git.root / "workloads/suite.toml").write_text(SUITE + COMMAND + TABLE)
    git.commit(pytest_ini=SETTINGS)
    return git


@pytest.fixture
def branch(main, tmp_path):
    """The same repository, with a branch that is checked out."""
    shutil.copytree(main.root, tmp_path / "project", symlinks=True)
    git = repositories.Repository(tmp_path / "project")
    git.ask("switch", "--quiet", "--create", "branch")
    return git


def write(git, **files):
    """Write files of the branch, "" for none, and commit them."""
    for name, text in files.items():
        path = git.root / name.replace("__", "/").replace("_py", ".py").replace("_toml", ".toml")
        path.write_text(text) if text else path.unlink()
    git.commit()


def checked(git, *options):
    """Check against main; return how it ended, what is named of the gate, and the rows' names."""
    done = Project(git.root).run(
        *("check", "--against", "main", "--wait", "0s", "--explain", "0s", "--budget", "1m"),
        *("-o", "../run.json", "--comparison", "../comparison.json", *options),
    )
    comparison = json.loads((git.root.parent / "comparison.json").read_text())
    changes = {
        (each["kind"], each.get("workload", ""), each.get("name", ""), each.get("reason", ""))
        for each in comparison.get("gate_changes", ())
    }
    return done, changes, {row["workload"] for row in comparison["rows"]}


def headline(done):
    return done.out.partition("\n")[0]


def test_a_table_that_is_gone_is_named_with_its_tests(branch):
    write(branch, workloads__suite_toml=SUITE + COMMAND, bench__test_gone_py="")

    done, changes, names = checked(branch)

    assert (done.code, names) == (ExitCode.OK, {"nap"}), done.err
    assert headline(done).startswith(f"### {headlines.GATE_CHANGED}workload removed")
    assert changes == {
        ("workload removed", name, "", "")
        for name in ("pytest bench", "test_gone.test_gone", "test_kept.test_kept")
    }
    assert "No action needed" not in done.out


def test_a_test_that_is_skipped_and_files_that_do_less_are_named_and_run_json_knows_it(branch):
    write(
        branch,
        bench__test_kept_py=KEPT.replace("0.003", "0.001"),
        bench__test_gone_py=f"import pytest\npytestmark = pytest.mark.skip(reason='flaky')\n{GONE}",
        bench__conftest_py="# it may wrap `benchmark`\n",
    )

    done, changes, names = checked(branch, "--pytest", "bench")
    again = Project(branch.root).run("compare", "../run.json")

    assert (done.code, names) == (ExitCode.OK, {"test_kept.test_kept"}), done.err
    changed = "workload file changed (numbers of different work)"
    assert changes == {
        ("workload removed", "test_gone.test_gone", "", "Skipped: flaky"),
        (changed, "", "bench/conftest.py", ""),
        (changed, "", "bench/test_kept.py", ""),
    }
    for out in (done, again):
        assert headline(out).startswith(f"### {headlines.GATE_CHANGED}")
        above = out.out.partition("All ")[0].replace("`", "")
        assert "- workload removed: test_gone.test_gone, because: Skipped: flaky" in above
        assert "No action needed" not in above
