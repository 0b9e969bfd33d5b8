"""The pull request that an event is about, by what GitHub says of it now; no run is trusted."""

import re
from dataclasses import dataclass

import msgspec

from ci_perf.errors import RefusedError
from ci_perf.github.access import Client
from ci_perf.github.actions import Event, Head
from ci_perf.github.failures import GithubError

_SHA = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
# What GitHub says of a branch, compared with a commit that it contains.
_CONTAINED = {"identical", "ahead"}


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenPull:
    """An open pull request, as GitHub knows it now.

    ``sha`` is the commit at its head, on ``branch`` of the repository ``repository_id`` (0 where
    that is gone). ``base_branch`` is the branch that it shall be merged into, which its author
    chooses, and ``base`` the commit of that branch.
    """

    number: int
    sha: str
    branch: str
    repository_id: int
    base: str
    base_branch: str
    is_fork: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedFile:
    """A file that a pull request changes. ``sha`` names its new content in git.

    ``before`` is the old path of a renamed file, else the same path.
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
        """Whether its head is not known to lie in the repository of its base."""
        head, base = self.head.repo, self.base.repo
        return head is None or base is None or head.id != base.id


class _Compared(msgspec.Struct):
    status: str


class _File(msgspec.Struct):
    filename: str
    status: str
    sha: str | None = None
    previous_filename: str = ""


def answer_of(client: Client, number: int) -> PullRequest:
    """Return what GitHub says of a pull request now. Raises GithubError."""
    return client.get(f"/pulls/{number}", PullRequest, what=f"pull request {number}")


def find(client: Client, event: Event) -> OpenPull | None:
    """Find the open pull request that `event` is about. Raises GithubError.

    `None`: there is none, or its head is another commit by now. Raises RefusedError where several
    could be meant.
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
        comparison = client.get(f"/compare/{commit}...{base}", _Compared, what=what, per_page=1)
    except GithubError as error:
        if error.status != 404:
            raise
        return False
    return comparison.status in _CONTAINED


def as_open(answer: PullRequest) -> OpenPull:
    """Return the fields that count of an open pull request."""
    source = answer.head.repo
    return OpenPull(
        number=answer.number,
        sha=answer.head.sha,
        branch=answer.head.ref,
        repository_id=source.id if source else 0,
        base=answer.base.sha,
        base_branch=answer.base.ref,
        is_fork=answer.is_fork,
    )


def changed_files(client: Client, pull: int) -> frozenset[str]:
    """Name the files that a pull request adds or changes. Raises GithubError."""
    return frozenset(file.path for file in changes(client, pull) if not file.is_removed)


def changes(client: Client, pull: int) -> list[ChangedFile]:
    """List what a pull request does to files. Raises GithubError."""
    what = f"files of pull request {pull}"
    listed = client.pages(f"/pulls/{pull}/files", _File, what=what)
    return [
        ChangedFile(
            path=file.filename,
            before=file.previous_filename or file.filename,
            sha=file.sha or "",
            is_removed=file.status == "removed",
        )
        for file in listed
    ]


def _by_number(client: Client, number: int, sha: str) -> OpenPull | None:
    answer = answer_of(client, number)
    is_current = not sha or answer.head.sha == sha
    return as_open(answer) if answer.state == "open" and is_current else None


def _by_head(client: Client, head: Head, branch: str) -> OpenPull | None:
    """Look for the one whose branch, commit and repository are those that a run measured.

    The list in an event is empty for forks, and a run could have written down any number. Of
    several pull requests that differ in their base only, the one for `branch` is meant: that branch
    is checked out, and judges.
    """
    listed = client.pages(
        "/pulls", PullRequest, what="pull requests", state="open", head=head.label
    )
    mine = [pull for pull in listed if _is_from(pull, head) and _is_for(pull, client)]
    if len(mine) < 2:
        return as_open(mine[0]) if mine else None
    chosen = [pull for pull in mine if pull.base.ref == branch]
    if len(chosen) != 1:
        numbers = ", ".join(f"#{pull.number}" for pull in mine)
        raise RefusedError(
            f"commit {head.sha[:12]}: expected one open pull request of it for the branch "
            f"{branch or 'of this job'}, found {len(chosen)} of {numbers}; close those that are "
            "not meant"
        )
    return as_open(chosen[0])


def _is_from(pull: PullRequest, head: Head) -> bool:
    is_there = pull.head.repo is not None and pull.head.repo.id == head.repository_id
    return is_there and pull.head.sha == head.sha


def _is_for(pull: PullRequest, client: Client) -> bool:
    base = pull.base.repo.full_name if pull.base.repo else ""
    return base.lower() == f"{client.owner}/{client.name}".lower()
