"""What counts as a checkout that has changed while it was measured."""

import os

import pytest

from ci_perf.worktree.checkout_state import describe_move, read_state
from tests import repositories


@pytest.fixture
def sides(tmp_path):
    """Return a head and its base, each with the tracked files a, b and inner/c."""
    git = repositories.init(tmp_path / "head")
    (git.root / "inner").mkdir()
    (git.root / "inner/c").write_text("1")
    git.commit(a="1", b="1")
    git.ask("worktree", "add", "--quiet", "--detach", tmp_path / "base")
    return git, tmp_path / "base"


def describe(sides, change, *, inner="", has_pairs=True):
    """Return what is said of a change to both sides."""
    git, base = sides
    head = git.root / inner
    before = read_state(head, base / inner)
    change()
    return describe_move(before, read_state(head, base / inner), has_pairs=has_pairs)


def test_nothing_is_said_of_a_checkout_that_stays(sides):
    assert describe(sides, (sides[0].root / "untracked").touch) == ""


def test_a_head_that_moves_is_named(sides):
    git, _ = sides
    first = git.ask("rev-parse", "HEAD")

    said = describe(sides, git.commit, has_pairs=False)

    assert said == f"HEAD was {first}, and is {git.ask('rev-parse', 'HEAD')}"


@pytest.mark.parametrize(("inner", "called"), [("", "a"), ("inner", "../a")])
def test_a_file_that_is_written_in_the_head_alone_is_named(sides, inner, called):
    file = sides[0].root / "a"

    said = describe(sides, lambda: file.write_text("22"), inner=inner)

    assert said == f"written in the head alone: {called}"
    assert describe(sides, lambda: file.write_text("3"), has_pairs=False) == ""
    assert describe(sides, file.unlink)


def test_a_branch_that_is_left_and_found_again_is_a_change(sides):
    git, _ = sides
    git.ask("switch", "--quiet", "--create", "other")
    git.commit(a="another")
    git.ask("switch", "--quiet", "main")

    def switch():
        git.ask("switch", "--quiet", "other")
        git.ask("switch", "--quiet", "main")

    assert describe(sides, switch) == "written in the head alone: a"


def test_a_command_that_rewrites_a_file_on_both_sides_is_no_change(sides):
    """Also where only the head's then differs from its commit."""
    git, base = sides

    def rewrite():
        (git.root / "a").write_text("2")
        (base / "a").write_text("1")
        os.utime(base / "b")
        (git.root / "b").unlink()

    assert describe(sides, rewrite) == ""


def test_a_folder_outside_of_any_repository_has_no_state(tmp_path):
    before = read_state(tmp_path, None)
    (tmp_path / "a").touch()

    assert describe_move(before, read_state(tmp_path, None), has_pairs=True) == ""
