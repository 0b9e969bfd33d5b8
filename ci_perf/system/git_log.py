"""Every version of the files in a folder along one branch: git's objects, and no checkout."""

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path
from typing import IO

from ci_perf.errors import UsageError
from ci_perf.model.commit import MOST_DAYS, Commit
from ci_perf.system import files, git

# Of a commit: its id, its author by .mailmap, the second when it was committed, its first line.
_HEADER = "%H%x00%aN%x00%ct%x00%s"
# The same after its parents.
_WITH_PARENTS = f"%P%x00{_HEADER}"
_FIELDS = 5
_MAX_CHARS = 200
_LINK, _SUBMODULE = "120000", "160000"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DAY_S = 86_400
# A user and a password in the address are nobody's business.
_HTTPS = re.compile(r"https://(?:[^/@]*@)?([A-Za-z0-9.-]+(?::[0-9]{1,5})?(?:/[A-Za-z0-9_.~-]+)+)/?")


class EntryState(Enum):
    """What a commit left at a path."""

    FILE = "file"
    REMOVED = "removed"
    LINK = "link"
    SUBMODULE = "submodule"


@dataclass(frozen=True, slots=True, kw_only=True)
class FileVersion:
    """What a commit left at a path below the folder; ``blob`` is git's name of the content."""

    path: str
    commit: Commit
    state: EntryState
    blob: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LineCommit:
    """A commit on a line of first parents; ``parents`` are all of its own, the first one first."""

    commit: Commit
    parents: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """A branch of the repository at ``top``; ``commit`` is its last one."""

    top: Path
    ref: str
    commit: str
    is_shallow: bool
    address: str


def branch(root: Path, ref: str) -> Branch:
    """Look up a branch, tag or commit. Raises UsageError: no repository, or no such commit."""
    top = git.run(root, "rev-parse", "--show-toplevel")
    if top.code:
        raise UsageError(f"{root}: expected a git repository with a work tree, found {top.err}")
    commit = git.run(
        root, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}"
    )
    if commit.code:
        raise UsageError(
            f"--ref {ref}: expected a branch, tag or commit of {top.out}, found none; `git branch "
            "--all` lists the branches that this clone has"
        )
    return Branch(
        top=Path(top.out),
        # A person knows the branch that is checked out by its name.
        ref=ref if ref != "HEAD" else git.run(root, "rev-parse", "--abbrev-ref", ref).out,
        commit=commit.out,
        is_shallow=git.run(root, "rev-parse", "--is-shallow-repository").out == "true",
        address=_https(git.run(root, "config", "--get", "remote.origin.url").out),
    )


def _https(address: str) -> str:
    """Return the address of a repository for people, without a password; "" if it is not https."""
    matched = _HTTPS.fullmatch(address)
    return f"https://{matched[1].removesuffix('.git')}" if matched else ""


def below(top: Path, folder: Path) -> str:
    """Return the path of a folder in its repository. Raises UsageError for one outside."""
    absolute = Path(os.path.normpath(folder.parent.resolve() / folder.name))
    if not absolute.is_relative_to(top.resolve()):
        raise UsageError(f"{folder}: expected a folder of the repository {top}, found one outside")
    return absolute.relative_to(top.resolve()).as_posix()


def versions(of: Branch, folder: str, now: datetime) -> Iterator[FileVersion]:
    """Yield what each commit of a branch left in a folder, newest commit first.

    Of a merge, what it changed against its first parent: that is what the branch got.
    """
    with git.stream(
        of.top,
        *("log", "-z", "--raw", "--first-parent", "-m", "--no-renames", "--no-abbrev"),
        *("--encoding=UTF-8", "-O/dev/null"),  # whatever a user has set for himself
        *(f"--format={_HEADER}", of.commit, "--", f":(top,literal){folder}"),
    ) as output:
        tokens = _tokens(output)
        commit = None
        for token in tokens:
            line = token.strip()
            if line.startswith(":"):
                assert commit is not None
                yield _version(line, next(tokens), folder, commit)
            elif line:
                commit = _commit(line, next(tokens), next(tokens), next(tokens), now)


def first_parents(top: Path, after: str, until: str, now: datetime) -> list[LineCommit]:
    """Return the commits from `until` back along first parents, oldest first.

    Those that `after` has as well are left out. Raises CiPerfError.
    """
    return _list_commits(top, ("--first-parent", "--reverse", until, f"^{after}"), now)


def last_first_parents(top: Path, until: str, most: int, now: datetime) -> list[LineCommit]:
    """Return the last commits from `until` back along first parents, newest first.

    Raises CiPerfError.
    """
    return _list_commits(top, ("--first-parent", f"--max-count={most}", until), now)


def commit(top: Path, name: str, now: datetime) -> LineCommit:
    """Describe one commit. Raises CiPerfError."""
    (described,) = _list_commits(top, ("--max-count=1", name), now)
    return described


def _list_commits(top: Path, which: tuple[str, ...], now: datetime) -> list[LineCommit]:
    how = ("-z", "--no-patch", "--encoding=UTF-8", f"--format={_WITH_PARENTS}")
    with git.stream(top, "log", *how, *which, "--") as output:
        tokens = list(_tokens(output))
    starts = range(0, len(tokens), _FIELDS)
    return [_parse_line(*tokens[start : start + _FIELDS], now=now) for start in starts]


def _parse_line(
    parents: str, name: str, author: str, second: str, title: str, *, now: datetime
) -> LineCommit:
    described = _commit(name, author, second, title, now)
    return LineCommit(parents=tuple(parents.split()), commit=described)


def contents(of: Branch, blobs: Iterable[str]) -> Iterator[bytes | None]:
    """Yield the content of each blob, in order; `None` for one that the clone lacks.

    Also for one that is larger than any file that we read.
    """
    given = "".join(f"{blob}\n" for blob in blobs).encode()
    with git.stream(of.top, "cat-file", "--batch", "--buffer", given=given) as output:
        while header := output.readline():
            *_, size = header.split()
            if not size.isdigit():
                yield None
                continue
            yield _content(output, int(size))
            output.read(1)


def _content(output: IO[bytes], size: int) -> bytes | None:
    if size <= files.MAX_BYTES:
        return output.read(size)
    while size > 0:
        size -= len(output.read(min(size, files.MAX_BYTES)))
    return None


def _tokens(output: IO[bytes]) -> Iterator[str]:
    """Yield what stands between the zero bytes."""
    rest = b""
    while part := output.read(1 << 16):
        *whole, rest = (rest + part).split(b"\0")
        yield from (token.decode(errors="replace") for token in whole)
    if rest:
        yield rest.decode(errors="replace")


def _version(line: str, path: str, folder: str, commit: Commit) -> FileVersion:
    """Read ":OLD-MODE NEW-MODE OLD-BLOB NEW-BLOB STATUS"."""
    _, mode, _, blob, status = line.split(" ")
    state = {_LINK: EntryState.LINK, _SUBMODULE: EntryState.SUBMODULE}.get(mode, EntryState.FILE)
    return FileVersion(
        path=path if folder == "." else path.removeprefix(f"{folder}/"),
        commit=commit,
        state=EntryState.REMOVED if status.startswith("D") else state,
        blob=blob,
    )


def _commit(name: str, author: str, second: str, title: str, now: datetime) -> Commit:
    date = _date(second)
    return Commit(
        id=name,
        author=author[:_MAX_CHARS],
        date=utc(date),
        title=title[:_MAX_CHARS],
        # A date of the future is a wrong one: the farther away, the less is such a commit recent.
        age_days=min(abs(round((now - date).total_seconds() / _DAY_S, 3)), MOST_DAYS),
    )


def utc(time: datetime) -> str:
    """Spell a time as in RFC 3339, to the second."""
    return time.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def _date(second: str) -> datetime:
    """Return when a commit was made; anybody may write any number."""
    try:
        return datetime.fromtimestamp(int(second), UTC)
    except (ValueError, OverflowError, OSError):
        return _EPOCH
