"""The pull request that an event is about, by what GitHub says of it now, not a run."""

import re
from dataclasses import dataclass

import msgspec

from ci_perf.errors import RefusedError
from ci_perf.github.client import Client
from ci_perf.github.event import Event, Head
from ci_perf.github.failures import GithubError

_SHA = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
# What GitHub says of a branch, compared with a commit that it contains.
_CONTAINED = {"identical", "ahead"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """An open pull request, and the commit at its head that was measured.

    ``base_branch`` is the branch that it shall go to, which its author chooses, and ``base`` the
    commit of that branch.
    """

    number: int
    sha: str
    base: str
    base_branch: str
    is_fork: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
    """A file of a pull request, and the content that it gets there, by its name in git.

    ``before`` is another path only where it was renamed.
    """

    path: str
    before: str
    sha: str
    is_removed: bool


class _Repository(msgspec.Struct):
    id: int
    full_name: str


class _Place(msgspec.Struct):
    sha: str
    ref: str
    repo: _Repository | None = None


class PullRequest(msgspec.Struct):
    """What GitHub answers of one pull request."""

    number: int
    state: str
    head: _Place
    base: _Place

    @property
    def is_fork(self) -> bool:
        """Whether its head is not known to lie in the repository that it shall go to."""
        head, base = self.head.repo, self.base.repo
        return head is None or base is None or head.id != base.id


class _Compared(msgspec.Struct):
    status: str


class _File(msgspec.Struct):
    filename: str
    status: str
    sha: str | None = None
    previous_filename: str = ""


def ask(client: Client, number: int) -> PullRequest:
    """Return what GitHub says of a pull request now. Raises GithubError."""
    return client.get(f"/pulls/{number}", PullRequest, what=f"pull request {number}")


def find(client: Client, event: Event) -> Found | None:
    """Find the open pull request that `event` is about. Raises GithubError.

    `None`: there is none, or its head is another commit by now. Raises RefusedError where it
    could be one or the other.
    """
    if event.pull:
        return _by_number(client, event.pull, event.sha)
    return _by_head(client, event.head, event.branch) if event.head else None


def contains(client: Client, base: str, commit: str) -> bool:
    """Whether `commit` lies in the history of the commit `base`. Raises GithubError."""
    if not (_SHA.fullmatch(commit) and _SHA.fullmatch(base)):
        return False
    what = f"commit {commit[:12]} in the history of {base[:12]}"
    try:
        found = client.get(f"/compare/{commit}...{base}", _Compared, what=what, per_page=1)
    except GithubError as error:
        if error.status != 404:
            raise
        return False
    return found.status in _CONTAINED


def changed_files(client: Client, pull: int) -> frozenset[str]:
    """Name the files that a pull request adds or changes. Raises GithubError."""
    return frozenset(one.path for one in changes(client, pull) if not one.is_removed)


def changes(client: Client, pull: int) -> list[Changed]:
    """List what a pull request does to files. Raises GithubError."""
    what = f"files of pull request {pull}"
    found = client.pages(f"/pulls/{pull}/files", _File, what=what)
    return [
        Changed(
            path=one.filename,
            before=one.previous_filename or one.filename,
            sha=one.sha or "",
            is_removed=one.status == "removed",
        )
        for one in found
    ]


def base(client: Client, pull: int) -> str:
    """Return the commit of the base branch, as GitHub knows it. Raises GithubError."""
    return ask(client, pull).base.sha


def _by_number(client: Client, number: int, sha: str) -> Found | None:
    found = ask(client, number)
    is_current = not sha or found.head.sha == sha
    return _found(found) if found.state == "open" and is_current else None


def _by_head(client: Client, head: Head, branch: str) -> Found | None:
    """Look for the one whose branch, commit and repository are those that a run measured.

    The list that an event carries is empty for forks, and a number that a run has written down
    could be anybody's. Of several that only differ in where they go, the one for `branch` is meant:
    that is checked out, and judges.
    """
    listed = client.pages(
        "/pulls", PullRequest, what="pull requests", state="open", head=head.label
    )
    mine = [one for one in listed if _is_from(one, head) and _is_for(one, client)]
    if len(mine) < 2:
        return _found(mine[0]) if mine else None
    chosen = [one for one in mine if one.base.ref == branch]
    if len(chosen) != 1:
        numbers = ", ".join(f"#{one.number}" for one in mine)
        raise RefusedError(
            f"commit {head.sha[:12]}: expected one open pull request of it for the branch "
            f"{branch or 'of this job'}, found {len(chosen)} of {numbers}; close those that are "
            "not meant"
        )
    return _found(chosen[0])


def _is_from(one: PullRequest, head: Head) -> bool:
    is_there = one.head.repo is not None and one.head.repo.id == head.repository_id
    return is_there and one.head.sha == head.sha


def _is_for(one: PullRequest, client: Client) -> bool:
    base = one.base.repo.full_name if one.base.repo else ""
    return base.lower() == f"{client.owner}/{client.name}".lower()


def _found(one: PullRequest) -> Found:
    return Found(
        number=one.number,
        sha=one.head.sha,
        base=one.base.sha,
        base_branch=one.base.ref,
        is_fork=one.is_fork,
    )
