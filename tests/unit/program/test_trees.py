"""Links, patterns, attributes and what cannot be compared, in a checkout and in its commit."""

import os

import pytest

from ci_perf.model.program import blob
from ci_perf.program import trees
from ci_perf.program.tree_sources import FolderTree, GitTree
from ci_perf.program.trees import EntryKind, IncomparableError
from tests import repositories


@pytest.fixture
def project(tmp_path):
    """A repository with files, folders and links within it."""
    made = repositories.init(tmp_path / "project")
    root = made.root
    for path in ("a.txt", "data/b.json", "data/deep/c.json", "data/deep/d.txt"):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(path)
    (root / "link.txt").symlink_to("data/../a.txt")
    (root / "folder").symlink_to("data/deep")
    (root / "twice").symlink_to("folder/c.json")
    return made


@pytest.fixture(params=["checkout", "commit", "commit below a folder"])
def view(request, project, tmp_path):
    """Both trees of the project, and one whose root is a folder of a larger repository."""

    def made():
        if request.param == "checkout":
            return FolderTree(project.root)
        project.commit()
        if request.param == "commit":
            return GitTree(project.root, "HEAD")
        larger = repositories.init(tmp_path / "larger")
        (project.root / ".git").rename(tmp_path / "git")
        project.root.rename(larger.root / "inner")
        larger.commit()
        return GitTree(larger.root, "HEAD", prefix="inner")

    return made


def test_files_are_read_through_links(view):
    tree = view()

    assert tree.read("a.txt") == tree.read("link.txt") == b"a.txt"
    assert tree.read("twice") == tree.read("folder/c.json") == b"data/deep/c.json"
    assert tree.blob("link.txt") == blob(b"a.txt")
    assert tree.read("data") is tree.read("nothing") is tree.blob("a.txt/b") is None


def test_folders_have_names_and_files_have_none(view):
    tree = view()

    assert tree.names("folder") == ("c.json", "d.txt")
    assert {*tree.names("")} - {".git"} == {"a.txt", "data", "folder", "link.txt", "twice"}
    assert tree.names("a.txt") is tree.names("nothing") is None


def test_entries_are_found_without_following_links(view):
    tree = view()

    def find(path):
        entry = tree.find_entry(path)
        return entry and (entry.kind, entry.target)

    assert find("") == find("data/deep") == (EntryKind.FOLDER, "")
    assert find("data/deep/c.json") == (EntryKind.FILE, "")
    assert find("folder") == (EntryKind.LINK, "data/deep")
    assert find("folder/c.json") is find("a.txt/b") is find("no/thing") is None


def test_patterns_name_files(view):
    tree = view()

    assert tree.glob("data/**/*.json") == ["data/b.json", "data/deep/c.json"]
    assert tree.glob("*.txt") == ["a.txt", "link.txt"]
    assert tree.glob("data/**") == ["data/b.json", "data/deep/c.json", "data/deep/d.txt"]
    assert tree.glob("folder/*.json") == ["folder/c.json"]
    assert tree.glob("nothing/**") == []
    with pytest.raises(IncomparableError, match="folder is a link to a folder"):
        tree.glob("**/*.json")


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("/etc/passwd", "leads nowhere in the repository"),
        ("../../other", "leads out of the repository"),
        ("bad", "leads nowhere in the repository"),
    ],
)
def test_a_link_that_cannot_be_followed_cannot_be_compared(project, view, target, message):
    (project.root / "bad").symlink_to(target)
    tree = view()

    for look in (tree.read, tree.blob, tree.names):
        with pytest.raises(IncomparableError, match=f"bad is a link that {message}"):
            look("bad")


def test_a_path_that_leads_out_cannot_be_compared(view):
    tree = view()

    for path in ("../x", "data/../../x", "/etc/passwd"):
        with pytest.raises(IncomparableError, match="leads out of the repository"):
            tree.read(path)


def test_a_pipe_cannot_be_compared(project):
    os.mkfifo(project.root / "pipe")
    tree = FolderTree(project.root)

    with pytest.raises(IncomparableError, match="pipe is no regular file"):
        tree.read("pipe")
    with pytest.raises(IncomparableError, match="pipe is no file or folder"):
        tree.glob("pipe")


def test_a_submodule_cannot_be_compared_in_a_commit(project, tmp_path):
    inner = repositories.init(tmp_path / "inner")
    inner.commit(x_py="1")
    project.commit()
    project.ask("submodule", "add", "--quiet", f"file://{inner.root}", "sub")
    project.commit()
    tree = GitTree(project.root, "HEAD")

    with pytest.raises(IncomparableError, match=r"sub/x\.py lies in a submodule"):
        tree.blob("sub/x.py")
    assert FolderTree(project.root).read("sub/x.py") == b"1"


def test_a_commit_that_is_not_there_cannot_be_compared(project):
    for commit in ("0" * 40, "--output=x"):
        with pytest.raises(IncomparableError):
            GitTree(project.root, commit)


@pytest.mark.parametrize(
    ("path", "pattern", "is_match"),
    [
        ("a/b/c.json", "a/**/*.json", True),
        ("a/c.json", "a/**/*.json", True),
        ("a/b/c.json", "a/*.json", False),
        ("a", "**", True),
        ("a/b/c/d", "a/**/c/**", True),
        ("a/b", "a", False),
        ("A.json", "a.json", False),
        ("a/x/b/x/c", "**/x/**/x/*", True),
        ("/".join("a" * 200), "/".join(["**", "a"] * 100), True),
        ("/".join("a" * 200), "/".join([*["**", "a"] * 100, "b"]), False),
    ],
)
def test_a_pattern_matches_as_git_reads_it(path, pattern, is_match):
    assert trees.matches_pattern(path, pattern) == is_match
