"""Documents on disk: read with a size limit, written whole or not at all."""

import errno
import os
import tempfile
from pathlib import Path
from typing import TypeVar

import msgspec

from ci_perf.errors import CannotWriteError, InvalidFileError
from ci_perf.model import codec

T = TypeVar("T", bound=msgspec.Struct)

# A run of 100 workloads with raw blocks is about 2 MB; more than this is not one of our files.
MAX_BYTES = 50 * 2**20


def read_text(path: Path) -> str:
    """Return the text of `path`.

    Raises InvalidFileError: absent, a folder, too large, not UTF-8.
    """
    try:
        if path.is_dir():
            raise InvalidFileError(f"{path}: expected a file, found a folder")
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise InvalidFileError(f"{path}: expected a file, found nothing") from None
    except OSError as error:
        raise InvalidFileError(f"{path}: cannot be read: {error.strerror}") from None
    if len(data) > MAX_BYTES:
        msg = (
            f"{path}: expected at most {MAX_BYTES // 2**20} MiB, found more; is it a ci-perf file?"
        )
        raise InvalidFileError(msg)
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        msg = f"{path}: expected UTF-8, found byte {data[error.start]:#04x} at offset {error.start}"
        raise InvalidFileError(msg) from None


def read(path: Path, kind: type[T]) -> T:
    """One document of `kind`. Raises InvalidFileError that begins with the path."""
    text = read_text(path)
    if not text.strip():
        raise InvalidFileError(
            f"{path}: expected a JSON document written by ci-perf, found nothing"
        )
    return codec.decode(text, kind, name=str(path))


def write(path: Path, document: msgspec.Struct) -> None:
    """Write one document whole or not at all. Raises CannotWriteError."""
    write_text(path, codec.encode(document))


def write_text(path: Path, text: str) -> None:
    """Write `text` whole or not at all: a crash or a full disk leaves the old file as it was."""
    write_bytes(path, text.encode())


def write_bytes(path: Path, data: bytes) -> None:
    """Write `data` whole or not at all. Devices and pipes (/dev/stdout) are written directly.

    Raises CannotWriteError.
    """
    try:
        if path.exists() and not path.is_file() and not path.is_dir():
            path.write_bytes(data)
        else:
            _replace(path, data)
    except OSError as error:
        msg = f"{path}: cannot be written: {error.strerror}; what stood there before is intact"
        raise CannotWriteError(msg) from None


def check_target(path: Path) -> None:
    """Find out before the work, not after it, that `path` cannot be written.

    Raises CannotWriteError.
    """
    if path.exists() and not path.is_file() and not path.is_dir():
        return  # a device or a pipe: to try it would be to write to it
    try:
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        with tempfile.TemporaryFile(dir=path.resolve().parent):
            pass
    except OSError as error:
        raise CannotWriteError(f"{path}: cannot be written: {error.strerror}") from None


def make_folder(path: Path) -> None:
    """Make a folder and what leads to it. Raises CannotWriteError."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CannotWriteError(f"{path}: cannot be made: {error.strerror}") from None


def _replace(path: Path, data: bytes) -> None:
    target = path.resolve()  # a link stays a link
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        Path(name).chmod(target.stat().st_mode & 0o777 if target.exists() else 0o666 & ~_umask())
        Path(name).replace(target)
    except BaseException:
        Path(name).unlink()
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
