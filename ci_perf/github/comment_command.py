"""A comment that gives ci-perf a command: who wrote it, what it asks for, whether that still holds.

    /ci-perf accept SHA [WORKLOAD…] ["REASON"]

on the first line; later lines are for people. The grammar is strict, so that nothing is guessed.
SHA is the commit, or at least its first 12 digits. An author can make two commits with the same
first digits, have one reviewed and push the other: 7 digits are 28 bits, which is minutes of work.

The event says what was written. GitHub is asked again before anything is done: a comment can be
edited, a pull request closed, a branch pushed to, a permission taken away.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

import msgspec

from ci_perf.errors import InvalidFileError, RefusedError, UsageError
from ci_perf.github import pulls, report_comment, sections
from ci_perf.github.access import Client
from ci_perf.github.failures import FailureKind, GithubError
from ci_perf.github.pulls import OpenPull

_EVENT = "issue_comment"
_BOT = "Bot"
# Levels of those who may push, in the older field of GitHub's answer ("maintain" is "write").
_WRITERS = {"admin", "write"}
_LOGIN = re.compile(r"[A-Za-z0-9_.-]{1,100}")
_BRANCH = re.compile(r"[^\s~^:?*\[\\\x00-\x20\x7f]{1,250}")
USAGE = '/ci-perf accept SHA [WORKLOAD…] ["REASON"]'
# Fewer than a baseline may have: the name of who accepted it is added.
MAX_REASON_CHARS = 400
_MAX_LINE_CHARS = 2_000
_MAX_WORKLOADS = 50
_CALL = re.compile(r"/ci-perf(?![^ \t])")
_SHA = re.compile(r"[0-9a-f]{12,40}")
_WORKLOAD = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.=+-]{0,199}")
# Phones type typographic quotes.
_REASON = re.compile(r'[ \t]+(?:"([^"“”]*)"|“([^"“”]*)”)[ \t]*$')


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandComment:
    """A new comment on a pull request, and who wrote it."""

    id: int
    pull: int
    login: str
    body: str
    created: str
    url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptOrder:
    """Accept what was measured of the commit that begins `sha`; no workloads means all."""

    sha: str
    workloads: tuple[str, ...]
    reason: str


class Reaction(Enum):
    """The reactions that answer a comment at a glance."""

    SEEN = "eyes"
    DONE = "rocket"
    REFUSED = "confused"


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


def read_event(environment: Mapping[str, str], payload: str) -> CommandComment | None:
    """Return the comment; `None` where it is not a person's new comment on a pull request.

    Raises InvalidFileError where the payload is not of the named event.
    """
    if environment.get("GITHUB_EVENT_NAME") != _EVENT:
        return None
    try:
        event = msgspec.json.decode(payload, type=_Event)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise InvalidFileError(
            f"GITHUB_EVENT_PATH: expected the payload of an {_EVENT!r} event, found: {error}"
        ) from None
    user = event.comment.user
    is_new = event.action == "created" and event.issue.pull_request is not None
    if not is_new or user is None or user.type == _BOT or not _LOGIN.fullmatch(user.login):
        return None
    return CommandComment(
        id=event.comment.id,
        pull=event.issue.number,
        login=user.login,
        body=event.comment.body or "",
        created=event.comment.created_at,
        url=event.comment.html_url,
    )


def is_order(body: str) -> bool:
    """Whether a comment is addressed to ci-perf, by the first word of its first line."""
    return _CALL.match(_first_line(body)) is not None


def parse_order(body: str) -> AcceptOrder:
    """Parse a comment that is addressed to ci-perf. Raises UsageError that says what is wrong."""
    line = _first_line(body)
    if len(line) > _MAX_LINE_CHARS:
        raise _wrong(f"a line of at most {_MAX_LINE_CHARS:,} characters", "a longer one")
    reason, line = _reason(line)
    _, verb, sha, *workloads = [*line.split(), "", "", ""][: max(3, len(line.split()))]
    if verb != "accept":
        raise _wrong("accept", verb or "nothing")
    if not _SHA.fullmatch(sha):
        raise _wrong("12 to 40 digits of the commit, in small letters", sha or "nothing")
    for workload in workloads:
        if not _WORKLOAD.fullmatch(workload):
            raise _wrong("the name of a workload, or a reason in quotes", workload)
    if len(workloads) > _MAX_WORKLOADS:
        raise _wrong(f"at most {_MAX_WORKLOADS} workloads; none means all", f"{len(workloads)}")
    return AcceptOrder(sha=sha, workloads=tuple(workloads), reason=reason)


def check_permission(client: Client, login: str) -> None:
    """Refuse a person who may not push. Raises RefusedError and GithubError."""
    what = f"permission of {login}"
    try:
        answer = client.get(f"/collaborators/{login}/permission", _Permission, what=what)
        level = answer.permission
    except GithubError as error:
        if error.status != 404:
            raise
        level = "none"
    if level not in _WRITERS:
        raise RefusedError(
            f"{what}: expected one to write to this repository, found {level[:40]!r}; somebody who "
            "may push must ask"
        )


def check_unchanged(client: Client, comment: CommandComment) -> None:
    """Refuse an edited comment: its editor need not be its author. Raises RefusedError."""
    what = f"comment {comment.id}"
    answer = client.get(f"/issues/comments/{comment.id}", _Comment, what=what)
    is_edited = answer.updated_at != answer.created_at or answer.created_at != comment.created
    if is_edited or (answer.body or "") != comment.body:
        raise RefusedError(f"{what}: expected it as it was written, found it edited; write it anew")


def open_pull(client: Client, number: int) -> OpenPull:
    """Return the pull request. Raises RefusedError where it is not open, and GithubError."""
    what = f"pull request {number}"
    answer = pulls.answer_of(client, number)
    if answer.state != "open":
        raise RefusedError(f"{what}: expected it open, found it {answer.state[:40]}")
    if not _BRANCH.fullmatch(answer.head.ref):
        raise RefusedError(f"{what}: expected the name of a branch, found {answer.head.ref[:80]!r}")
    return pulls.as_open(answer)


def check_head(pull: OpenPull, sha: str) -> None:
    """Refuse to accept a commit that is no longer the head. Raises RefusedError."""
    if not pull.sha.startswith(sha):
        raise RefusedError(
            f"pull request {pull.number}: expected {sha} at its head, found {pull.sha[:12]}; "
            "look at the report of that commit, and accept that one"
        )


def react(client: Client, comment: int, reaction: Reaction) -> None:
    """React to a comment; a second time changes nothing. Raises GithubError."""
    path = f"/issues/comments/{comment}/reactions"
    what = f"reaction to comment {comment}"
    client.make(path, {"content": reaction.value}, what=what, is_repeatable=True)


def reply(client: Client, pull: int, comment: int, text: str) -> None:
    """Answer a comment, once, also where GitHub's answer is lost. Raises GithubError."""
    key = f"answer/{comment}"  # no suite is called so
    body = f"{sections.marker(key)}\n{sections.harmless(text)}"
    path, what = f"/issues/{pull}/comments", f"answer to comment {comment}"
    try:
        client.make(path, {"body": body}, what=what)
    except GithubError as error:
        if error.kind is not FailureKind.UNANSWERED:
            raise
        if not report_comment.find(client, pull, key):
            client.make(path, {"body": body}, what=what)


def _reason(line: str) -> tuple[str, str]:
    """Take the reason off the end of a line."""
    quoted = _REASON.search(line)
    if quoted is None:
        return "", line
    reason = (quoted[1] or quoted[2] or "").strip()
    if not reason or not reason.isprintable():
        raise _wrong("a reason in words", "one that cannot be read")
    if len(reason) > MAX_REASON_CHARS:
        raise _wrong(f"a reason of at most {MAX_REASON_CHARS} characters", f"{len(reason)}")
    return reason, line[: quoted.start()]


def _first_line(body: str) -> str:
    return re.split(r"\r\n|\r|\n", body, maxsplit=1)[0]


def _wrong(expected: str, found: str) -> UsageError:
    return UsageError(f"expected {expected}, found {found[:80]!r}; write: {USAGE}")
