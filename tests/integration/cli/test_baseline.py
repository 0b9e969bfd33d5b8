"""`baseline` in real repositories: what git makes of two branches."""

import shutil
import subprocess

import msgspec
import pytest

from ci_perf.baselines import layout
from ci_perf.errors import ExitCode
from ci_perf.system import files
from tests import repositories
from tests.projects import Project
from tests.repositories import Repository
from tests.runs import CPU, SLOW, STEADY, a_measured, a_run

pytestmark = pytest.mark.usefixtures("lone_git")

BASELINE = "baselines/cpu-amd-epyc-2-cores/smoke/w.json"


class Baselined(Repository):
    """A project in git, whose clone merges baselines with ci-perf."""

    @property
    def project(self):
        return Project(self.root)

    def commit(self, **_):
        self.ask("add", "-A", "baselines", ".gitattributes")
        self.ask("commit", "-qm", "more")

    def merge_refused(self, other):
        with pytest.raises(subprocess.CalledProcessError) as refused:
            self.ask("merge", "-q", "--no-edit", other)
        assert refused.value.returncode == 1
        return (refused.value.stdout + refused.value.stderr).decode()

    def accept(self, name, *step_s, hour=10, options=("--append",)):
        """Record a session of this name, and accept it."""
        run = a_run(a_measured("w", *step_s), id=name)
        path = self.root / f"{name}.json"
        started_at = f"2026-11-21T{hour}:00:00Z"
        files.write(path, msgspec.structs.replace(run, started_at=started_at))
        done = self.project.run("accept", path.name, "--reason", name, *options)
        assert done.code == ExitCode.OK, done.err
        path.unlink()

    def branch(self, name, *step_s, **more):
        """Accept a session of this name on a new branch of main."""
        self.ask("switch", "-qc", name, "main")
        self.accept(name, *step_s, **more)
        self.commit()

    def sessions(self):
        return [session.run for session in layout.read(self.root / BASELINE).sessions]


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """A repository with one baseline: only to be copied."""
    made = Baselined(repositories.init(tmp_path_factory.mktemp("installed") / "a project").root)
    made.accept("first", *STEADY)
    done = made.project.run("baseline", "install")
    assert done.code == ExitCode.OK, done.err
    made.commit()
    return made


@pytest.fixture
def repository(installed, project):
    shutil.copytree(installed.root, project.root, dirs_exist_ok=True)
    return Baselined(project.root)


def test_git_unites_two_branches_that_both_appended(repository):
    for name, hour in (("ours", 12), ("theirs", 11)):
        repository.branch(name, *STEADY, hour=hour)
    repository.ask("switch", "-q", "ours")

    repository.ask("merge", "-q", "--no-edit", "theirs")

    assert repository.sessions() == ["first", "theirs", "ours"]
    diff = repository.ask("diff", "-U0", "ours~1", "ours", "--", BASELINE).splitlines()
    assert [line for line in diff if line.startswith("@@")] == [diff[4]]
    assert not [line for line in diff if line.startswith("-") and not line.startswith("---")]
    assert repository.project.run("history").code == ExitCode.OK


def test_a_conflict_names_the_file_the_reason_and_the_next_step_and_leaves_ours(repository):
    for name in ("ours", "theirs"):
        repository.branch(name, *SLOW, options=())
    repository.ask("switch", "-q", "ours")
    before = (repository.root / BASELINE).read_bytes()

    said = repository.merge_refused("theirs")

    assert f"error: {BASELINE}: cannot be merged: both sides accepted a change of" in said
    assert "git checkout --ours or --theirs" in said
    assert f"Merge conflict in {BASELINE}" in said
    assert (repository.root / BASELINE).read_bytes() == before


def test_to_install_twice_changes_nothing_and_keeps_the_other_lines(repository):
    attributes = repository.root / ".gitattributes"
    attributes.write_text("*.png binary")

    for _ in range(2):
        assert repository.project.run("baseline", "install").code == ExitCode.OK

    assert attributes.read_text() == "*.png binary\n/baselines/*/*/*.json merge=ci-perf\n"


def test_baselines_outside_the_repository_cannot_be_merged_by_its_git(repository):
    done = repository.project.run("baseline", "install", "--baselines", "../elsewhere")

    assert done.code == ExitCode.USAGE
    assert "outside it, which git never merges" in done.err


def test_outside_of_a_repository_nothing_can_be_installed(project):
    done = project.run("baseline", "install", GIT_CEILING_DIRECTORIES=str(project.root.parent))

    assert done.code == ExitCode.USAGE
    assert "run this within the repository that holds the baselines" in done.err
    assert not (project.root / ".gitattributes").exists()


def test_a_side_that_is_no_baseline_is_not_merged(repository):
    root = repository.root
    (root / "bad.json").write_text("<<<<<<< ours\n")
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
