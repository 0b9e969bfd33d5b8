"""A job of GitHub Actions: the event that it runs for, and what a step tells its runner.

Read from the environment and from files that GitHub names there. No network.
"""

import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TypeVar

import msgspec

from ci_perf.errors import CannotWriteError, InvalidFileError

T = TypeVar("T", bound=msgspec.Struct)

_DEPENDABOT = "dependabot[bot]"
_MEASURED = "pull_request"
# NVIDIA's copy-pr-bot copies a pull request to such a branch when somebody has vouched for it.
_PULL_REQUEST_BRANCH = re.compile(r"refs/heads/pull-request/([1-9][0-9]{0,8})")
_SHA = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
_REPOSITORY = re.compile(r"[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+")
_URL = re.compile(r"https?://[A-Za-z0-9_.:\[\]/-]+")
_NUMBER = re.compile(r"[1-9][0-9]{0,17}")
# GitHub drops a summary that is longer, all of it.
MAX_SUMMARY_BYTES = 2**20


class EventKind(Enum):
    """The event that a job runs for, as far as it decides where a report goes."""

    NONE = "none"
    PULL_REQUEST = "pull_request"
    WORKFLOW_RUN = "workflow_run"
    PULL_REQUEST_BRANCH = "pull-request/N"
    PUSH_TO_DEFAULT = "push to the default branch"
    PUSH = "push"
    MERGE_GROUP = "merge_group"
    DISPATCH = "workflow_dispatch"
    SCHEDULE = "schedule"
    OTHER = "other"


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """The branch that a pull request comes from: enough to find it without trusting its run."""

    label: str
    sha: str
    repository_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RunReference:
    """The run that measured. A higher number is newer, and so is a later attempt."""

    number: int
    attempt: int
    url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """What happened, and to which pull request and commit.

    ``pull`` is 0 where there is no pull request, or the event does not know it: then ``head`` leads
    to it. ``sha`` is the commit that a person looks at, never the trial merge; it is empty where
    only the pull request knows it. ``branch`` is the branch of this job. ``base`` is the branch
    that the pull request went to when the job began; its author can change that. ``is_read_only``:
    the token of this job may post nothing.
    """

    kind: EventKind
    repository: str = ""
    run: RunReference
    pull: int = 0
    sha: str = ""
    head: Head | None = None
    branch: str = ""
    base: str = ""
    is_fork: bool = False
    is_draft: bool = False
    is_closed: bool = False
    is_read_only: bool = False


class _Repository(msgspec.Struct):
    id: int = 0
    full_name: str = ""
    default_branch: str = ""


class _Place(msgspec.Struct):
    sha: str
    ref: str = ""
    repo: _Repository | None = None


class _PullRequest(msgspec.Struct):
    number: int
    head: _Place
    base: _Place
    state: str = "open"
    draft: bool | None = False


class _PullRequestEvent(msgspec.Struct):
    pull_request: _PullRequest


class _Owner(msgspec.Struct):
    login: str


class _HeadRepository(msgspec.Struct):
    id: int
    full_name: str
    owner: _Owner


class _WorkflowRun(msgspec.Struct):
    id: int
    event: str
    head_sha: str
    repository: _Repository
    head_branch: str | None = None
    head_repository: _HeadRepository | None = None
    run_attempt: int = 1


class _WorkflowRunEvent(msgspec.Struct):
    workflow_run: _WorkflowRun


class _PushEvent(msgspec.Struct):
    ref: str
    repository: _Repository


class _MergeGroup(msgspec.Struct):
    head_sha: str


class _MergeGroupEvent(msgspec.Struct):
    merge_group: _MergeGroup


class _DispatchEvent(msgspec.Struct):
    inputs: dict[str, object] | None = None


def is_github_actions(environment: Mapping[str, str]) -> bool:
    """Whether this is a job of GitHub Actions at all."""
    return environment.get("GITHUB_ACTIONS") == "true"


def read_event(environment: Mapping[str, str], payload: str) -> Event:
    """Return the event. Raises InvalidFileError where the payload is not of the named event."""
    if not is_github_actions(environment):
        return Event(kind=EventKind.NONE, run=RunReference(number=0, attempt=1, url=""))
    reader = _READERS.get(environment.get("GITHUB_EVENT_NAME", ""), _other)
    return reader(environment, payload)


def _pull_request(environment: Mapping[str, str], payload: str) -> Event:
    pull = _decode(payload, _PullRequestEvent, environment).pull_request
    is_fork = _is_fork(pull.head.repo, pull.base.repo)
    return Event(
        kind=EventKind.PULL_REQUEST,
        repository=_repository(environment),
        run=_run(environment),
        pull=pull.number,
        sha=_sha(pull.head.sha),
        base=pull.base.ref,
        is_fork=is_fork,
        is_draft=bool(pull.draft),
        is_closed=pull.state != "open",
        is_read_only=is_fork or environment.get("GITHUB_ACTOR") == _DEPENDABOT,
    )


def _workflow_run(environment: Mapping[str, str], payload: str) -> Event:
    measured = _decode(payload, _WorkflowRunEvent, environment).workflow_run
    repository = _repository(environment)
    if measured.repository.full_name.lower() != repository.lower():
        raise InvalidFileError(
            f"GITHUB_EVENT_PATH: $.workflow_run.repository: expected {repository!r}, "
            f"found {measured.repository.full_name!r}"
        )
    run = _run(environment, number=measured.id, attempt=measured.run_attempt)
    sha, source = _sha(measured.head_sha), measured.head_repository
    is_fork = source is None or source.full_name.lower() != repository.lower()
    return Event(
        kind=EventKind.WORKFLOW_RUN,
        repository=repository,
        run=run,
        sha=sha,
        head=_head(measured, sha) if measured.event == _MEASURED else None,
        branch=environment.get("GITHUB_REF_NAME", ""),
        is_fork=is_fork,
    )


def _head(measured: _WorkflowRun, sha: str) -> Head | None:
    """Name the branch that a run measured; `None` where its fork was deleted."""
    source = measured.head_repository
    if source is None or not measured.head_branch:
        return None
    label = f"{source.owner.login}:{measured.head_branch}"
    return Head(label=label, sha=sha, repository_id=source.id)


def _push(environment: Mapping[str, str], payload: str) -> Event:
    push = _decode(payload, _PushEvent, environment)
    copied = _PULL_REQUEST_BRANCH.fullmatch(push.ref)
    is_default = push.ref == f"refs/heads/{push.repository.default_branch}"
    kind = EventKind.PUSH_TO_DEFAULT if is_default else EventKind.PUSH
    return Event(
        kind=EventKind.PULL_REQUEST_BRANCH if copied else kind,
        repository=_repository(environment),
        run=_run(environment),
        pull=int(copied[1]) if copied else 0,
        sha=_sha(environment.get("GITHUB_SHA", "")),
    )


def _merge_group(environment: Mapping[str, str], payload: str) -> Event:
    group = _decode(payload, _MergeGroupEvent, environment).merge_group
    return Event(
        kind=EventKind.MERGE_GROUP,
        repository=_repository(environment),
        run=_run(environment),
        sha=_sha(group.head_sha),
    )


def _dispatch(environment: Mapping[str, str], payload: str) -> Event:
    inputs = _decode(payload, _DispatchEvent, environment).inputs or {}
    given = str(inputs.get("pr") or "").strip().removeprefix("#")
    if given and not _NUMBER.fullmatch(given):
        raise InvalidFileError(
            f"the input pr of workflow_dispatch: expected the number of a pull request, "
            f"found {given[:80]!r}"
        )
    pull = int(given or 0)
    return Event(
        kind=EventKind.DISPATCH,
        repository=_repository(environment),
        run=_run(environment),
        pull=pull,
        # A job dispatched for a pull request runs on another commit than its head.
        sha="" if pull else _sha(environment.get("GITHUB_SHA", "")),
    )


def _schedule(environment: Mapping[str, str], _payload: str) -> Event:
    return Event(
        kind=EventKind.SCHEDULE,
        repository=_repository(environment),
        run=_run(environment),
        sha=_sha(environment.get("GITHUB_SHA", "")),
    )


def _other(environment: Mapping[str, str], _payload: str) -> Event:
    return Event(kind=EventKind.OTHER, repository=_repository(environment), run=_run(environment))


_READERS = {
    "pull_request": _pull_request,
    "workflow_run": _workflow_run,
    "push": _push,
    "merge_group": _merge_group,
    "workflow_dispatch": _dispatch,
    "schedule": _schedule,
}


def _is_fork(head: _Repository | None, base: _Repository | None) -> bool:
    """Whether the code comes from another repository; a deleted one was a fork."""
    return head is None or base is None or head.full_name.lower() != base.full_name.lower()


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


def warning(text: str) -> str:
    """Spell a command by which the runner shows `text` on the page of the run."""
    escaped = text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    return f"::warning title=ci-perf::{escaped}"


def _append(path: Path, text: str) -> None:
    try:
        with path.open("a", encoding="utf-8", newline="") as file:
            file.write(text)
    except OSError as error:
        raise CannotWriteError(f"{path}: cannot be written: {error.strerror}") from None
