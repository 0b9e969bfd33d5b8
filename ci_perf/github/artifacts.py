"""Download an artifact of a workflow run, and read one file of it; anybody may have made both.

The size is bounded and the digest is checked. The archive stays in memory: nothing is unpacked to a
disk, and no name in it is used as a path.
"""

import hashlib
import io
import stat
import struct
import zipfile
import zlib

import msgspec

from ci_perf.errors import InvalidFileError, RefusedError
from ci_perf.github import runs
from ci_perf.github.client import Client

_ALGORITHM = "sha256:"
# A run of 100 workloads with raw blocks is about 2 MB, and a tenth of that when packed.
MAX_BYTES = 50 * 2**20
MAX_FILE_BYTES = 50 * 2**20
# An artifact of ours has a handful of files; each costs memory as soon as the list is read.
_MAX_LIST_BYTES = 2**20
_END = b"PK\x05\x06"
_END_BYTES, _MAX_COMMENT_BYTES = 22, 0xFFFF
_END_OF_LARGE = b"PK\x06\x07"
_LOCATOR_BYTES = 20
_PACKED = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}
_IS_ENCRYPTED = 0x1


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


def read_file(client: Client, run: int, name: str, file: str) -> bytes:
    """Return the file `file` of the artifact `name` that this run has uploaded.

    Raises GithubError; RefusedError: there is no such artifact, or it has expired;
    InvalidFileError: it is too large, damaged, or not what was uploaded.
    """
    where = describe(run, name)
    artifact = _newest(client, run, name)
    if artifact.expired:
        raise RefusedError(f"{where}: expected one that is kept, found it expired; measure again")
    if artifact.size_in_bytes > MAX_BYTES:
        raise InvalidFileError(
            f"{where}: expected at most {MAX_BYTES // 2**20} MiB, found "
            f"{artifact.size_in_bytes / 2**20:,.0f} MiB"
        )
    data = _download(client, artifact.id, where)
    _check_digest(data, artifact.digest, where)
    return unpack_file(data, file, where=where)


def describe(run: int, name: str) -> str:
    """Name an artifact in a message."""
    return f"artifact {name!r} of {runs.describe(run)}"


def unpack_file(
    archive: bytes,
    name: str,
    *,
    where: str,
    max_bytes: int = MAX_BYTES,
    max_file_bytes: int = MAX_FILE_BYTES,
) -> bytes:
    """Return the content of the file `name`. Raises InvalidFileError that begins with `where`.

    Refused: not an archive, one that is cut off or damaged, the file missing or there twice, a
    link, a folder, encrypted, packed in an unusual way, or too large.
    """
    if len(archive) > max_bytes:
        raise _too_large(where, max_bytes)
    _check_list(archive, where)
    try:
        with zipfile.ZipFile(io.BytesIO(archive)) as opened:
            entry = _only(opened, name, where)
            return _read(opened, entry, f"{where}: {name}", max_file_bytes)
    except (zipfile.BadZipFile, EOFError, NotImplementedError, OSError, zlib.error) as error:
        raise _damage_error(where, str(error)) from None
    except (UnicodeError, ValueError, struct.error):
        raise _damage_error(where, "impossible names or sizes") from None


def _newest(client: Client, run: int, name: str) -> _Artifact:
    """Choose the artifact of the last attempt: a repeated run may have several of one name."""
    where = describe(run, name)
    path = f"/actions/runs/{run}/artifacts"
    listed = client.get(path, _Artifacts, what=where, name=name, per_page=100)
    mine = [
        artifact for artifact in listed.artifacts if artifact.name == name and _is_of(artifact, run)
    ]
    if not mine:
        raise RefusedError(
            f"{where}: expected one, found none; has the job that measures uploaded it, under this "
            "name?"
        )
    return max(mine, key=lambda artifact: artifact.id)


def _is_of(artifact: _Artifact, run: int) -> bool:
    return artifact.workflow_run is None or artifact.workflow_run.id in {None, run}


def _download(client: Client, artifact: int, where: str) -> bytes:
    path = f"/actions/artifacts/{artifact}/zip"
    try:
        return client.download(path, what=where, max_bytes=MAX_BYTES)
    except InvalidFileError as error:
        raise InvalidFileError(f"{where}: {error}") from None


def _check_digest(data: bytes, digest: str | None, where: str) -> None:
    """Check the digest of the upload, where GitHub knows it; its Enterprise Server does not."""
    if digest is None:
        return
    actual = _ALGORITHM + hashlib.sha256(data).hexdigest()
    if actual != digest.lower():
        raise InvalidFileError(
            f"{where}: expected the digest {digest[:80]}, found {actual}; it is not what was "
            "uploaded, so nothing of it is used"
        )


def _check_list(archive: bytes, where: str) -> None:
    """Check the length of the list of files before anything reads it."""
    start = archive.rfind(_END, -(_END_BYTES + _MAX_COMMENT_BYTES))
    if start < 0 or len(archive) < start + _END_BYTES:
        raise _damage_error(where, "no end of an archive")
    (list_bytes,) = struct.unpack_from("<L", archive, start + 12)
    locator = archive[max(0, start - _LOCATOR_BYTES) : start]
    if list_bytes > _MAX_LIST_BYTES or locator.startswith(_END_OF_LARGE):
        raise InvalidFileError(f"{where}: expected a few files, found too many")


def _only(opened: zipfile.ZipFile, name: str, where: str) -> zipfile.ZipInfo:
    entries = [entry for entry in opened.infolist() if entry.filename == name]
    if not entries:
        raise InvalidFileError(
            f"{where}: expected {name} at its top, found none; upload that file itself, not a "
            "folder with it"
        )
    if len(entries) > 1:
        raise InvalidFileError(f"{where}: expected {name} once, found it {len(entries)} times")
    return entries[0]


def _read(opened: zipfile.ZipFile, entry: zipfile.ZipInfo, where: str, most: int) -> bytes:
    mode = entry.external_attr >> 16
    if stat.S_IFMT(mode) not in {0, stat.S_IFREG}:
        raise InvalidFileError(f"{where}: expected a file, found a link or something else")
    if entry.flag_bits & _IS_ENCRYPTED or entry.compress_type not in _PACKED:
        raise InvalidFileError(
            f"{where}: expected it stored or deflated, found another form of ZIP"
        )
    if entry.file_size > most:
        raise _too_large(where, most)
    with opened.open(entry) as file:
        return file.read(most)  # zipfile stops at the size that it lists, and checks the sum


def _too_large(where: str, limit: int) -> InvalidFileError:
    return InvalidFileError(f"{where}: expected at most {limit // 2**20} MiB, found more")


def _damage_error(where: str, found: str) -> InvalidFileError:
    return InvalidFileError(
        f"{where}: expected a zip archive, found a damaged one ({found}); was it cut off?"
    )
