"""The branch that is watched: its commits along first parents, and who wrote them."""

import os
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from ci_perf.errors import UsageError
from ci_perf.model.commit import Commit
from ci_perf.model.watch import WatchedRepository
from ci_perf.system import git, git_log

_MOST = 10**9


@dataclass(frozen=True, slots=True, kw_only=True)
class BranchLine:
    """The commits of HEAD along first parents, oldest first; ``places`` count from 0."""

    top: Path
    repository: WatchedRepository
    commits: tuple[str, ...]
    places: dict[str, int] = field(repr=False)
    described: dict[str, Commit] = field(repr=False)

    @property
    def head(self) -> str:
        """The newest commit."""
        return self.commits[-1]

    def parent(self, commit: str) -> str:
        """Return the commit before one that is not the first."""
        return self.commits[self.places[commit] - 1]

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
    known = git_log.last_first_parents(branch.top, branch.commit, _MOST, datetime.now(UTC))
    line = tuple(each.commit.id for each in reversed(known))
    name = os.environ.get("GITHUB_REPOSITORY") or "/".join(branch.address.split("/")[3:]) or None
    return BranchLine(
        top=branch.top,
        repository=WatchedRepository(root=line[0], name=name),
        commits=line,
        places={commit: at for at, commit in enumerate(line)},
        described={each.commit.id: each.commit for each in known},
    )
