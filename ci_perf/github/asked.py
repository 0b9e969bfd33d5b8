"""Who has asked for something in a comment, and whether that still stands.

The event says what was written. GitHub is asked again before anything is done: a comment can be
edited, a pull request closed, a branch pushed to, a permission taken away.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from ci_perf.errors import InvalidFileError, RefusedError
from ci_perf.github import pulls
from ci_perf.github.client import Client
from ci_perf.github.failures import GithubError

_EVENT = "issue_comment"
_BOT = "Bot"
# What the older field of GitHub's answer says of everybody who may push ("maintain" is "write").
_WRITERS = {"admin", "write"}
_LOGIN = re.compile(r"[A-Za-z0-9_.-]{1,100}")
_BRANCH = re.compile(r"[^\s~^:?*\[\\\x00-\x20\x7f]{1,250}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A new comment on a pull request, and who wrote it."""

    comment: int
    pull: int
    login: str
    body: str
    created: str
    url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Pull:
    """An open pull request as it is now.

    ``branch`` is that of its head, ``base`` the commit of the branch that it shall go to.
    """

    number: int
    sha: str
    base: str
    branch: str
    repository_id: int
    is_fork: bool


class _User(msgspec.Struct):
    login: str
    type: str = ""


class _Comment(msgspec.Struct):
    id: int
    created_at: str
    updated_at: str
    body: str | None = None
    user: _User | None = None
    html_url: str = ""


class _Issue(msgspec.Struct):
    number: int
    pull_request: dict[str, object] | None = None


class _Event(msgspec.Struct):
    action: str
    issue: _Issue
    comment: _Comment


class _Permission(msgspec.Struct):
    permission: str


def read(environment: Mapping[str, str], payload: str) -> Asked | None:
    """Say what was written; `None` where nobody has written something new on a pull request.

    Raises InvalidFileError where the payload is not what its name says.
    """
    if environment.get("GITHUB_EVENT_NAME") != _EVENT:
        return None
    try:
        found = msgspec.json.decode(payload, type=_Event)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise InvalidFileError(
            f"GITHUB_EVENT_PATH: expected the payload of an {_EVENT!r} event, found: {error}"
        ) from None
    user = found.comment.user
    is_new = found.action == "created" and found.issue.pull_request is not None
    if not is_new or user is None or user.type == _BOT or not _LOGIN.fullmatch(user.login):
        return None
    return Asked(
        comment=found.comment.id,
        pull=found.issue.number,
        login=user.login,
        body=found.comment.body or "",
        created=found.comment.created_at,
        url=found.comment.html_url,
    )


def check_permission(client: Client, login: str) -> None:
    """Refuse who may not push. Raises RefusedError and GithubError."""
    what = f"permission of {login}"
    try:
        found = client.get(f"/collaborators/{login}/permission", _Permission, what=what)
        level = found.permission
    except GithubError as error:
        if error.status != 404:
            raise
        level = "none"
    if level not in _WRITERS:
        raise RefusedError(
            f"{what}: expected one to write to this repository, found {level[:40]!r}; somebody who "
            "may push must ask"
        )


def check_unchanged(client: Client, asked: Asked) -> None:
    """Refuse what somebody has edited: who may edit need not be who wrote. Raises RefusedError."""
    what = f"comment {asked.comment}"
    found = client.get(f"/issues/comments/{asked.comment}", _Comment, what=what)
    is_edited = found.updated_at != found.created_at or found.created_at != asked.created
    if is_edited or (found.body or "") != asked.body:
        raise RefusedError(f"{what}: expected it as it was written, found it edited; write it anew")


def pull(client: Client, number: int) -> Pull:
    """Return the pull request. Raises RefusedError where it is not open, and GithubError."""
    what = f"pull request {number}"
    found = pulls.ask(client, number)
    if found.state != "open":
        raise RefusedError(f"{what}: expected it open, found it {found.state[:40]}")
    if not _BRANCH.fullmatch(found.head.ref):
        raise RefusedError(f"{what}: expected the name of a branch, found {found.head.ref[:80]!r}")
    head = found.head.repo
    return Pull(
        number=number,
        sha=found.head.sha,
        base=found.base.sha,
        branch=found.head.ref,
        repository_id=head.id if head else 0,
        is_fork=found.is_fork,
    )


def check_head(found: Pull, sha: str) -> None:
    """Refuse to accept what is not the head any more. Raises RefusedError."""
    if not found.sha.startswith(sha):
        raise RefusedError(
            f"pull request {found.number}: expected {sha} at its head, found {found.sha[:12]}; "
            "look at the report of that commit, and accept that one"
        )
