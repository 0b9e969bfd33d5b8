"""One file of a zip archive that anybody may have made: in memory, by its fixed name. Pure.

Nothing is unpacked to a disk, and no name in the archive is ever used as a path.
"""

import io
import stat
import struct
import zipfile
import zlib

from ci_perf.errors import InvalidFileError

# A run of 100 workloads with raw blocks is about 2 MB, and a tenth of it when it is packed.
MAX_BYTES = 50 * 2**20
_MAX_MEMBER_BYTES = 50 * 2**20
# An artifact of ours has a handful of files; each costs memory as soon as the list is read.
_MAX_LIST_BYTES = 2**20
_END = b"PK\x05\x06"
_END_BYTES, _MAX_COMMENT_BYTES = 22, 0xFFFF
_END_OF_LARGE = b"PK\x06\x07"
_LOCATOR_BYTES = 20
_PACKED = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}
_IS_ENCRYPTED = 0x1


def member(archive: bytes, name: str, *, where: str) -> bytes:
    """Return the content of the file `name`. Raises InvalidFileError that begins with `where`.

    Refused: not an archive, one that is cut off or damaged, the file missing or there twice, a
    link, a folder, encrypted, packed in an unusual way, or too large.
    """
    _check_list(archive, where)
    try:
        with zipfile.ZipFile(io.BytesIO(archive)) as opened:
            return _read(opened, _only(opened, name, where), f"{where}: {name}")
    except (zipfile.BadZipFile, EOFError, NotImplementedError, OSError, zlib.error) as error:
        raise _damaged(where, str(error)) from None
    except (UnicodeError, ValueError, struct.error):
        raise _damaged(where, "names or sizes that cannot be") from None


def _check_list(archive: bytes, where: str) -> None:
    """Look how long the list of files is before anything reads it."""
    start = archive.rfind(_END, -(_END_BYTES + _MAX_COMMENT_BYTES))
    if len(archive) > MAX_BYTES:
        raise _too_large(where, MAX_BYTES)
    if start < 0 or len(archive) < start + _END_BYTES:
        raise _damaged(where, "no end of an archive")
    (list_bytes,) = struct.unpack_from("<L", archive, start + 12)
    locator = archive[max(0, start - _LOCATOR_BYTES) : start]
    if list_bytes > _MAX_LIST_BYTES or locator.startswith(_END_OF_LARGE):
        raise InvalidFileError(f"{where}: expected a handful of files, found far too many")


def _only(opened: zipfile.ZipFile, name: str, where: str) -> zipfile.ZipInfo:
    found = [one for one in opened.infolist() if one.filename == name]
    if not found:
        raise InvalidFileError(
            f"{where}: expected {name} at its top, found none; upload that file itself, not a "
            "folder with it"
        )
    if len(found) > 1:
        raise InvalidFileError(f"{where}: expected {name} once, found it {len(found)} times")
    return found[0]


def _read(opened: zipfile.ZipFile, found: zipfile.ZipInfo, where: str) -> bytes:
    mode = found.external_attr >> 16
    if stat.S_IFMT(mode) not in {0, stat.S_IFREG}:
        raise InvalidFileError(f"{where}: expected a file, found a link or something else")
    if found.flag_bits & _IS_ENCRYPTED or found.compress_type not in _PACKED:
        raise InvalidFileError(f"{where}: expected it plain or deflated, found it packed otherwise")
    if found.file_size > _MAX_MEMBER_BYTES:
        raise _too_large(where, _MAX_MEMBER_BYTES)
    with opened.open(found) as file:
        data = file.read(_MAX_MEMBER_BYTES + 1)
    if len(data) > _MAX_MEMBER_BYTES:
        raise _too_large(where, _MAX_MEMBER_BYTES)
    return data


def _too_large(where: str, limit: int) -> InvalidFileError:
    return InvalidFileError(f"{where}: expected at most {limit // 2**20} MiB, found more")


def _damaged(where: str, found: str) -> InvalidFileError:
    return InvalidFileError(
        f"{where}: expected a zip archive, found a damaged one ({found}); was it cut off?"
    )
