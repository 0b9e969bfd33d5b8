"""`baseline` in real repositories: what git makes of two branches."""

import os
import shutil
import subprocess

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
    assert repository.project.run("history").code == ExitCode.OK


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
