"""Our comment on a pull request: one for each suite, which one job writes and keeps up to date.

Which comments are ours is told by their first line, and by who wrote them. The second line says
which run wrote it, and what our next run has to know.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

import msgspec

from ci_perf.errors import RefusedError
from ci_perf.github.client import Client, GithubError

# GitHub's limit is 65,536, of characters or bytes depending on whom one asks.
MAX_BYTES = 65_000
# What is sent where GitHub finds the usual size too long.
_SIZES = (MAX_BYTES, 30_000, 5_000)
# The beginning of every marker in a comment of ours; no foreign text may contain it.
_OURS = "<!-- ci-perf:"
_WRITTEN = re.compile(
    r"<!-- ci-perf:run=(?P<run>[0-9]{1,18}) attempt=(?P<attempt>[0-9]{1,18}) "
    r"record=(?P<record>[A-Za-z0-9_=-]*) -->"
)
_NOT_A_KEY = re.compile(r"[^A-Za-z0-9_.:/=+-]+")
_MAX_KEY_CHARS = 100
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
class Draft:
    """A comment to be: `text` renders it within a number of bytes.

    A later run, or a later attempt of it, is newer. `record` makes the new record of the one that
    stands there, `None` where there is none or it is damaged.
    """

    run: int
    attempt: int
    text: Callable[[int], str]
    record: Callable[[str | None], str] = lambda _old: ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comment:
    """A comment of ours."""

    id: int
    url: str
    body: str

    @property
    def age(self) -> tuple[int, int]:
        """Return the run and the attempt that wrote it: the largest is the newest."""
        written = self._written
        return (int(written["run"]), int(written["attempt"])) if written else (0, 0)

    @property
    def record(self) -> str | None:
        """Return what the run that wrote it has left; `None` where somebody has removed it."""
        written = self._written
        return written["record"] if written else None

    @property
    def _written(self) -> re.Match[str] | None:
        lines = _unix(self.body).split("\n")
        return _WRITTEN.fullmatch(lines[1]) if len(lines) > 1 else None


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


def marker(key: str) -> str:
    """Return the first line of our comment. The key tells two comments of ours apart."""
    word = _NOT_A_KEY.sub("-", key)[:_MAX_KEY_CHARS].strip("-")
    return f"{_OURS}v1 key={word or 'unknown'} -->"


def harmless(text: str) -> str:
    """Change foreign text so that no part of it reads as one of our markers."""
    return text.replace(_OURS, _OURS.replace("<!--", "<! --"))


def put(
    client: Client, pull: int, key: str, draft: Draft, *, is_skippable: bool = False
) -> PostedComment:
    """Bring the comment `key` up to date, unless a newer run has written it. Raises GithubError.

    Skippable: not worth the first comment.
    """
    mine = find(client, pull, key)
    newest = _choose_newest(mine)
    if newest is None and is_skippable:
        return PostedComment(outcome=CommentOutcome.SKIPPED)
    if newest is not None and newest.age > (draft.run, draft.attempt):
        return PostedComment(outcome=CommentOutcome.OUTDATED, url=newest.url)
    record = draft.record(newest.record if newest else None)
    head = f"{marker(key)}\n{_OURS}run={draft.run} attempt={draft.attempt} record={record} -->\n"
    for max_bytes in _SIZES:
        body = head + harmless(draft.text(max_bytes - len(head.encode())))
        try:
            return _send(client, pull, key, mine, body)
        except GithubError as error:
            is_too_long = error.status == 422 and "too long" in str(error).lower()
            if max_bytes == _SIZES[-1] or not is_too_long:
                raise
    raise AssertionError("the last size returns or raises")


def find(client: Client, pull: int, key: str | None) -> list[Comment]:
    """Find the comments that we have written with this key, oldest first. Raises GithubError.

    Without a key, those of every suite. A hidden comment is left alone: nobody would see what is
    written to it.
    """
    begin = f"{_OURS}v1 key=" if key is None else f"{marker(key)}\n"
    mine = [each for each in _list_own(client, pull) if _unix(each.body).startswith(begin)]
    return sorted(mine, key=lambda comment: comment.id)


def read(client: Client, pull: int, key: str | None) -> Comment | None:
    """Return our comment, the newest if there are several; without a key, that of any suite.

    Raises GithubError, and RefusedError where comments of several suites might be meant.
    """
    mine = find(client, pull, key)
    if len({comment.body.partition("\n")[0].strip() for comment in mine}) > 1:
        raise RefusedError("there are comments of several suites; name the key of one")
    return _choose_newest(mine)


def _choose_newest(mine: list[Comment]) -> Comment | None:
    return max(mine, key=lambda comment: comment.age, default=None)


def create(client: Client, pull: int, key: str, body: str) -> str:
    """Make a comment, once, also where GitHub's answer is lost; return its address."""
    for is_last in (False, True):
        try:
            made = client.make(f"/issues/{pull}/comments", {"body": body}, what=_describe(pull))
        except GithubError as error:
            if error.is_unanswered and (mine := find(client, pull, key)):
                return mine[-1].url
            if is_last or not error.is_unanswered:
                raise
        else:
            return made.html_url or ""
    raise AssertionError("the last attempt returns or raises")


def _send(client: Client, pull: int, key: str, mine: list[Comment], body: str) -> PostedComment:
    """Write it into the oldest of our comments; a second one, from a lost answer, goes."""
    if not mine:
        return PostedComment(outcome=CommentOutcome.CREATED, url=create(client, pull, key, body))
    first, *others = mine
    for other in others:
        client.remove(f"/issues/comments/{other.id}", what=_describe(pull))
    if _unix(first.body) == _unix(body):
        return PostedComment(outcome=CommentOutcome.UNCHANGED, url=first.url)
    client.change(f"/issues/comments/{first.id}", {"body": body}, what=_describe(pull))
    return PostedComment(outcome=CommentOutcome.UPDATED, url=first.url)


def _list_own(client: Client, pull: int) -> list[Comment]:
    """List the comments of whoever holds the token: only GraphQL knows that for a job's token."""
    comments: list[Comment] = []
    after: str | None = None
    while True:
        answer = client.query(
            _QUERY,
            _Answer,
            what=_describe(pull),
            owner=client.owner,
            name=client.name,
            number=pull,
            after=after,
        )
        page = answer.repository.pull_request.comments
        comments += [
            Comment(id=node.database_id, url=node.url, body=node.body)
            for node in page.nodes
            if node and node.database_id and node.viewer_did_author and not node.is_minimized
        ]
        after = page.page_info.end_cursor
        if not page.page_info.has_next_page or after is None:
            return comments


def _describe(pull: int) -> str:
    return f"comment on pull request {pull}"


def _unix(text: str) -> str:
    """Undo what GitHub does to a text: its editor ends lines otherwise, and the last end is cut."""
    return text.replace("\r\n", "\n").rstrip() + "\n"
