"""A commit as a tree of files, by GitHub's API: for a job that has a token and no checkout."""

from collections.abc import Iterator
from typing import Literal

import msgspec

from ci_perf.errors import CiPerfError
from ci_perf.github import branches
from ci_perf.github.client import Client
from ci_perf.model.program import Blob, blob
from ci_perf.program.git_tree import ListedTree
from ci_perf.program.trees import IncomparableError

# GitHub allows a job 1,000 requests in an hour; a pull request could name more files than that.
_MAX_FETCHES = 200


class _TreeItem(msgspec.Struct):
    path: str
    mode: str
    type: Literal["blob", "tree", "commit"]
    sha: Blob


class _Listing(msgspec.Struct):
    tree: list[_TreeItem]
    truncated: bool


class GithubTree(ListedTree):
    """A commit on GitHub: one request lists all of it, and one more fetches each file that is read.

    Raises IncomparableError, also where GitHub has not answered or not listed all.
    """

    def __init__(self, client: Client, commit: str, *, prefix: str = "") -> None:
        self._client = client
        self._fetches = 0
        super().__init__(_listing(client, commit), prefix=prefix)

    def _fetch(self, sha: str, path: str) -> bytes:
        self._fetches += 1
        if self._fetches > _MAX_FETCHES:
            raise IncomparableError(f"{path} is one of more than {_MAX_FETCHES} files that differ")
        try:
            data = branches.blob(self._client, sha, what=path)
        except CiPerfError as error:
            raise IncomparableError(str(error)) from None
        if blob(data) != sha:
            raise IncomparableError(f"{path} is not what GitHub has listed")
        return data


def _listing(client: Client, commit: str) -> Iterator[tuple[str, str, str]]:
    what = f"the files of commit {commit[:12]}"
    try:
        listing = client.get(f"/git/trees/{commit}", _Listing, what=what, recursive="1")
    except CiPerfError as error:
        raise IncomparableError(str(error)) from None
    if listing.truncated:
        raise IncomparableError(f"{what} are more than GitHub lists")
    for item in listing.tree:
        yield item.mode, item.sha, item.path
