"""One artifact of one workflow run: by its exact name, of bounded size, as its digest says."""

import hashlib

import msgspec

from ci_perf.errors import InvalidFileError, RefusedError
from ci_perf.github import archive, runs
from ci_perf.github.client import Client

_ALGORITHM = "sha256:"


class _OfRun(msgspec.Struct):
    id: int | None = None


class _Artifact(msgspec.Struct):
    id: int
    name: str
    size_in_bytes: int
    expired: bool
    digest: str | None = None
    workflow_run: _OfRun | None = None


class _Artifacts(msgspec.Struct):
    artifacts: list[_Artifact]


def member(client: Client, run: int, name: str, file: str) -> bytes:
    """Return the file `file` of the artifact `name` of this very run, as it was uploaded.

    Raises GithubError; RefusedError: no such artifact, or it is gone; InvalidFileError: its data
    are not what they must be.
    """
    where = what(run, name)
    found = _newest(client, run, name)
    if found.expired:
        raise RefusedError(f"{where}: expected one that is kept, found it expired; measure again")
    if found.size_in_bytes > archive.MAX_BYTES:
        raise InvalidFileError(
            f"{where}: expected at most {archive.MAX_BYTES // 2**20} MiB, found "
            f"{found.size_in_bytes / 2**20:,.0f} MiB"
        )
    data = _download(client, found.id, where)
    _check_digest(data, found.digest, where)
    return archive.member(data, file, where=where)


def what(run: int, name: str) -> str:
    """Name an artifact in a message."""
    return f"artifact {name!r} of {runs.what(run)}"


def _newest(client: Client, run: int, name: str) -> _Artifact:
    """Choose that of the last attempt: a run that is repeated may have several of one name."""
    where = what(run, name)
    path = f"/actions/runs/{run}/artifacts"
    listed = client.get(path, _Artifacts, what=where, name=name, per_page=100)
    mine = [one for one in listed.artifacts if one.name == name and _is_of(one, run)]
    if not mine:
        raise RefusedError(
            f"{where}: expected one, found none; has the job that measures uploaded it, under this "
            "name?"
        )
    return max(mine, key=lambda one: one.id)


def _is_of(one: _Artifact, run: int) -> bool:
    return one.workflow_run is None or one.workflow_run.id in {None, run}


def _download(client: Client, artifact: int, where: str) -> bytes:
    path = f"/actions/artifacts/{artifact}/zip"
    try:
        return client.download(path, what=where, max_bytes=archive.MAX_BYTES)
    except InvalidFileError as error:
        raise InvalidFileError(f"{where}: {error}") from None


def _check_digest(data: bytes, digest: str | None, where: str) -> None:
    """Compare with what was uploaded, where GitHub knows that; its Enterprise Server does not."""
    if digest is None:
        return
    found = _ALGORITHM + hashlib.sha256(data).hexdigest()
    if found != digest.lower():
        raise InvalidFileError(
            f"{where}: expected the digest {digest[:80]}, found {found}; it is not what was "
            "uploaded, so nothing of it is used"
        )
