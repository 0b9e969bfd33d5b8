"""Workflow runs: which one measured a commit, and that it is the one that it is taken for."""

import re
from dataclasses import dataclass

import msgspec

from ci_perf.errors import RefusedError
from ci_perf.github.client import Client
from ci_perf.github.event import Event, Head, Kind, Run

# The only event whose runs measure what a pull request changes.
MEASURED = "pull_request"
_COMPLETED = "completed"
# A regression fails the job that has found it.
_MEASURED_ALL = {"success", "failure"}
_SHA = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
_URL = re.compile(r"https?://[A-Za-z0-9_.:\[\]/-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A workflow run that has ended. ``head`` is ``None`` where its fork is gone."""

    number: int
    attempt: int
    event: str
    path: str
    sha: str
    branch: str
    url: str
    head: Head | None
    is_fork: bool

    def as_event(self, repository: str, branch: str) -> Event:
        """Return what happened, as if this run had just told a job on `branch`."""
        return Event(
            kind=Kind.WORKFLOW_RUN,
            repository=repository,
            run=Run(number=self.number, attempt=self.attempt, url=self.url),
            sha=self.sha,
            head=self.head,
            branch=branch,
            is_fork=self.is_fork,
        )


class _Owner(msgspec.Struct):
    login: str


class _Repository(msgspec.Struct):
    id: int
    full_name: str
    owner: _Owner


class _OfPull(msgspec.Struct):
    number: int


class _Run(msgspec.Struct):
    id: int
    event: str
    path: str
    status: str | None
    head_sha: str
    repository: _Repository
    conclusion: str | None = None
    pull_requests: list[_OfPull] | None = None
    head_branch: str | None = None
    head_repository: _Repository | None = None
    run_attempt: int = 1
    html_url: str = ""


class _Runs(msgspec.Struct):
    workflow_runs: list[_Run]


def get(client: Client, number: int) -> Found:
    """Look up a run that has ended. Raises GithubError, and RefusedError where it is another's."""
    found = client.get(f"/actions/runs/{number}", _Run, what=what(number))
    _check_home(client, found)
    if found.id != number:
        raise RefusedError(f"{what(number)}: GitHub answered with another one, run {found.id}")
    if found.status != _COMPLETED:
        raise RefusedError(
            f"{what(number)}: expected one that has ended, found it {found.status or 'unknown'}; "
            "wait for it"
        )
    return _found(found)


def check(found: Found, *, workflow: str) -> None:
    """Refuse a run that did not measure a pull request by this very file.

    Another file may carry the same name, and any event may start a workflow. Raises RefusedError.
    """
    if found.event != MEASURED:
        raise RefusedError(
            f"{what(found.number)}: expected one that {MEASURED} began, found {found.event[:80]!r}"
        )
    if found.path != workflow:
        raise RefusedError(
            f"{what(found.number)}: expected one of {workflow}, found {found.path[:200]!r}; "
            "name the workflow that measures with --workflow"
        )


def of_commit(client: Client, sha: str, repository_id: int, *, pull: int, workflow: str) -> Found:
    """Find the newest run that measured this commit of this repository for this pull request.

    One that was cancelled or skipped has measured nothing that counts. Raises RefusedError where
    there is none, or it is still going, and GithubError.
    """
    listed = client.get(
        "/actions/runs",
        _Runs,
        what=f"runs of commit {sha[:12]}",
        head_sha=sha,
        event=MEASURED,
        per_page=100,
    )
    mine = [
        one
        for one in listed.workflow_runs
        if _is_of(one, sha, repository_id, workflow) and _is_for(one, pull) and _counts(one)
    ]
    if not mine:
        raise RefusedError(
            f"commit {sha[:12]}: expected a run of {workflow} that measured it, found none"
        )
    return get(client, max(one.id for one in mine))


def what(number: int) -> str:
    """Name a run in a message."""
    return f"workflow run {number}"


def _is_of(one: _Run, sha: str, repository_id: int, workflow: str) -> bool:
    source = one.head_repository
    is_from = source is not None and source.id == repository_id
    return is_from and one.head_sha == sha and _path(one) == workflow and one.event == MEASURED


def _is_for(one: _Run, pull: int) -> bool:
    """Whether it may be of this pull request: GitHub does not always know of which it is."""
    return not one.pull_requests or pull in {of.number for of in one.pull_requests}


def _counts(one: _Run) -> bool:
    return one.status != _COMPLETED or one.conclusion in _MEASURED_ALL


def _check_home(client: Client, found: _Run) -> None:
    home = f"{client.owner}/{client.name}"
    if found.repository.full_name.lower() != home.lower():
        raise RefusedError(
            f"{what(found.id)}: expected one of {home}, found {found.repository.full_name[:80]!r}"
        )


def _found(one: _Run) -> Found:
    source = one.head_repository
    if not _SHA.fullmatch(one.head_sha):
        raise RefusedError(f"{what(one.id)}: expected a commit, found {one.head_sha[:80]!r}")
    return Found(
        number=one.id,
        attempt=one.run_attempt,
        event=one.event,
        path=_path(one),
        sha=one.head_sha,
        branch=one.head_branch or "",
        url=one.html_url if _URL.fullmatch(one.html_url) else "",
        head=_head(one),
        is_fork=source is None or source.id != one.repository.id,
    )


def _head(one: _Run) -> Head | None:
    source = one.head_repository
    if source is None or not one.head_branch:
        return None
    label = f"{source.owner.login}:{one.head_branch}"
    return Head(label=label, sha=one.head_sha, repository_id=source.id)


def _path(one: _Run) -> str:
    """Return the file of a workflow; GitHub adds the ref that it was read from."""
    return one.path.partition("@")[0]
