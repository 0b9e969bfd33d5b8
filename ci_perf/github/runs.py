"""Workflow runs: find the run that measured a commit, and check that it is that run."""

import re
from collections.abc import Mapping

import msgspec

from ci_perf.errors import RefusedError
from ci_perf.github.actions import MEASURED
from ci_perf.github.answers import PullRequest, WorkflowRun
from ci_perf.github.client import Client, GithubError

_COMPLETED = "completed"
_SHA = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")


class _Started(msgspec.Struct):
    html_url: str = ""


class _Runs(msgspec.Struct):
    workflow_runs: list[WorkflowRun]


def find_run(client: Client, number: int) -> WorkflowRun:
    """Look up a run that has ended. Raises GithubError; RefusedError: of another repository."""
    run = client.get(f"/actions/runs/{number}", WorkflowRun, what=describe(number))
    home = f"{client.owner}/{client.name}"
    if not run.repository.has_name(home):
        raise RefusedError(
            f"{describe(number)}: expected one of {home}, found {run.repository.full_name[:80]!r}"
        )
    if run.id != number:
        raise RefusedError(f"{describe(number)}: GitHub answered with another one, run {run.id}")
    if run.status != _COMPLETED:
        raise RefusedError(
            f"{describe(number)}: expected one that has ended, found it "
            f"{run.status or 'unknown'}; wait for it"
        )
    if not _SHA.fullmatch(run.head_sha):
        raise RefusedError(f"{describe(number)}: expected a commit, found {run.head_sha[:80]!r}")
    return run


def check_run(run: WorkflowRun, *, workflow: str) -> None:
    """Refuse a run that did not measure a pull request by this workflow file.

    Another file may carry the same name, and any event may start a workflow. Raises RefusedError.
    """
    if run.event != MEASURED:
        raise RefusedError(
            f"{describe(run.id)}: expected one that {MEASURED} began, found {run.event[:80]!r}"
        )
    if run.file != workflow:
        raise RefusedError(
            f"{describe(run.id)}: expected one of {workflow}, found {run.file[:200]!r}; "
            "name the workflow that measures with --workflow"
        )


def find_run_of_commit(client: Client, pull: PullRequest, *, workflow: str) -> WorkflowRun:
    """Find the newest run that measured the commit at the head of a pull request.

    A run that was cancelled or skipped has measured nothing that counts. Raises GithubError, and
    RefusedError where there is no run, or it has not ended.
    """
    sha, source = pull.head.sha, pull.head.repo
    listed = client.get(
        "/actions/runs",
        _Runs,
        what=f"runs of commit {sha[:12]}",
        head_sha=sha,
        event=MEASURED,
        per_page=100,
    )
    mine = [
        run.id
        for run in listed.workflow_runs
        if (run.head_sha, run.file, run.event) == (sha, workflow, MEASURED)
        and run.head_repository is not None
        and source is not None
        and run.head_repository.id == source.id
        # GitHub does not always know to which pull request a run belongs.
        and (not run.pull_requests or pull.number in {known.number for known in run.pull_requests})
        # The job that finds a regression fails.
        and (run.status != _COMPLETED or run.conclusion in {"success", "failure"})
    ]
    if not mine:
        raise RefusedError(
            f"commit {sha[:12]}: expected a run of {workflow} that measured it, found none"
        )
    run = find_run(client, max(mine))
    check_run(run, workflow=workflow)
    return run


def repeat(client: Client, run: WorkflowRun) -> None:
    """Start another attempt of a run that has ended. Raises GithubError."""
    client.start(f"/actions/runs/{run.id}/rerun", None, _Started, what=describe(run.id))


def dispatch(client: Client, workflow: str, *, branch: str, inputs: Mapping[str, str]) -> str:
    """Start a workflow file of a branch; return the address of its run. Raises GithubError.

    Enterprise Server does not tell which run it is, and may refuse to be asked: "".
    """
    path = f"/actions/workflows/{workflow.rpartition('/')[2]}/dispatches"
    body, what = {"ref": branch, "inputs": dict(inputs)}, f"start of {workflow}"
    try:
        run = client.start(path, body | {"return_run_details": True}, _Started, what=what)
    except GithubError as error:
        if error.status != 422:
            raise
        run = client.start(path, body, _Started, what=what)
    return run.html_url if run else ""


def describe(number: int) -> str:
    """Name a run in a message."""
    return f"workflow run {number}"
