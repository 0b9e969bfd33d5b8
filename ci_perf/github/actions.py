"""A job of GitHub Actions: the event that it runs for, and what a step tells its runner.

Read from the environment and from files that GitHub names there. No network.
"""

import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import msgspec

from ci_perf.errors import CannotWriteError, InvalidFileError
from ci_perf.github.answers import PullRequest, WorkflowRun

T = TypeVar("T", bound=msgspec.Struct)

_DEPENDABOT = "dependabot[bot]"
# The only event whose runs measure what a pull request changes.
MEASURED = "pull_request"
# NVIDIA's copy-pr-bot copies a pull request to such a branch when somebody has vouched for it.
_PULL_REQUEST_BRANCH = re.compile(r"refs/heads/pull-request/([1-9][0-9]{0,8})")
_SHA = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
_REPOSITORY = re.compile(r"[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+")
_URL = re.compile(r"https?://[A-Za-z0-9_.:\[\]/-]+")
_NUMBER = re.compile(r"[1-9][0-9]{0,17}")
# GitHub drops a summary that is longer, all of it.
MAX_SUMMARY_BYTES = 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class RunReference:
    """The run that measured. A higher number is newer, and so is a later attempt."""

    number: int
    attempt: int
    url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """What happened, and to which pull request and commit.

    ``pull`` is 0 where there is no pull request, or the event does not know it: then the run that
    ``measured`` it leads to it. ``sha`` is the commit that a person looks at, never the trial
    merge; it is empty for an event on which nothing is posted. ``branch`` is that of this job.
    ``base`` is the branch that the pull request went to when the job began; its author can change
    that. ``is_read_only``: the token of this job may post nothing.
    """

    run: RunReference
    repository: str = ""
    pull: int = 0
    sha: str = ""
    measured: WorkflowRun | None = None
    branch: str = ""
    base: str = ""
    is_fork: bool = False
    is_closed: bool = False
    is_read_only: bool = False


class _PullRequestEvent(msgspec.Struct):
    pull_request: PullRequest


class _WorkflowRunEvent(msgspec.Struct):
    workflow_run: WorkflowRun


class _PushEvent(msgspec.Struct):
    ref: str


class _MergeGroup(msgspec.Struct):
    head_sha: str


class _MergeGroupEvent(msgspec.Struct):
    merge_group: _MergeGroup


def is_github_actions(environment: Mapping[str, str]) -> bool:
    """Whether this is a job of GitHub Actions at all."""
    return environment.get("GITHUB_ACTIONS") == "true"


def read_event(environment: Mapping[str, str], payload: str) -> Event:
    """Return the event. Raises InvalidFileError where the payload is not of the named event."""
    name = environment.get("GITHUB_EVENT_NAME", "")
    if reader := _READERS.get(name):
        return reader(environment, payload)
    return Event(repository=_repository(environment), run=_run(environment))


def _pull_request(environment: Mapping[str, str], payload: str) -> Event:
    pull = _decode(payload, _PullRequestEvent, environment).pull_request
    return Event(
        repository=_repository(environment),
        run=_run(environment),
        pull=pull.number,
        sha=_sha(pull.head.sha),
        base=pull.base.ref,
        is_fork=pull.is_fork,
        is_closed=pull.state != "open",
        is_read_only=pull.is_fork or environment.get("GITHUB_ACTOR") == _DEPENDABOT,
    )


def _workflow_run(environment: Mapping[str, str], payload: str) -> Event:
    return event_of_run(environment, _decode(payload, _WorkflowRunEvent, environment).workflow_run)


def event_of_run(environment: Mapping[str, str], measured: WorkflowRun) -> Event:
    """Return the event by which the end of a run starts this job. Raises InvalidFileError."""
    repository = _repository(environment)
    if not measured.repository.has_name(repository):
        raise InvalidFileError(
            f"the workflow run's repository: expected {repository!r}, "
            f"found {measured.repository.full_name!r}"
        )
    return Event(
        repository=repository,
        run=_run(environment, number=measured.id, attempt=measured.run_attempt),
        sha=_sha(measured.head_sha),
        measured=measured if measured.event == MEASURED and measured.label else None,
        branch=environment.get("GITHUB_REF_NAME", ""),
        is_fork=measured.is_fork,
    )


def _push(environment: Mapping[str, str], payload: str) -> Event:
    copied = _PULL_REQUEST_BRANCH.fullmatch(_decode(payload, _PushEvent, environment).ref)
    return _event_of_commit(environment, pull=int(copied[1]) if copied else 0)


def _merge_group(environment: Mapping[str, str], payload: str) -> Event:
    group = _decode(payload, _MergeGroupEvent, environment).merge_group
    return _event_of_commit(environment, sha=group.head_sha)


def _read_branch(environment: Mapping[str, str], _payload: str) -> Event:
    return _event_of_commit(environment)


def _event_of_commit(environment: Mapping[str, str], *, pull: int = 0, sha: str = "") -> Event:
    return Event(
        repository=_repository(environment),
        run=_run(environment),
        pull=pull,
        sha=_sha(sha or environment.get("GITHUB_SHA", "")),
    )


_READERS = {
    "pull_request": _pull_request,
    "workflow_run": _workflow_run,
    "push": _push,
    "merge_group": _merge_group,
    "workflow_dispatch": _read_branch,
    "schedule": _read_branch,
}


def _run(environment: Mapping[str, str], *, number: int = 0, attempt: int = 0) -> RunReference:
    """Name the run that measured: this run, unless `number` names another."""
    number = number or _number(environment.get("GITHUB_RUN_ID", ""))
    attempt = attempt or _number(environment.get("GITHUB_RUN_ATTEMPT", "")) or 1
    server = environment.get("GITHUB_SERVER_URL", "https://github.com").rstrip("/")
    url = f"{server}/{_repository(environment)}/actions/runs/{number}"
    return RunReference(number=number, attempt=attempt, url=url if _URL.fullmatch(url) else "")


def _repository(environment: Mapping[str, str]) -> str:
    repository = environment.get("GITHUB_REPOSITORY", "")
    if not _REPOSITORY.fullmatch(repository):
        raise InvalidFileError(f"GITHUB_REPOSITORY: expected OWNER/NAME, found {repository[:80]!r}")
    return repository


def _number(text: str) -> int:
    return int(text) if _NUMBER.fullmatch(text) else 0


def _sha(text: str) -> str:
    if not _SHA.fullmatch(text):
        raise InvalidFileError(f"the event's commit: expected a SHA, found {text[:80]!r}")
    return text


def _decode(payload: str, kind: type[T], environment: Mapping[str, str]) -> T:
    """Read the keys that count; GitHub adds others at any time."""
    try:
        return msgspec.json.decode(payload, type=kind)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        name = environment.get("GITHUB_EVENT_NAME", "")
        raise InvalidFileError(
            f"GITHUB_EVENT_PATH: expected the payload of a {name!r} event, found: {error}"
        ) from None


def write_outputs(path: Path, values: Mapping[str, str]) -> None:
    """Add outputs to the file $GITHUB_OUTPUT. Raises CannotWriteError.

    Each value stands between two lines that nobody can guess: it cannot become another output.
    """
    text = ""
    for name, value in values.items():
        delimiter = f"ci_perf_{secrets.token_hex(16)}"
        assert delimiter not in value
        text += f"{name}<<{delimiter}\n{value}\n{delimiter}\n"
    _append(path, text)


def free_summary_bytes(path: Path) -> int:
    """Return how many bytes the job summary of this step still takes."""
    try:
        return max(0, MAX_SUMMARY_BYTES - path.stat().st_size - 1)
    except OSError:
        return MAX_SUMMARY_BYTES


def add_to_summary(path: Path, text: str) -> None:
    """Add Markdown to the file $GITHUB_STEP_SUMMARY. Raises CannotWriteError."""
    if len(text.encode()) > free_summary_bytes(path):
        raise CannotWriteError(
            f"the job summary: expected at most {MAX_SUMMARY_BYTES:,} bytes with what the step has "
            "already written to it, found more; GitHub would drop all of it"
        )
    _append(path, text.rstrip("\n") + "\n")


def spell_warning(text: str) -> str:
    """Spell a command by which the runner shows `text` on the page of the run."""
    escaped = text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    return f"::warning title=ci-perf::{escaped}"


def _append(path: Path, text: str) -> None:
    try:
        with path.open("a", encoding="utf-8", newline="") as file:
            file.write(text)
    except OSError as error:
        raise CannotWriteError(f"{path}: cannot be written: {error.strerror}") from None
