"""Report on a commit by a check run: it is begun first, and completed whatever happens."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import msgspec

from ci_perf.github.client import Client, GithubError, Resource

# What GitHub's description of its API allows.
MAX_CHARS = 65_535
_MAX_TITLE_CHARS = 255
_MAX_MESSAGE_BYTES = 64_000
_MAX_ANNOTATIONS = 50  # of one request


class Conclusion(Enum):
    """The end of a check; a neutral one satisfies a branch protection."""

    SUCCESS = "success"
    FAILURE = "failure"
    NEUTRAL = "neutral"


@dataclass(frozen=True, slots=True, kw_only=True)
class Annotation:
    """A finding, shown beside a file that the pull request changes. Plain text."""

    path: str
    title: str
    message: str
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckRun:
    """What a check says. ``identity`` is the same whenever the same job reports again."""

    name: str
    identity: str
    conclusion: Conclusion
    title: str
    summary: str
    annotations: Sequence[Annotation] = ()
    url: str = ""


class _Run(msgspec.Struct):
    id: int
    external_id: str | None = None
    html_url: str | None = None


class _Runs(msgspec.Struct):
    check_runs: list[_Run]


def put_check(client: Client, sha: str, check: CheckRun) -> str:
    """Report `check` on the commit `sha`; return where it can be seen. Raises GithubError."""
    made = _begin(client, sha, check)
    completed = {
        "status": "completed",
        "conclusion": check.conclusion.value,
        "output": {
            "title": check.title[:_MAX_TITLE_CHARS],
            "summary": check.summary[:MAX_CHARS],
            "annotations": list(map(_annotation, check.annotations[:_MAX_ANNOTATIONS])),
        },
    }
    client.change(f"/check-runs/{made.id}", completed, what=_what(check))
    return made.html_url or ""


def _begin(client: Client, sha: str, check: CheckRun) -> Resource:
    """Continue a check that the same job has begun; where an answer is lost, look for it again."""
    try:
        return _find(client, sha, check) or _create(client, sha, check)
    except GithubError as error:
        if not error.is_unanswered:
            raise
    return _find(client, sha, check) or _create(client, sha, check)


def _create(client: Client, sha: str, check: CheckRun) -> Resource:
    body = {
        "name": check.name,
        "head_sha": sha,
        "external_id": check.identity,
        "status": "in_progress",
    }
    if check.url:
        body["details_url"] = check.url
    return client.make("/check-runs", body, what=_what(check))


def _find(client: Client, sha: str, check: CheckRun) -> Resource | None:
    listed = client.get(
        f"/commits/{sha}/check-runs",
        _Runs,
        what=_what(check),
        check_name=check.name,
        filter="all",
        per_page=100,
    )
    for run in listed.check_runs:
        if run.external_id == check.identity:
            return Resource(id=run.id, html_url=run.html_url)
    return None


def _annotation(annotation: Annotation) -> dict[str, Any]:
    return {
        "path": annotation.path,
        "start_line": annotation.line,
        "end_line": annotation.line,
        "annotation_level": "warning",
        "title": annotation.title[:_MAX_TITLE_CHARS],
        "message": annotation.message.encode()[:_MAX_MESSAGE_BYTES].decode(errors="ignore"),
    }


def _what(check: CheckRun) -> str:
    return f"check {check.name!r}"
