"""A commit on GitHub as a tree: what is listed, fetched, and cannot be compared."""

import pytest

from ci_perf.github.commits import GithubTree
from ci_perf.model.program import Program, blob
from ci_perf.program.trees import EntryKind, IncomparableError
from ci_perf.same_program import proof
from tests.fakes.github import faults
from tests.fakes.github.fixtures import on_github_and_ghes
from tests.fakes.github.state import Link, Submodule
from tests.integration.github.stage import a_client

NET = b"def used():\n    return 1\n\ndef unused():\n    return 2\n"
BASE = {
    "src/net.py": NET,
    "src/link.py": Link(b"net.py"),
    "data/labels.json": b"[1]",
    "vendor": Submodule(b"a" * 40),
}


def a_tree(github, changes=(), **more):
    sha = github.state.write_commit({**BASE, **dict(changes)})
    return GithubTree(a_client(github), sha, **more)


def recorded():
    paths = {"src/net.py": f"code {blob(NET)}", "data/labels.json": f"file {blob(b'[1]')}"}
    return Program(workload="w", paths=paths)


def said(tree):
    return proof.find_difference(recorded(), tree)


@on_github_and_ghes
def test_one_request_compares_a_commit_in_which_no_file_differs(github):
    assert said(a_tree(github)) == ""
    assert len(github.requests) == 1


def test_a_file_that_differs_is_fetched_and_parsed(github):
    a_tree(github)  # git keeps what was recorded
    same = a_tree(github, {"src/net.py": NET + b"# a comment"})
    other = a_tree(github, {"src/net.py": NET.replace(b"return 1", b"return 3")})

    assert said(same) == ""
    assert said(other) == "src/net.py differs"
    assert len(github.requests) == 9


def test_links_submodules_and_folders_are_told_apart(github):
    tree = a_tree(github)

    assert tree.read("src/link.py") == NET
    entry = tree.find_entry("src/link.py")
    assert entry is not None
    assert (entry.kind, entry.target) == (EntryKind.LINK, "net.py")
    assert tree.names("") == ("data", "src", "vendor")
    assert tree.names("src") == ("link.py", "net.py")
    with pytest.raises(IncomparableError, match="submodule"):
        tree.blob("vendor/x.py")


def test_the_root_may_be_a_folder_of_the_repository(github):
    tree = a_tree(github, prefix="src")

    assert tree.names("") == ("link.py", "net.py")
    assert tree.blob("net.py") == blob(NET)


def test_a_list_that_github_has_cut_cannot_be_compared(github):
    github.state.most_tree_items = 3

    with pytest.raises(IncomparableError, match="GitHub lists only some of them"):
        a_tree(github)


def test_a_commit_that_github_does_not_know_cannot_be_compared(github):
    github.fail_next("GET", r"/git/trees/", faults.NOT_FOUND)

    with pytest.raises(IncomparableError, match="the files of commit"):
        a_tree(github)


def test_a_file_that_github_does_not_give_differs(github):
    tree = a_tree(github, {"src/net.py": NET + b"#"})
    github.fail_next("GET", r"/git/blobs/", faults.NOT_FOUND)

    assert said(tree).startswith("src/net.py")


def test_a_file_that_github_gives_otherwise_than_it_has_listed_it_differs(github):
    tree = a_tree(github, {"src/net.py": NET + b"#"})
    other = b'{"content": "eA==", "encoding": "base64", "size": 1}'
    github.fail_next("GET", r"/git/blobs/", faults.Answered(status=200, body=other))

    assert "is not what GitHub has listed" in said(tree)


def test_a_file_that_is_too_large_differs(github):
    tree = a_tree(github, {"src/net.py": b"#" * (5 * 2**20 + 1)})

    assert "expected at most 5 MiB" in said(tree)


def test_a_pull_request_cannot_have_many_files_fetched(github):
    many = {f"data/{n}.json": b"%d" % n for n in range(201)}
    tree = a_tree(github, many)

    with pytest.raises(IncomparableError, match="more than 200 files"):
        [tree.read(path) for path in many]
