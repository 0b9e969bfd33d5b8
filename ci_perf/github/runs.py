"""Workflow runs: find the run that measured a commit, and check that it is that run."""

import re
from dataclasses import dataclass

import msgspec

from ci_perf.errors import RefusedError
from ci_perf.github.access import Client
from ci_perf.github.actions import Event, EventKind, Head, RunReference

# The only event whose runs measure what a pull request changes.
MEASURED = "pull_request"
_COMPLETED = "completed"
# The job that finds a regression fails.
_MEASURED_ALL = {"success", "failure"}
_SHA = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
_URL = re.compile(r"https?://[A-Za-z0-9_.:\[\]/-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowRun:
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
        """Return the event by which the end of this run starts a job on `branch`."""
        return Event(
            kind=EventKind.WORKFLOW_RUN,
            repository=repository,
            run=RunReference(number=self.number, attempt=self.attempt, url=self.url),
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


def find_run(client: Client, number: int) -> WorkflowRun:
    """Look up a run that has ended. Raises GithubError; RefusedError: of another repository."""
    answer = client.get(f"/actions/runs/{number}", _Run, what=describe(number))
    _check_home(client, answer)
    if answer.id != number:
        raise RefusedError(f"{describe(number)}: GitHub answered with another one, run {answer.id}")
    if answer.status != _COMPLETED:
        raise RefusedError(
            f"{describe(number)}: expected one that has ended, found it "
            f"{answer.status or 'unknown'}; wait for it"
        )
    return _as_ended(answer)


def check_run(run: WorkflowRun, *, workflow: str) -> None:
    """Refuse a run that did not measure a pull request by this workflow file.

    Another file may carry the same name, and any event may start a workflow. Raises RefusedError.
    """
    if run.event != MEASURED:
        raise RefusedError(
            f"{describe(run.number)}: expected one that {MEASURED} began, found {run.event[:80]!r}"
        )
    if run.path != workflow:
        raise RefusedError(
            f"{describe(run.number)}: expected one of {workflow}, found {run.path[:200]!r}; "
            "name the workflow that measures with --workflow"
        )


def find_run_of_commit(
    client: Client, sha: str, repository_id: int, *, pull: int, workflow: str
) -> WorkflowRun:
    """Find the newest run that measured this commit of this repository for this pull request.

    A run that was cancelled or skipped has measured nothing that counts. Raises GithubError, and
    RefusedError where there is no run, or it has not ended.
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
        run
        for run in listed.workflow_runs
        if _is_of(run, sha, repository_id, workflow) and _is_for(run, pull) and _counts(run)
    ]
    if not mine:
        raise RefusedError(
            f"commit {sha[:12]}: expected a run of {workflow} that measured it, found none"
        )
    return find_run(client, max(run.id for run in mine))


def describe(number: int) -> str:
    """Name a run in a message."""
    return f"workflow run {number}"


def _is_of(run: _Run, sha: str, repository_id: int, workflow: str) -> bool:
    source = run.head_repository
    is_from = source is not None and source.id == repository_id
    return is_from and run.head_sha == sha and _path(run) == workflow and run.event == MEASURED


def _is_for(run: _Run, pull: int) -> bool:
    """Whether it may belong to this pull request: GitHub does not always know to which it does."""
    return not run.pull_requests or pull in {open_pull.number for open_pull in run.pull_requests}


def _counts(run: _Run) -> bool:
    return run.status != _COMPLETED or run.conclusion in _MEASURED_ALL


def _check_home(client: Client, run: _Run) -> None:
    home = f"{client.owner}/{client.name}"
    if run.repository.full_name.lower() != home.lower():
        raise RefusedError(
            f"{describe(run.id)}: expected one of {home}, found {run.repository.full_name[:80]!r}"
        )


def _as_ended(run: _Run) -> WorkflowRun:
    source = run.head_repository
    if not _SHA.fullmatch(run.head_sha):
        raise RefusedError(f"{describe(run.id)}: expected a commit, found {run.head_sha[:80]!r}")
    return WorkflowRun(
        number=run.id,
        attempt=run.run_attempt,
        event=run.event,
        path=_path(run),
        sha=run.head_sha,
        branch=run.head_branch or "",
        url=run.html_url if _URL.fullmatch(run.html_url) else "",
        head=_head(run),
        is_fork=source is None or source.id != run.repository.id,
    )


def _head(run: _Run) -> Head | None:
    source = run.head_repository
    if source is None or not run.head_branch:
        return None
    label = f"{source.owner.login}:{run.head_branch}"
    return Head(label=label, sha=run.head_sha, repository_id=source.id)


def _path(run: _Run) -> str:
    """Return the file of a workflow; GitHub adds the ref that it was read from."""
    return run.path.partition("@")[0]
