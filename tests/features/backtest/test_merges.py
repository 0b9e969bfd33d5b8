"""The last merges of real repositories, and commits with the suite of today."""

import pytest

from ci_perf.errors import UsageError
from ci_perf.features.backtest import merges
from tests import repositories

pytestmark = pytest.mark.usefixtures("lone_git")


@pytest.fixture
def repository(tmp_path):
    """A first commit, a merge of a branch, and a commit that was pushed to main."""
    made = repositories.init(tmp_path / "project")
    made.commit(code_py="0")
    made.ask("switch", "--quiet", "--create", "change")
    made.commit(code_py="1")
    made.commit(code_py="2")
    made.ask("switch", "--quiet", "main")
    made.ask("merge", "--quiet", "--no-ff", "--message=merged", "change")
    made.commit(code_py="3")
    return made


def test_commits_of_the_line_are_merges_newest_first(repository):
    line = merges.find_merges(repository.root, "HEAD", 50)

    assert [each.commit.title for each in line.merges] == ["more", "merged"]
    assert line.merges[1].parents[0] == line.repository == repository.ask("rev-parse", "HEAD~2")
    assert line.notes == (
        "50 merges were asked for: main has 2",
        "1 of 2 are commits with one parent: each counts as one",
    )


def test_a_shallow_clone_that_lacks_merges_is_refused(repository, tmp_path):
    clone = repository.clone(tmp_path / "clone", "--depth=2")

    with pytest.raises(UsageError, match=r"--last 2: expected .* found 1 .*--unshallow"):
        merges.find_merges(clone.root, "HEAD", 2)
    assert len(merges.find_merges(clone.root, "HEAD", 1).merges) == 1


@pytest.mark.parametrize("count", [0, 1])
def test_a_repository_without_a_merge_is_refused(tmp_path, count):
    made = repositories.init(tmp_path / "project")
    for _ in range(count):
        made.commit()

    with pytest.raises(UsageError, match="--ref HEAD: expected a"):
        merges.find_merges(made.root, "HEAD", 50)


def test_uncommitted_changes_are_said(repository):
    (repository.root / "code.py").write_text("4")

    notes = merges.find_merges(repository.root, "HEAD", 2).notes

    assert "uncommitted changes are not measured; those of the suite are used" in notes


def test_an_old_commit_gets_the_suite_of_today_and_no_branch_moves(repository):
    old = repository.ask("rev-parse", "HEAD~1")
    folder = repository.root / "workloads"
    folder.mkdir()
    (folder / "suite.toml").write_text("today")
    before = repository.ask("status", "--porcelain"), repository.ask("for-each-ref")

    made = merges.with_suite(repository.root, old, folder.relative_to(repository.root))

    assert repository.ask("show", f"{made}:workloads/suite.toml") == "today"
    assert repository.ask("diff", "--name-only", old, made) == "workloads/suite.toml"
    assert (repository.ask("status", "--porcelain"), repository.ask("for-each-ref")) == before
    assert merges.with_suite(repository.root, old, folder.relative_to(repository.root)) == made


def test_a_commit_with_the_suite_of_today_stays_itself(repository):
    folder = repository.root / "workloads"
    folder.mkdir()
    (folder / "suite.toml").write_text("today")
    own = repository.commit(code_py="4")

    assert merges.with_suite(repository.root, own, folder.relative_to(repository.root)) == own
    assert merges.with_suite(repository.root, "any", None) == "any"


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("", "no file differs"),
        ("README_md", "only documents differ"),
        ("code_py", ""),
        ("data_txt", ""),
    ],
)
def test_files_alone_say_that_two_commits_are_the_same(repository, name, why):
    before = repository.ask("rev-parse", "HEAD")
    after = repository.commit(**({name: "9"} if name else {}))

    assert merges.describe_likeness(repository.root, before, after) == why
