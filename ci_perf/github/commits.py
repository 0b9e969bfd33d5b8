"""The files of a commit: read without a checkout, and changed by a commit on top of it."""

import base64
import binascii
import re
from collections.abc import Iterator, Mapping
from typing import Literal
from urllib.parse import quote

import msgspec

from ci_perf.errors import CiPerfError, InvalidFileError, RefusedError
from ci_perf.github.answers import PullRequest
from ci_perf.github.client import Client, GithubError
from ci_perf.model.program import Blob, blob
from ci_perf.program.tree_sources import ListedTree
from ci_perf.program.trees import IncomparableError

# Larger than any baseline; a hundred of them are read at once.
_MAX_FILE_BYTES = 5 * 2**20
# GitHub lists no more files of a folder.
_MAX_FILES = 1_000
_BLOB_SHA = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")

_COMMIT = """
mutation($input: CreateCommitOnBranchInput!) {
  createCommitOnBranch(input: $input) { commit { oid } }
}
"""
# GitHub allows a job 1,000 requests in an hour; a pull request could name more files than that.
_MAX_FETCHES = 200


class _Entry(msgspec.Struct):
    name: str
    type: str
    sha: str


class _Blob(msgspec.Struct):
    content: str
    encoding: str
    size: int | None = None


class _Commit(msgspec.Struct):
    oid: str


class _Made(msgspec.Struct, rename="camel"):
    commit: _Commit


class _Committed(msgspec.Struct, rename="camel"):
    create_commit_on_branch: _Made


def folder(client: Client, sha: str, path: str) -> dict[str, bytes]:
    """Return the files of one folder of a commit by their names: files only, never links.

    Raises GithubError, and InvalidFileError where it is no folder, or has too much in it.
    """
    what = f"{path} in commit {sha[:12]}"
    of_any: type[list[_Entry] | _Entry] = list[_Entry] | _Entry  # type: ignore[assignment]  # a union is no class to mypy
    try:
        listed = client.get(f"/contents/{quote(path)}", of_any, what=what, ref=sha)
    except GithubError as error:
        if error.status == 404:
            return {}
        raise
    if isinstance(listed, _Entry):
        raise InvalidFileError(f"{what}: expected a folder, found a {listed.type[:20]}")
    mine = {entry.name: entry.sha for entry in listed if entry.type == "file"}
    if len(listed) >= _MAX_FILES:
        raise InvalidFileError(f"{what}: expected fewer than {_MAX_FILES:,} files, found more")
    return {name: read_blob(client, of, what=f"{path}/{name}") for name, of in sorted(mine.items())}


def read_blob(client: Client, sha: str, *, what: str) -> bytes:
    """Return the content of one file. Raises GithubError and InvalidFileError."""
    if not _BLOB_SHA.fullmatch(sha):
        raise InvalidFileError(f"{what}: expected a file that GitHub keeps, found none")
    return _decode_blob(client.get(f"/git/blobs/{sha}", _Blob, what=what), what)


def commit(client: Client, pull: PullRequest, files: Mapping[str, bytes], *, message: str) -> str:
    """Put `files` on top of the head of a pull request, if that is still the head of its branch.

    Return the SHA of the commit. Raises GithubError, and RefusedError where GitHub makes none.
    """
    headline, _, body = message.partition("\n\n")
    branch = {
        "repositoryNameWithOwner": f"{client.owner}/{client.name}",
        "branchName": pull.head.ref,
    }
    additions = [
        {"path": path, "contents": base64.b64encode(content).decode()}
        for path, content in sorted(files.items())
    ]
    variables = {
        "branch": branch,
        "expectedHeadOid": pull.head.sha,
        "message": {"headline": headline, "body": body},
        "fileChanges": {"additions": additions},
    }
    what = f"commit on {pull.head.ref}"
    try:
        made = client.query(_COMMIT, _Committed, what=what, input=variables)
    except GithubError as error:
        if error.status or error.is_unanswered:
            raise
        raise RefusedError(f"{error}; has somebody pushed meanwhile?") from None
    return made.create_commit_on_branch.commit.oid


def _decode_blob(blob: _Blob, what: str) -> bytes:
    if blob.encoding != "base64" or (blob.size or 0) > _MAX_FILE_BYTES:
        raise InvalidFileError(
            f"{what}: expected at most {_MAX_FILE_BYTES // 2**20} MiB, found more"
        )
    try:
        return base64.b64decode(blob.content)
    except binascii.Error:
        raise InvalidFileError(f"{what}: expected base64, found something else") from None


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
        super().__init__(_list_tree(client, commit), prefix=prefix)

    def _fetch(self, sha: str, path: str) -> bytes:
        self._fetches += 1
        if self._fetches > _MAX_FETCHES:
            raise IncomparableError(f"{path}: more than {_MAX_FETCHES} files differ")
        try:
            data = read_blob(self._client, sha, what=path)
        except CiPerfError as error:
            raise IncomparableError(str(error)) from None
        if blob(data) != sha:
            raise IncomparableError(f"{path} is not what GitHub has listed")
        return data


def _list_tree(client: Client, commit: str) -> Iterator[tuple[str, str, str]]:
    what = f"the files of commit {commit[:12]}"
    try:
        listing = client.get(f"/git/trees/{commit}", _Listing, what=what, recursive="1")
    except CiPerfError as error:
        raise IncomparableError(str(error)) from None
    if listing.truncated:
        raise IncomparableError(f"{what}: GitHub lists only some of them")
    for item in listing.tree:
        yield item.mode, item.sha, item.path
