"""The branch that is watched: its commits along first parents, and who wrote them."""

import os
from dataclasses import dataclass, field
from pathlib import Path

from ci_perf.errors import UsageError
from ci_perf.model.watch import Person, WatchedRepository
from ci_perf.system import git, git_log

_FIELDS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """A commit for people: ``date`` in ISO 8601."""

    author: Person
    subject: str
    date: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BranchLine:
    """The commits of HEAD along first parents, oldest first."""

    top: Path
    repository: WatchedRepository
    commits: tuple[str, ...]
    places: dict[str, int] = field(repr=False)

    @property
    def head(self) -> str:
        """The newest commit."""
        return self.commits[-1]

    def position(self, commit: str) -> int | None:
        """Return the place of a commit, from 0; `None` where the branch lacks it."""
        return self.places.get(commit)

    def parent(self, commit: str) -> str:
        """Return the commit before one that is not the first."""
        return self.commits[self.places[commit] - 1]

    def describe(self, commit: str) -> Described:
        """Say who wrote a commit, what, and when."""
        form = "%cI%x00%aN%x00%aE%x00%s"
        told = git.run(self.top, "show", "--no-patch", f"--format={form}", commit).out
        date, name, email, subject = [*told.split("\0"), *[""] * _FIELDS][:_FIELDS]
        return Described(author=Person(name=name, email=email), subject=subject[:200], date=date)

    def find_first_with(self, text: str, path: Path) -> str | None:
        """Return the oldest commit of the line with a text in a file; `None` for none."""
        options = ("--first-parent", "--reverse", "--format=%H", f"-S{text}", self.head)
        named = git.run(self.top, "log", *options, "--", str(path.absolute())).out.split()
        return next((each for each in named if each in self.places), None)

    def find_revert(self, commit: str) -> str:
        """Return the commit whose message says that it reverts one; "" for none."""
        said = f"This reverts commit {commit}"
        options = ("--fixed-strings", f"--grep={said}", "--max-count=1", "--format=%H")
        return git.run(self.top, "log", *options, f"{commit}..{self.head}").out


def read_line(root: Path) -> BranchLine:
    """Read the line of HEAD. Raises UsageError: no repository, no commit, or a shallow clone."""
    branch = git_log.branch(root, "HEAD")
    if branch.is_shallow:
        raise UsageError(
            "watch: expected the whole history, found a shallow clone; `git fetch --unshallow` "
            "brings it (`fetch-depth: 0` for actions/checkout)"
        )
    commits = git.run(branch.top, "rev-list", "--first-parent", "--reverse", branch.commit).out
    line = tuple(commits.split())
    name = os.environ.get("GITHUB_REPOSITORY") or "/".join(branch.address.split("/")[3:]) or None
    return BranchLine(
        top=branch.top,
        repository=WatchedRepository(root=line[0], name=name),
        commits=line,
        places={commit: at for at, commit in enumerate(line)},
    )
