import os

import pytest

from ci_perf.errors import CiPerfError, ExitCode, UsageError
from ci_perf.worktree import merge_base
from tests import repositories


def test_the_base_is_where_the_change_began_and_not_where_main_is_now(forked):
    found = merge_base.find(forked.root, "main")

    assert found.commit == forked.ask("rev-parse", "main~1")
    assert found.top == forked.root
    assert found.notes == ()


def test_a_folder_of_the_repository_is_known_by_the_way_to_it(forked):
    inner = forked.root / "inner" / "most"
    inner.mkdir(parents=True)

    found = merge_base.find(inner, "main")

    assert found.top == forked.root
    assert found.inside.parts == ("inner", "most")


def test_a_hook_that_leads_git_elsewhere_does_not_lead_us(forked, tmp_path, monkeypatch):
    other = repositories.init(tmp_path / "other")
    monkeypatch.setenv("GIT_DIR", str(other.root / ".git"))

    assert merge_base.find(forked.root, "main").top == forked.root


def test_without_a_change_there_is_nothing_to_compare(forked):
    with pytest.raises(CiPerfError, match=r"^base and head are the same commit") as error:
        merge_base.find(forked.root, "HEAD")

    assert error.value.exit_code == ExitCode.NO_ANSWER


def test_a_tag_that_hides_a_branch_is_refused(forked):
    forked.ask("tag", "main", "change")

    with pytest.raises(
        CiPerfError, match=r"names a tag and a branch: write refs/heads/main"
    ) as error:
        merge_base.find(forked.root, "main")

    assert error.value.exit_code == ExitCode.NO_ANSWER
    assert merge_base.find(forked.root, "refs/heads/main").commit == forked.ask(
        "merge-base", "HEAD", "refs/heads/main"
    )


def test_an_annotated_tag_of_the_commit_of_its_branch_hides_nothing(forked):
    forked.ask("tag", "--annotate", "--message=same", "main", "main")

    assert merge_base.find(forked.root, "main").commit


def test_uncommitted_changes_are_noted_as_the_heads(forked):
    (forked.root / "code.py").write_text("changed")

    assert "part of the head" in merge_base.find(forked.root, "main").notes[0]
    assert "uncommitted changes" in merge_base.find(forked.root, "HEAD").notes[0]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda _, where: where, r"expected a git repository .* check it out"),
        (lambda forked, where: forked.clone(where / "bare", "--bare").root, "a bare repository"),
        (lambda _, where: repositories.init(where / "project").root, "commit first"),
        (lambda forked, where: forked.clone(where / "clone").root, "`origin/main` is one"),
    ],
    ids=["no repository", "no head to measure", "no commit", "a name that the remote has"],
)
def test_a_folder_that_cannot_be_compared_is_wrong_use(forked, tmp_path, make, message):
    (tmp_path / "made").mkdir()

    with pytest.raises(UsageError, match=message):
        merge_base.find(make(forked, tmp_path / "made"), "main")


@pytest.mark.parametrize("ref", ["main", "origin/main"])
def test_what_is_not_here_comes_with_the_command_that_brings_it(forked, tmp_path, ref):
    clone = forked.clone(tmp_path / "clone", "--single-branch", "--branch=change")

    with pytest.raises(UsageError) as raised:
        merge_base.find(clone.root, ref)
    clone.ask(*fetch(str(raised.value)))

    assert "`origin/main`" in str(raised.value)
    assert merge_base.find(clone.root, "origin/main").commit


def fetch(message):
    """Return the arguments of the first git command in a message."""
    return message.partition("`git ")[2].partition("`")[0].split()


@pytest.mark.parametrize(
    ("ref", "message"),
    [
        # A branch that is spelled alike is suggested before a fetch.
        ("mian", "did you mean `main`.* `git fetch origin mian:"),
        ("chnage", "did you mean `change`.* `git fetch origin chnage:"),
        # A commit is fetched by its hash.
        ("0123456789", "`git fetch origin 0123456789` brings it"),
        # What git would take for a switch.
        *((ref, "name a branch") for ref in ("", "--all", "-")),
    ],
)
def test_a_name_of_nothing_here_is_refused_with_what_to_do(forked, ref, message):
    with pytest.raises(UsageError, match=message):
        merge_base.find(forked.root, ref)


def test_what_two_names_of_a_remote_share_by_being_there_is_no_likeness(forked, tmp_path):
    clone = forked.clone(tmp_path / "clone")

    with pytest.raises(UsageError, match=r"did you mean `origin/main`"):
        merge_base.find(clone.root, "origin/mian")
    with pytest.raises(UsageError) as raised:
        merge_base.find(clone.root, "origin/wholly-other")
    assert "did you mean" not in str(raised.value)


def test_a_shallow_clone_is_told_how_to_get_its_history(forked, tmp_path):
    clone = forked.clone(tmp_path / "clone", "--depth=1", "--no-single-branch")

    with pytest.raises(CiPerfError, match="fetch-depth: 0") as raised:
        merge_base.find(clone.root, "origin/main")
    clone.ask("fetch", "--quiet", "--unshallow")

    assert raised.value.exit_code == ExitCode.NO_ANSWER
    assert merge_base.find(clone.root, "origin/main").commit


@pytest.mark.parametrize(
    ("ref", "later"), [("HEAD~1", "HEAD~1"), ("main", "origin/main"), ("origin/main",) * 2]
)
def test_what_a_shallow_clone_lacks_comes_with_its_history(forked, tmp_path, ref, later):
    clone = forked.clone(tmp_path / "clone", "--depth=1", "--branch=change")

    with pytest.raises(UsageError, match="fetch-depth: 0") as raised:
        merge_base.find(clone.root, ref)
    clone.ask(*fetch(str(raised.value)))

    assert merge_base.find(clone.root, later).commit == forked.ask("rev-parse", "change~1")


def test_the_hash_of_a_commit_that_a_shallow_clone_lacks_needs_its_history(forked, tmp_path):
    clone = forked.clone(tmp_path / "clone", "--depth=1", "--branch=change")
    base = forked.ask("rev-parse", "change~1")

    with pytest.raises(UsageError) as raised:
        merge_base.find(clone.root, base)
    clone.ask(*fetch(str(raised.value)))

    assert merge_base.find(clone.root, base).commit == base


@pytest.mark.parametrize("ref", ["HEAD~9", "nowhere^", "HEAD@{yesterweek}", ":/no such message"])
def test_what_leads_to_no_commit_is_nothing_to_be_fetched(forked, ref):
    with pytest.raises(UsageError, match="name a branch") as raised:
        merge_base.find(forked.root, ref)

    assert "git fetch" not in str(raised.value)


def test_unrelated_histories_have_no_base(forked):
    forked.ask("checkout", "--quiet", "--orphan", "island")
    forked.commit(code_py="island")

    with pytest.raises(UsageError, match="unrelated"):
        merge_base.find(forked.root, "main")


def test_a_repository_of_another_owner_is_told_how_to_be_trusted(forked, monkeypatch):
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")

    with pytest.raises(CiPerfError, match=r"safe\.directory") as raised:
        merge_base.find(forked.root, "main")

    assert raised.value.exit_code == ExitCode.NO_ANSWER
    assert "dubious ownership" in raised.value.output


def test_what_git_says_is_understood_in_any_language(tmp_path, monkeypatch):
    monkeypatch.setenv("LANGUAGE", "de")
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")

    with pytest.raises(UsageError, match="expected a git repository"):
        merge_base.find(tmp_path, "main")


def test_a_machine_without_git_is_told_to_install_it(forked, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", os.fspath(tmp_path))

    with pytest.raises(CiPerfError, match="install git") as raised:
        merge_base.find(forked.root, "main")

    assert raised.value.exit_code == ExitCode.NO_ANSWER
