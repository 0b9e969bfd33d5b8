"""The pull request that an event is about, by what GitHub says of it now, not a run."""

from dataclasses import dataclass

import msgspec

from ci_perf.github.client import Client
from ci_perf.github.event import Event, Head, Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """An open pull request, and the commit at its head that was measured."""

    number: int
    sha: str
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
    repo: _Repository | None = None


class _PullRequest(msgspec.Struct):
    number: int
    state: str
    head: _Place
    base: _Place


class _File(msgspec.Struct):
    filename: str
    status: str
    sha: str | None = None
    previous_filename: str = ""


def find(client: Client, event: Event) -> Found | None:
    """Find the open pull request that `event` is about. Raises GithubError.

    `None`: there is none, or its head is another commit by now.
    """
    if event.kind is Kind.PULL_REQUEST:
        return Found(number=event.pull, sha=event.sha, is_fork=event.is_fork)
    if event.pull:
        return _by_number(client, event.pull, event.sha)
    return _by_head(client, event.head) if event.head else None


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
    return client.get(f"/pulls/{pull}", _PullRequest, what=f"pull request {pull}").base.sha


def _by_number(client: Client, number: int, sha: str) -> Found | None:
    what = f"pull request {number}"
    found = client.get(f"/pulls/{number}", _PullRequest, what=what)
    is_current = not sha or found.head.sha == sha
    return _found(found) if found.state == "open" and is_current else None


def _by_head(client: Client, head: Head) -> Found | None:
    """Look for the one whose branch, commit and repository are those that a run measured.

    The list that an event carries is empty for forks, and a number that a run has written down
    could be anybody's.
    """
    listed = client.pages(
        "/pulls", _PullRequest, what="pull requests", state="open", head=head.label
    )
    mine = [one for one in listed if _is_from(one, head) and _is_for(one, client)]
    return _found(mine[0]) if len(mine) == 1 else None


def _is_from(one: _PullRequest, head: Head) -> bool:
    is_there = one.head.repo is not None and one.head.repo.id == head.repository_id
    return is_there and one.head.sha == head.sha


def _is_for(one: _PullRequest, client: Client) -> bool:
    base = one.base.repo.full_name if one.base.repo else ""
    return base.lower() == f"{client.owner}/{client.name}".lower()


def _found(one: _PullRequest) -> Found:
    head, base = one.head.repo, one.base.repo
    is_fork = head is None or base is None or head.id != base.id
    return Found(number=one.number, sha=one.head.sha, is_fork=is_fork)
