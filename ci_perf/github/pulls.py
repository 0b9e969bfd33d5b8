"""The pull request that an event is about, by what GitHub says of it now; no run is trusted."""

import re
from dataclasses import dataclass

import msgspec

from ci_perf.errors import RefusedError
from ci_perf.github.actions import Event
from ci_perf.github.answers import PullRequest, WorkflowRun
from ci_perf.github.client import Client, GithubError

_SHA = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedFile:
    """A file that a pull request changes. ``sha`` names its new content in git.

    ``before`` is the old path of a renamed file, else the same path.
    """

    path: str
    before: str
    sha: str
    is_removed: bool


class _Compared(msgspec.Struct):
    status: str


class _File(msgspec.Struct):
    filename: str
    status: str
    sha: str | None = None
    previous_filename: str = ""


def get(client: Client, number: int) -> PullRequest:
    """Return what GitHub says of a pull request now. Raises GithubError."""
    return client.get(f"/pulls/{number}", PullRequest, what=f"pull request {number}")


def find(client: Client, event: Event) -> PullRequest | None:
    """Find the open pull request that `event` is about. Raises GithubError.

    `None`: there is none, or its head is another commit by now. Raises RefusedError where several
    could be meant.
    """
    if event.pull:
        pull = get(client, event.pull)
        return pull if pull.state == "open" and pull.head.sha == event.sha else None
    return _find_by_run(client, event.measured, event.branch) if event.measured else None


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
    return comparison.status in {"identical", "ahead"}


def changes(client: Client, pull: int) -> list[ChangedFile]:
    """List the files that a pull request changes. Raises GithubError."""
    what = f"files of pull request {pull}"
    return [
        ChangedFile(
            path=file.filename,
            before=file.previous_filename or file.filename,
            sha=file.sha or "",
            is_removed=file.status == "removed",
        )
        for file in client.pages(f"/pulls/{pull}/files", _File, what=what)
    ]


def _find_by_run(client: Client, run: WorkflowRun, branch: str) -> PullRequest | None:
    """Look for the one whose branch, commit and repository are those that a run measured.

    The list in an event is empty for forks, and a run could have written down any number. Of
    several pull requests that differ in their base only, the one for `branch` is meant: that branch
    is checked out, and judges.
    """
    listed = client.pages("/pulls", PullRequest, what="pull requests", state="open", head=run.label)
    mine = [pull for pull in listed if _is_measured(pull, run) and _is_for(pull, client)]
    if len(mine) < 2:
        return mine[0] if mine else None
    chosen = [pull for pull in mine if pull.base.ref == branch]
    if len(chosen) != 1:
        numbers = ", ".join(f"#{pull.number}" for pull in mine)
        raise RefusedError(
            f"commit {run.head_sha[:12]}: expected one open pull request for the branch "
            f"{branch or 'of this job'}, found {len(chosen)} of {numbers}; close the others"
        )
    return chosen[0]


def _is_measured(pull: PullRequest, run: WorkflowRun) -> bool:
    source, measured = pull.head.repo, run.head_repository
    is_there = source is not None and measured is not None and source.id == measured.id
    return is_there and pull.head.sha == run.head_sha


def _is_for(pull: PullRequest, client: Client) -> bool:
    base = pull.base.repo
    return base is not None and base.has_name(f"{client.owner}/{client.name}")
