import os
import subprocess

import pytest

from ci_perf.model import codec
from ci_perf.model.run import Source
from ci_perf.system import git


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """A repository with one commit, seen as on a laptop: no CI, no configuration of the user."""
    for name in ("GITHUB_SHA", "GITHUB_HEAD_REF"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    ask(tmp_path, "init", "--quiet", "--initial-branch=main")
    (tmp_path / "file").write_text("one")
    ask(tmp_path, "add", "file")
    me = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    ask(tmp_path, *me, "commit", "--quiet", "--message=first")
    return tmp_path


def ask(root, *arguments):
    done = subprocess.run(["git", "-C", root, *arguments], check=True, capture_output=True)
    return done.stdout.decode().strip()


def test_the_commit_and_its_branch_are_named(repository):
    found = git.source(repository)

    assert found == Source(commit=ask(repository, "rev-parse", "HEAD"), branch="main", dirty=False)


def test_a_changed_file_is_noticed_and_a_new_one_is_not(repository):
    (repository / "run.json").write_text("{}")
    assert not git.source(repository).dirty

    (repository / "file").write_text("two")
    assert git.source(repository).dirty


def test_outside_a_repository_nothing_is_claimed(tmp_path, monkeypatch):
    monkeypatch.delenv("GITHUB_SHA", raising=False)
    monkeypatch.delenv("GITHUB_HEAD_REF", raising=False)

    assert git.source(tmp_path) == Source(commit="unknown", branch="unknown", dirty=False)


def test_where_git_is_silent_the_ci_answers(tmp_path, monkeypatch):
    monkeypatch.setenv("GITHUB_SHA", "a1b2c3")
    monkeypatch.setenv("GITHUB_HEAD_REF", "faster")

    found = git.source(tmp_path)

    assert (found.commit, found.branch) == ("a1b2c3", "faster")


def test_names_of_any_length_and_encoding_fit_into_a_document(repository, monkeypatch):
    monkeypatch.setenv("GITHUB_HEAD_REF", os.fsdecode(b"caf\xe9-") + "x" * 20_000)

    branch = git.source(repository).branch

    assert branch == "caf?-" + "x" * 194 + "…"


def test_a_branch_in_another_encoding_is_no_error(repository):
    ask(repository, "checkout", "--quiet", "-b", os.fsdecode(b"caf\xe9"))

    found = git.source(repository)

    assert found.branch == "caf\N{REPLACEMENT CHARACTER}"
    assert codec.decode(codec.encode(found), Source, name="source") == found


@pytest.mark.parametrize("name", ["GITHUB_TOKEN", "GH_TOKEN", "ACTIONS_RUNTIME_TOKEN"])
def test_git_is_given_no_token(name):
    assert git.environment({name: "secret", "HOME": "/root"}).keys() & {name, "HOME"} == {"HOME"}
