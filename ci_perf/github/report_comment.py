"""Our comment on a pull request: written once, kept up to date, and safe among several jobs.

Jobs of a matrix write one section each of the same comment, and GitHub has no way to write only if
nothing else was written meanwhile. So each job reads directly before it writes, looks again a
moment later, and writes again when another one was in between. Which comments are ours is told by
their first line, and by who wrote them.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum

import msgspec

from ci_perf.github import sections
from ci_perf.github.access import Client
from ci_perf.github.failures import FailureKind, GithubError
from ci_perf.github.sections import Draft, Section

_TRIES = 6
# Longer than another job mostly needs from its reading to its writing.
_SETTLE_S = (0.75, 2.25)
# What is sent where GitHub finds the usual size too long.
_SIZES = (sections.MAX_BYTES, 30_000, 5_000)
_BOT = "Bot"
_QUERY = """
query($owner: String!, $name: String!, $number: Int!, $after: String) {
  repository(owner: $owner, name: $name) {
    pullRequest(number: $number) {
      comments(first: 100, after: $after) {
        nodes { databaseId url body viewerDidAuthor isMinimized }
        pageInfo { endCursor hasNextPage }
      }
    }
  }
}
"""


class CommentOutcome(Enum):
    """What became of a comment."""

    CREATED = "created"
    UPDATED = "updated"
    UNCHANGED = "unchanged"
    SKIPPED = "skipped"
    OUTDATED = "outdated"


@dataclass(frozen=True, slots=True, kw_only=True)
class PostedComment:
    """What became of a comment, and its address, if there is one."""

    outcome: CommentOutcome
    url: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comment:
    """A comment of ours."""

    id: int
    url: str
    body: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    """What stands on the pull request now: our comments, oldest first, and all their sections."""

    client: Client
    pull: int
    key: str
    mine: list[Comment]
    every: tuple[Section, ...]

    @property
    def url(self) -> str:
        return self.mine[0].url if self.mine else ""

    def without_outdated(self, own: Sequence[Draft]) -> list[Draft]:
        """Leave out what a newer run has already reported."""
        ages = {section.name: section.age for section in self.every}
        return [draft for draft in own if ages.get(draft.name, draft.age) <= draft.age]


class _Node(msgspec.Struct, rename="camel"):
    url: str
    body: str
    viewer_did_author: bool
    is_minimized: bool
    database_id: int | None = None


class _PageInfo(msgspec.Struct, rename="camel"):
    has_next_page: bool
    end_cursor: str | None = None


class _Comments(msgspec.Struct, rename="camel"):
    nodes: list[_Node | None]
    page_info: _PageInfo


class _PullRequest(msgspec.Struct):
    comments: _Comments


class _Repository(msgspec.Struct, rename="camel"):
    pull_request: _PullRequest


class _Answer(msgspec.Struct):
    repository: _Repository


class _User(msgspec.Struct):
    login: str
    type: str = ""


class _Listed(msgspec.Struct):
    id: int
    html_url: str
    body: str | None = None
    user: _User | None = None


def put(
    client: Client,
    pull: int,
    key: str,
    own: Sequence[Draft],
    *,
    is_skippable: bool = False,
    settle: Callable[[], None] | None = None,
) -> PostedComment:
    """Bring the comment `key` up to date with `own`. Raises GithubError.

    A section that a newer run has written stays. Skippable: not worth the first comment.
    """
    wait = settle or (lambda: client.retries.sleep(random.uniform(*_SETTLE_S)))  # noqa: S311  only so that two jobs do not stay in step
    done: CommentOutcome | None = None
    for _ in range(_TRIES):
        seen = _look(client, pull, key)
        current = seen.without_outdated(own)
        if not current:
            return PostedComment(outcome=CommentOutcome.OUTDATED, url=seen.url)
        if is_skippable and not seen.mine:
            return PostedComment(outcome=CommentOutcome.SKIPPED)
        if done is not None and _is_settled(seen, current):
            return PostedComment(outcome=done, url=seen.url)
        wrote = _write(seen, current)
        if wrote is CommentOutcome.UNCHANGED:
            return PostedComment(outcome=done or wrote, url=seen.url)
        done = done or wrote
        wait()
    raise GithubError(
        f"{_label(pull)}: not there after {_TRIES} attempts; is GitHub unwell, or do other "
        "jobs write to it all the time? Then let one job report the whole matrix",
        kind=FailureKind.REFUSED,
    )


def find(client: Client, pull: int, key: str) -> list[Comment]:
    """Find the comments that we have written with this key, oldest first. Raises GithubError.

    A hidden comment is left alone: nobody would see what is written to it.
    """
    try:
        comments = _by_graphql(client, pull)
    except GithubError as error:
        if error.status in {401, 403} or error.kind is FailureKind.LIMITED:
            raise
        comments = _by_rest(client, pull)
    mine = [comment for comment in comments if sections.is_ours(comment.body, key)]
    return sorted(mine, key=lambda comment: comment.id)


def read(client: Client, pull: int, key: str) -> tuple[Section, ...] | None:
    """Return the sections that stand in our comment; `None` without one. Raises GithubError."""
    seen = _look(client, pull, key)
    return seen.every if seen.mine else None


def _look(client: Client, pull: int, key: str) -> _Seen:
    mine = find(client, pull, key)
    parsed = (sections.parse(comment.body, key) for comment in mine)
    every = sections.newest(section for parts in parsed for section in parts)
    return _Seen(client=client, pull=pull, key=key, mine=mine, every=every)


def _is_settled(seen: _Seen, own: Sequence[Draft]) -> bool:
    return len(seen.mine) == 1 and all(draft.is_in(seen.every) for draft in own)


def _write(seen: _Seen, own: Sequence[Draft]) -> CommentOutcome:
    """Write as much as GitHub takes, into the oldest of our comments: all jobs choose the same."""
    for max_bytes in _SIZES:
        body = sections.compose(seen.key, seen.every, own, max_bytes=max_bytes)
        try:
            return _send(seen, body)
        except GithubError as error:
            if max_bytes == _SIZES[-1] or not _is_too_long(error):
                raise
    raise AssertionError("the last size returns or raises")


def _send(seen: _Seen, body: str) -> CommentOutcome:
    if not seen.mine:
        return _create(seen, body)
    first, *others = seen.mine
    if not others and _kept(first.body) == _kept(body):
        return CommentOutcome.UNCHANGED
    what = _label(seen.pull)
    seen.client.change(f"/issues/comments/{first.id}", {"body": body}, what=what)
    for other in others:
        seen.client.remove(f"/issues/comments/{other.id}", what=what)
    return CommentOutcome.UPDATED


def _create(seen: _Seen, body: str) -> CommentOutcome:
    """Ask once: where the answer is lost, the next look shows whether it was done."""
    try:
        seen.client.make(f"/issues/{seen.pull}/comments", {"body": body}, what=_label(seen.pull))
    except GithubError as error:
        if error.kind is not FailureKind.UNANSWERED:
            raise
    return CommentOutcome.CREATED


def _is_too_long(error: GithubError) -> bool:
    return error.status == 422 and "too long" in str(error).lower()


def _kept(body: str) -> str:
    """Return a body as GitHub keeps it."""
    return body.replace("\r\n", "\n").strip()


def _by_graphql(client: Client, pull: int) -> list[Comment]:
    """List the comments of whoever holds the token: only GraphQL knows that for a job's token."""
    nodes: list[_Node | None] = []
    after: str | None = None
    while True:
        answer = client.query(
            _QUERY,
            _Answer,
            what=_label(pull),
            owner=client.owner,
            name=client.name,
            number=pull,
            after=after,
        )
        page = answer.repository.pull_request.comments
        nodes += page.nodes
        after = page.page_info.end_cursor
        if not page.page_info.has_next_page or after is None:
            break
    return [
        Comment(id=node.database_id, url=node.url, body=node.body)
        for node in nodes
        if node is not None
        and node.database_id is not None
        and node.viewer_did_author
        and not node.is_minimized
    ]


def _by_rest(client: Client, pull: int) -> list[Comment]:
    """List the comments of bots, where there is no GraphQL: people may not speak for us."""
    listed = client.pages(f"/issues/{pull}/comments", _Listed, what=_label(pull))
    return [
        Comment(id=comment.id, url=comment.html_url, body=comment.body or "")
        for comment in listed
        if comment.user is not None and comment.user.type == _BOT
    ]


def _label(pull: int) -> str:
    """Name the comment in a message."""
    return f"comment on pull request {pull}"
