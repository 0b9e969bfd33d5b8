"""What happened on GitHub, from the environment of a job and its event. No network."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TypeVar

import msgspec

from ci_perf.errors import InvalidFileError

T = TypeVar("T", bound=msgspec.Struct)

_DEPENDABOT = "dependabot[bot]"
_MEASURED = "pull_request"
# NVIDIA's copy-pr-bot copies a pull request that somebody has vouched for to such a branch.
_PULL_REQUEST_BRANCH = re.compile(r"refs/heads/pull-request/([1-9][0-9]{0,8})")
_SHA = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
_REPOSITORY = re.compile(r"[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+")
_URL = re.compile(r"https?://[A-Za-z0-9_.:\[\]/-]+")
_NUMBER = re.compile(r"[1-9][0-9]{0,17}")


class Kind(Enum):
    """What a job runs for, as far as it decides where a report goes."""

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
    """Where a pull request comes from: enough to find it without trusting what it says."""

    label: str
    sha: str
    repository_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """The run that measured. A later attempt of the same run is newer, a higher number too."""

    number: int
    attempt: int
    url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """What happened, and to which pull request and commit.

    ``pull`` is 0 where there is none, or none that the event itself knows: then ``head`` leads to
    it. ``sha`` is the commit that a person would look at, never the trial merge; empty where only
    the pull request knows it. ``branch`` is the one that this job was begun on, by its name, and
    ``base`` the one that the pull request went to when the job was begun: it can be changed.
    ``is_read_only``: the token of this job may post nothing.
    """

    kind: Kind
    repository: str = ""
    run: Run
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


def is_expected(environment: Mapping[str, str]) -> bool:
    """Whether this is a job of GitHub Actions at all."""
    return environment.get("GITHUB_ACTIONS") == "true"


def read(environment: Mapping[str, str], payload: str) -> Event:
    """Say what happened. Raises InvalidFileError where the payload is not what its name says."""
    if not is_expected(environment):
        return Event(kind=Kind.NONE, run=Run(number=0, attempt=1, url=""))
    reader = _READERS.get(environment.get("GITHUB_EVENT_NAME", ""), _other)
    return reader(environment, payload)


def _pull_request(environment: Mapping[str, str], payload: str) -> Event:
    found = _decode(payload, _PullRequestEvent, environment).pull_request
    is_fork = _is_fork(found.head.repo, found.base.repo)
    return Event(
        kind=Kind.PULL_REQUEST,
        repository=_repository(environment),
        run=_run(environment),
        pull=found.number,
        sha=_sha(found.head.sha),
        base=found.base.ref,
        is_fork=is_fork,
        is_draft=bool(found.draft),
        is_closed=found.state != "open",
        is_read_only=is_fork or environment.get("GITHUB_ACTOR") == _DEPENDABOT,
    )


def _workflow_run(environment: Mapping[str, str], payload: str) -> Event:
    found = _decode(payload, _WorkflowRunEvent, environment).workflow_run
    repository = _repository(environment)
    if found.repository.full_name.lower() != repository.lower():
        raise InvalidFileError(
            f"GITHUB_EVENT_PATH: $.workflow_run.repository: expected {repository!r}, "
            f"found {found.repository.full_name!r}"
        )
    run = _run(environment, number=found.id, attempt=found.run_attempt)
    sha, source = _sha(found.head_sha), found.head_repository
    is_fork = source is None or source.full_name.lower() != repository.lower()
    return Event(
        kind=Kind.WORKFLOW_RUN,
        repository=repository,
        run=run,
        sha=sha,
        head=_head(found, sha) if found.event == _MEASURED else None,
        branch=environment.get("GITHUB_REF_NAME", ""),
        is_fork=is_fork,
    )


def _head(found: _WorkflowRun, sha: str) -> Head | None:
    """Name the branch that a run measured; a fork that was deleted has none any more."""
    source = found.head_repository
    if source is None or not found.head_branch:
        return None
    label = f"{source.owner.login}:{found.head_branch}"
    return Head(label=label, sha=sha, repository_id=source.id)


def _push(environment: Mapping[str, str], payload: str) -> Event:
    found = _decode(payload, _PushEvent, environment)
    copied = _PULL_REQUEST_BRANCH.fullmatch(found.ref)
    is_default = found.ref == f"refs/heads/{found.repository.default_branch}"
    kind = Kind.PUSH_TO_DEFAULT if is_default else Kind.PUSH
    return Event(
        kind=Kind.PULL_REQUEST_BRANCH if copied else kind,
        repository=_repository(environment),
        run=_run(environment),
        pull=int(copied[1]) if copied else 0,
        sha=_sha(environment.get("GITHUB_SHA", "")),
    )


def _merge_group(environment: Mapping[str, str], payload: str) -> Event:
    found = _decode(payload, _MergeGroupEvent, environment).merge_group
    return Event(
        kind=Kind.MERGE_GROUP,
        repository=_repository(environment),
        run=_run(environment),
        sha=_sha(found.head_sha),
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
        kind=Kind.DISPATCH,
        repository=_repository(environment),
        run=_run(environment),
        pull=pull,
        # What is dispatched for a pull request runs on another commit than its head.
        sha="" if pull else _sha(environment.get("GITHUB_SHA", "")),
    )


def _schedule(environment: Mapping[str, str], _payload: str) -> Event:
    return Event(
        kind=Kind.SCHEDULE,
        repository=_repository(environment),
        run=_run(environment),
        sha=_sha(environment.get("GITHUB_SHA", "")),
    )


def _other(environment: Mapping[str, str], _payload: str) -> Event:
    return Event(kind=Kind.OTHER, repository=_repository(environment), run=_run(environment))


_READERS = {
    "pull_request": _pull_request,
    "workflow_run": _workflow_run,
    "push": _push,
    "merge_group": _merge_group,
    "workflow_dispatch": _dispatch,
    "schedule": _schedule,
}


def _is_fork(head: _Repository | None, base: _Repository | None) -> bool:
    """Whether the code comes from elsewhere; a fork that was deleted meanwhile is one."""
    return head is None or base is None or head.full_name.lower() != base.full_name.lower()


def _run(environment: Mapping[str, str], *, number: int = 0, attempt: int = 0) -> Run:
    """Name the run: this one, unless another one measured."""
    number = number or _number(environment.get("GITHUB_RUN_ID", ""))
    attempt = attempt or _number(environment.get("GITHUB_RUN_ATTEMPT", "")) or 1
    server = environment.get("GITHUB_SERVER_URL", "https://github.com").rstrip("/")
    url = f"{server}/{_repository(environment)}/actions/runs/{number}"
    return Run(number=number, attempt=attempt, url=url if _URL.fullmatch(url) else "")


def _repository(environment: Mapping[str, str]) -> str:
    found = environment.get("GITHUB_REPOSITORY", "")
    if not _REPOSITORY.fullmatch(found):
        raise InvalidFileError(f"GITHUB_REPOSITORY: expected OWNER/NAME, found {found[:80]!r}")
    return found


def _number(text: str) -> int:
    return int(text) if _NUMBER.fullmatch(text) else 0


def _sha(text: str) -> str:
    if not _SHA.fullmatch(text):
        raise InvalidFileError(f"the event's commit: expected a SHA, found {text[:80]!r}")
    return text


def _decode(payload: str, kind: type[T], environment: Mapping[str, str]) -> T:
    """Read the few keys that count; GitHub adds others at any time."""
    try:
        return msgspec.json.decode(payload, type=kind)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        name = environment.get("GITHUB_EVENT_NAME", "")
        raise InvalidFileError(
            f"GITHUB_EVENT_PATH: expected the payload of a {name!r} event, found: {error}"
        ) from None
