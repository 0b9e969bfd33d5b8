"""Documents on disk: read with a size limit, written whole or not at all."""

import errno
import hashlib
import os
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import msgspec

from ci_perf.errors import CannotWriteError, InvalidFileError, UsageError
from ci_perf.model import codec

T = TypeVar("T", bound=msgspec.Struct)

# A run of 100 workloads with raw blocks is about 2 MB; more than this is not one of our files.
MAX_BYTES = 50 * 2**20
# Hashing takes some seconds per GiB.
_LARGEST_HASHED = 2**30
_CHUNK_BYTES = 2**20

_KINDS = {
    stat.S_IFREG: "a regular file",
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def read_text(path: Path) -> str:
    """Return the text of `path`.

    Raises InvalidFileError: absent, no regular file, too large, not UTF-8. Pipes and devices are
    read below /dev only, where a shell puts the pipe of `<(…)`: any other one, such as a pipe in
    the place of a baseline, may have no writer.
    """
    is_of_shell = path.is_relative_to("/dev")
    try:
        mode = path.stat().st_mode
        if not (stat.S_ISREG(mode) or is_of_shell):
            raise InvalidFileError(f"{path}: expected a file, found {kind(mode)}")
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise InvalidFileError(f"{path}: this file does not exist") from None
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


def kind(mode: int) -> str:
    """Name the kind of file that a mode of `stat` stands for: "a pipe"."""
    return _KINDS.get(stat.S_IFMT(mode), "something else")


def read(path: Path, kind: type[T]) -> T:
    """One document of `kind`. Raises InvalidFileError that begins with the path."""
    text = read_text(path)
    if not text.strip():
        raise InvalidFileError(
            f"{path}: expected a JSON document written by ci-perf, found an empty file"
        )
    return codec.decode(text, kind, name=str(path))


def is_missing(path: Path) -> bool:
    """Whether nothing is at `path`; a path that cannot be looked up is refused when it is read."""
    try:
        return not path.exists()
    except OSError:
        return False


def write(path: Path, document: msgspec.Struct) -> None:
    """Write one document whole or not at all.

    Raises CannotWriteError, also for a document that we would refuse to read.
    """
    text = codec.encode(document)
    if (size := len(text.encode())) > MAX_BYTES:
        raise CannotWriteError(
            f"{path}: cannot be written: it would have {size / 2**20:.0f} MiB, and ci-perf reads "
            f"{MAX_BYTES // 2**20} MiB at most; measure fewer workloads at once"
        )
    try:
        codec.decode(text, type(document), name="the document")
    except InvalidFileError as error:
        msg = f"{path}: cannot be written: {error}; the old content is intact"
        raise CannotWriteError(msg) from None
    write_text(path, text)


def write_text(path: Path, text: str) -> None:
    """Write `text` whole or not at all: a crash or a full disk leaves the old file as it was.

    Lone surrogates (bytes of a name or an argument that are not UTF-8) become question marks.
    """
    write_bytes(path, text.encode(errors="replace"))


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
        msg = f"{path}: cannot be written: {error.strerror}; the old content is intact"
        raise CannotWriteError(msg) from None


def check_apart(option: str, target: Path | None, *others: Path | None) -> None:
    """Find out before the work that an output lies on, or in, what is something else.

    Raises UsageError.
    """
    for path in others:
        if target is not None and path is not None and _is_within(target, path):
            raise UsageError(f"{option} {target}: would overwrite {path}; name another file")


def _is_within(target: Path, path: Path) -> bool:
    """Whether `target` is `path`, or lies in it: by what they resolve to, links of both kinds."""
    try:
        is_within = target.resolve().is_relative_to(path.resolve())
    except (OSError, RuntimeError):
        return False  # a loop of links, which writing will refuse
    try:
        return is_within or target.samefile(path)
    except OSError:
        return False  # one of them is not there: they are not the same


def check_target(path: Path) -> None:
    """Check before the work that `path` can be written.

    Raises CannotWriteError.
    """
    check_link(path)
    try:
        if path.exists() and not path.is_file() and not path.is_dir():
            return  # a device or a pipe: to try it would be to write to it
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        with tempfile.TemporaryFile(dir=_target(path).parent):
            pass
    except FileNotFoundError:
        raise CannotWriteError(
            f"{path}: cannot be written: there is no such folder; next: mkdir -p {path.parent}"
        ) from None
    except OSError as error:
        raise CannotWriteError(f"{path}: cannot be written: {error.strerror}") from None


def check_link(path: Path) -> None:
    """Refuse to write through a link of a repository that leaves it: anybody may have committed it.

    Without a repository, the current folder is one. Raises CannotWriteError.
    """
    spelled = Path(os.path.abspath(path))  # noqa: PTH100  `resolve` would follow links
    tops = [folder for folder in spelled.parents if (folder / ".git").exists()]
    for top in tops or [Path(os.path.abspath(os.curdir))]:  # noqa: PTH100
        target = Path(os.path.realpath(path))
        if spelled.is_relative_to(top) and not target.is_relative_to(os.path.realpath(top)):
            raise CannotWriteError(
                f"{path}: cannot be written: expected a file below {top}, found a link that leads "
                f"to {target}; remove it, or name that file itself"
            )


def make_folder(path: Path) -> None:
    """Make a folder and what leads to it. Raises CannotWriteError."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CannotWriteError(f"{path}: cannot be made: {error.strerror}") from None


def _replace(path: Path, data: bytes) -> None:
    target = _target(path)
    # Short, whatever the target is called: a name ends at 255 bytes.
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=".ci-perf-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        mask = os.umask(0)
        os.umask(mask)
        Path(name).chmod(target.stat().st_mode & 0o777 if target.exists() else 0o666 & ~mask)
        Path(name).replace(target)
    except BaseException:
        Path(name).unlink()
        raise


def _target(path: Path) -> Path:
    """Follow the links of `path`, so that a link stays a link. Raises OSError for a circle."""
    target = Path(os.path.realpath(path))
    if target.is_symlink():
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
    return target


def current_folder() -> Path:
    """Return the current folder. Raises UsageError where it has been removed."""
    try:
        return Path.cwd()
    except OSError:
        raise UsageError("the current folder is gone; change into one that exists") from None


def cache_folder(home: Callable[[], Path] = Path.home) -> Path:
    """Return the folder for what is kept from run to run: below the cache of the user."""
    if chosen := os.environ.get("XDG_CACHE_HOME"):
        return Path(chosen, "ci-perf")
    try:
        return home() / ".cache/ci-perf"
    except RuntimeError:  # a container runs as a user without a name and without HOME
        return Path(tempfile.gettempdir(), f"ci-perf-cache-{os.getuid()}", "ci-perf")


def compute_blob(path: Path) -> str:
    """Return git's name of a file's content. Raises OSError, and ValueError for what has none."""
    with path.open("rb") as file:
        state = os.fstat(file.fileno())
        if not stat.S_ISREG(state.st_mode):
            raise ValueError("it is no regular file")
        if state.st_size > _LARGEST_HASHED:
            raise ValueError(f"expected at most {_LARGEST_HASHED:,} bytes, found {state.st_size:,}")
        blob = hashlib.sha1(b"blob %d\0" % state.st_size, usedforsecurity=False)
        while chunk := file.read(_CHUNK_BYTES):
            blob.update(chunk)
    return blob.hexdigest()
