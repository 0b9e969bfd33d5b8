"""Read the files of a commit without a checkout, and make one commit on top of it."""

import base64
import binascii
import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote

import msgspec

from ci_perf.errors import InvalidFileError, RefusedError
from ci_perf.github.client import Client
from ci_perf.github.failures import GithubError

# Larger than any baseline; a hundred of them are read at once.
_MAX_FILE_BYTES = 5 * 2**20
# GitHub lists no more files of a folder.
_MAX_FILES = 1_000
_BLOB_SHA = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")

_COMMIT = """
mutation($input: CreateCommitOnBranchInput!) {
  createCommitOnBranch(input: $input) { commit { oid url } }
}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewCommit:
    """The commit that we have made."""

    sha: str
    url: str


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
    url: str


class _Made(msgspec.Struct, rename="camel"):
    commit: _Commit


class _Answer(msgspec.Struct, rename="camel"):
    create_commit_on_branch: _Made


class _Parent(msgspec.Struct):
    sha: str


class _Known(msgspec.Struct):
    message: str
    parents: list[_Parent]
    html_url: str = ""


class _Object(msgspec.Struct):
    sha: str


class _Ref(msgspec.Struct):
    object: _Object


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
    return {name: blob(client, of, what=f"{path}/{name}") for name, of in sorted(mine.items())}


def file(client: Client, sha: str, path: str) -> bytes | None:
    """Return one file of a commit, if it is there. Raises GithubError and InvalidFileError."""
    try:
        answer = client.get(f"/contents/{quote(path)}", _Blob, what=path, ref=sha)
    except GithubError as error:
        if error.status == 404:
            return None
        raise
    return _decoded(answer, path)


def blob(client: Client, sha: str, *, what: str) -> bytes:
    """Return the content of one file. Raises GithubError and InvalidFileError."""
    if not _BLOB_SHA.fullmatch(sha):
        raise InvalidFileError(f"{what}: expected a file that GitHub keeps, found none")
    return _decoded(client.get(f"/git/blobs/{sha}", _Blob, what=what), what)


def is_on_top(client: Client, sha: str, parent: str, *, line: str) -> bool:
    """Whether a commit lies on `parent` (or its first digits) and has this line in its message.

    Raises GithubError.
    """
    answer = client.get(f"/git/commits/{sha}", _Known, what=f"commit {sha[:12]}")
    is_there = any(known.sha.startswith(parent) for known in answer.parents)
    return is_there and line in answer.message.splitlines()


def commit(
    client: Client, branch: str, parent: str, files: Mapping[str, bytes], *, message: str
) -> NewCommit:
    """Put `files` on top of `parent`, if that is still the head of `branch`.

    Sent twice, it makes one commit: by then the head is another one. Raises RefusedError where the
    branch has moved, and GithubError.
    """
    headline, _, body = message.partition("\n\n")
    what = f"commit on {branch}"
    variables = {
        "branch": {
            "repositoryNameWithOwner": f"{client.owner}/{client.name}",
            "branchName": branch,
        },
        "expectedHeadOid": parent,
        "message": {"headline": headline, "body": body},
        "fileChanges": {
            "additions": [
                {"path": path, "contents": base64.b64encode(content).decode()}
                for path, content in sorted(files.items())
            ]
        },
    }
    try:
        made = client.query(_COMMIT, _Answer, what=what, input=variables)
    except GithubError:
        if (done := _made_after_all(client, branch, parent, message)) is None:
            raise
        return done
    new = made.create_commit_on_branch.commit
    return NewCommit(sha=new.oid, url=new.url)


def _decoded(blob: _Blob, what: str) -> bytes:
    if blob.encoding != "base64" or (blob.size or 0) > _MAX_FILE_BYTES:
        raise InvalidFileError(
            f"{what}: expected at most {_MAX_FILE_BYTES // 2**20} MiB, found more"
        )
    try:
        return base64.b64decode(blob.content)
    except binascii.Error:
        raise InvalidFileError(f"{what}: expected base64, found something else") from None


def _made_after_all(client: Client, branch: str, parent: str, message: str) -> NewCommit | None:
    """Look, after a failure, whether the commit was made all the same; `None` where it was not.

    Raises RefusedError where the branch has moved.
    """
    head = _head(client, branch)
    if head == parent:
        return None
    answer = client.get(f"/git/commits/{head}", _Known, what=f"commit {head[:12]}")
    is_on_top = [known.sha for known in answer.parents] == [parent]
    if is_on_top and answer.message.strip() == message.strip():
        return NewCommit(sha=head, url=answer.html_url)
    raise RefusedError(
        f"{branch}: expected {parent[:12]} at its head, found {head[:12]}: somebody has pushed "
        "meanwhile, and that is not what was measured"
    )


def _head(client: Client, branch: str) -> str:
    path = f"/git/ref/heads/{quote(branch)}"
    return client.get(path, _Ref, what=f"branch {branch}").object.sha
