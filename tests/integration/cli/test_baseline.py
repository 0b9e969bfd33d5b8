"""`baseline` in real repositories: what git makes of two branches, and what a person is shown."""

import csv
import io
import json
import os
import shutil
import subprocess
import sys

import pytest

from ci_perf.baselines import layout
from ci_perf.errors import ExitCode
from ci_perf.system import files
from tests.projects import Project
from tests.runs import CPU, SLOW, STEADY, a_measured, a_run

GIT = {
    "GIT_AUTHOR_NAME": "t",
    "GIT_AUTHOR_EMAIL": "t@example.org",
    "GIT_COMMITTER_NAME": "t",
    "GIT_COMMITTER_EMAIL": "t@example.org",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
}
BASELINE = "baselines/cpu-amd-epyc-2-cores/smoke/w.json"


class Repository:
    """A project in git, whose clone merges baselines with ci-perf."""

    def __init__(self, project):
        self.project = project

    def install(self):
        self.git("init", "-q", "-b", "main")
        self.accept("first", *STEADY)
        done = self.project.run("baseline", "install")
        assert done.code == ExitCode.OK, done.err
        self.commit("first baseline")

    def copied(self, project):
        shutil.copytree(self.project.root, project.root, dirs_exist_ok=True)
        return Repository(project)

    def git(self, *arguments, code=0):
        done = subprocess.run(
            ["git", *arguments],
            cwd=self.project.root,
            env={**os.environ, **GIT},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    def commit(self, message):
        self.git("add", "-A", "baselines", ".gitattributes")
        self.git("commit", "-qm", message)

    def accept(self, name, *step_s, hour=10, options=("--append",), **more):
        """Record a session of this name, and accept it."""
        run = a_run(a_measured("w", *step_s, **more), id=name)
        path = self.project.root / f"{name}.json"
        files.write(path, type(run)(**{**fields(run), "started_at": f"2026-11-21T{hour}:00:00Z"}))
        done = self.project.run("accept", path.name, "--reason", name, *options)
        assert done.code == ExitCode.OK, done.err
        path.unlink()
        return done

    def branch(self, name):
        self.git("switch", "-qc", name, "main")

    def sessions(self):
        return [session.run for session in layout.read(self.project.root / BASELINE).sessions]


def fields(run):
    return {name: getattr(run, name) for name in run.__struct_fields__}


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """A repository with one baseline: only to be copied."""
    project = Project(tmp_path_factory.mktemp("installed") / "a project")
    project.root.mkdir()
    repository = Repository(project)
    repository.install()
    return repository


@pytest.fixture
def repository(installed, project):
    return installed.copied(project)


def test_git_unites_two_branches_that_both_appended(repository):
    for name, hour in (("ours", 12), ("theirs", 11)):
        repository.branch(name)
        repository.accept(name, *STEADY, hour=hour)
        repository.commit(name)
    repository.git("switch", "-q", "ours")

    repository.git("merge", "-q", "--no-edit", "theirs")

    assert repository.sessions() == ["first", "theirs", "ours"]
    diff = repository.git("diff", "-U0", "ours~1", "ours", "--", BASELINE).splitlines()
    assert [line for line in diff if line.startswith("@@")] == [diff[4]]
    assert not [line for line in diff if line.startswith("-") and not line.startswith("---")]
    assert repository.project.run("baseline", "show").code == ExitCode.OK


def test_a_conflict_names_the_file_the_reason_and_the_next_step_and_leaves_ours(repository):
    for name in ("ours", "theirs"):
        repository.branch(name)
        repository.accept(name, *SLOW, options=())
        repository.commit(name)
    repository.git("switch", "-q", "ours")
    before = (repository.project.root / BASELINE).read_bytes()

    said = repository.git("merge", "-q", "--no-edit", "theirs", code=1)

    assert f"error: {BASELINE}: cannot be merged: both sides accepted a change of" in said
    assert "git checkout --ours or --theirs" in said
    assert f"Merge conflict in {BASELINE}" in said
    assert (repository.project.root / BASELINE).read_bytes() == before


def test_a_side_that_began_anew_is_a_conflict_with_one_that_went_on(repository):
    repository.branch("ours")
    repository.accept("ours", *STEADY)
    repository.commit("ours")
    repository.branch("theirs")
    repository.accept("theirs", *STEADY, options=("--replace",))
    repository.commit("theirs")

    said = repository.git("merge", "-q", "--no-edit", "ours", code=1)

    assert "ours began the history anew (without run first)" in said


def test_to_install_twice_changes_nothing_and_keeps_the_other_lines(repository):
    attributes = repository.project.root / ".gitattributes"
    attributes.write_text("*.png binary")

    for _ in range(2):
        assert repository.project.run("baseline", "install").code == ExitCode.OK

    assert attributes.read_text() == "*.png binary\n/baselines/*/*/*.json merge=ci-perf\n"


@pytest.mark.parametrize("folder", ["../elsewhere", "/"])
def test_baselines_outside_the_repository_cannot_be_merged_by_its_git(repository, folder):
    done = repository.project.run("baseline", "install", "--baselines", folder)

    assert done.code == ExitCode.USAGE
    assert "outside it, which git never merges" in done.err


def test_outside_of_a_repository_nothing_can_be_installed(project):
    done = project.run("baseline", "install", GIT_CEILING_DIRECTORIES=str(project.root.parent))

    assert done.code == ExitCode.USAGE
    assert "run this within the repository that holds the baselines" in done.err
    assert not (project.root / ".gitattributes").exists()


@pytest.mark.parametrize("content", ["", "<<<<<<< ours\n", "{}"])
def test_a_side_that_is_no_baseline_is_not_merged(repository, content):
    root = repository.project.root
    (root / "bad.json").write_text(content)
    before = (root / BASELINE).read_bytes()

    done = repository.project.run("baseline", "merge", BASELINE, BASELINE, "bad.json")

    assert done.code == ExitCode.USAGE
    assert "bad.json: " in done.err
    assert (root / BASELINE).read_bytes() == before


def test_sessions_that_are_accepted_at_the_same_time_are_all_kept(project):
    names = [f"run{number}" for number in range(4)]
    project.recorded("run.json", a_measured("w", *STEADY), id="first")
    assert project.run("accept", "run.json").code == ExitCode.OK
    for name in names:
        project.recorded(f"{name}.json", a_measured("w", *STEADY), id=name)

    started = [project.start("accept", f"{name}.json", "--append") for name in names]
    for one in started:
        one.communicate(timeout=300)

    kept = layout.read(layout.path(project.root / "baselines", CPU, "smoke", "w")).sessions
    assert sorted(session.run for session in kept) == ["first", *names]


# --- what a person is shown


def grow(repository, *factors):
    """Accept one change, then append sessions that are slower by these factors."""
    for number, factor in enumerate(factors):
        options = ("--append",) if number else ()
        steps = [s * factor for s in SLOW]
        repository.accept(f"run{number}", *steps, hour=11 + number, options=options)
    return repository.project


@pytest.fixture(scope="module")
def grown(installed, tmp_path_factory):
    """A history of one accepted change, some time after which main became slower by 5 %."""
    repository = installed.copied(Project(tmp_path_factory.mktemp("grown")))
    return grow(repository, 1.0, 1.0001, 1.0002, 1.0503, 1.0504, 1.0505)


@pytest.fixture
def creeping(repository):
    """A history of one accepted change, after which main became slower by 2 % per session."""
    return grow(repository, *(1 + 0.02 * number for number in range(6)))


def test_a_workload_without_a_baseline_is_wrong_use_with_a_suggestion(project):
    project.recorded("run.json", a_measured("matmul.size=256", *STEADY), id="first")
    assert project.run("accept", "run.json").code == ExitCode.OK

    done = project.run("baseline", "show", "matmil")
    assert done.code == ExitCode.USAGE
    assert "baselines: has no baseline of a workload 'matmil'; did you mean 'matmul'?" in done.err
    assert project.run("baseline", "show", "matmul").code == ExitCode.OK


def test_the_history_is_shown_with_its_epochs_and_what_has_drifted(creeping):
    done = creeping.run("baseline", "show")

    (line,) = (
        line for line in done.out.splitlines() if "step time" in line and "since" not in line
    )
    assert line.split()[:6] == ["w", "step", "time", "6", "(+1)", "1"]
    assert "drifted" in line
    assert "peak host memory" in done.out
    assert "first step" not in done.out, "it gates nothing"


def test_every_form_shows_the_same_lines(grown):
    rows = json.loads(grown.run("baseline", "show", "--format", "json").out)
    table = list(csv.DictReader(io.StringIO(grown.run("baseline", "show", "--format", "csv").out)))
    markdown = grown.run("baseline", "show", "--format", "markdown").out

    assert [row["metric"] for row in rows] == [row["metric"] for row in table]
    (time,) = (row for row in rows if row["metric"] == "step_time_s")
    assert (time["sessions"], time["earlier"], time["epoch"]) == (6, 1, 1)
    assert markdown.count("\n| `w` |") == len(rows)


def test_change_points_are_information_and_say_so(grown):
    done = grown.run("baseline", "show")

    assert "Change points (for information, never a gate):" in done.out
    assert done.out.splitlines()[-2:] == [
        "- w step time: +100 % since 2026-11-21 (d4e5f6a), accepted",
        "- w step time: +5.0 % since 2026-11-21 (d4e5f6a)",
    ]
    assert done.code == ExitCode.OK


def test_without_ruptures_it_says_how_to_install_it_and_shows_the_rest(grown):
    program = (
        "import sys; sys.modules['ruptures'] = None\nfrom ci_perf.cli.main import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, "baseline", "show"],
        cwd=grown.root,
        capture_output=True,
        text=True,
        check=True,
    )

    assert "next: `pip install '.[history]'` in a checkout" in done.stderr
    assert "step time" in done.stdout
    assert "Change points" not in done.stdout


def test_where_there_is_no_history_it_says_what_to_do(project):
    done = project.run("baseline", "show")

    assert done.code == ExitCode.OK
    assert "next: ci-perf accept run.json" in done.out
