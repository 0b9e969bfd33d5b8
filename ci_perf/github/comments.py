"""Which comments on a pull request are ours: by their first line, and by who wrote them."""

from dataclasses import dataclass

import msgspec

from ci_perf.github import sections
from ci_perf.github.client import Client
from ci_perf.github.failures import GithubError, Kind

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Comment:
    """A comment of ours."""

    id: int
    url: str
    body: str


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


def find(client: Client, pull: int, key: str) -> list[Comment]:
    """Find the comments that we have written with this key, oldest first.

    One that somebody has hidden is left alone: nobody would see what is written to it. Raises
    GithubError.
    """
    try:
        found = _by_graphql(client, pull)
    except GithubError as error:
        if error.status in {401, 403} or error.kind is Kind.LIMITED:
            raise
        found = _by_rest(client, pull)
    return sorted((one for one in found if sections.is_ours(one.body, key)), key=lambda one: one.id)


def _by_graphql(client: Client, pull: int) -> list[Comment]:
    """List the comments of whoever holds the token: only GraphQL knows that for a job's token."""
    found: list[_Node | None] = []
    after: str | None = None
    while True:
        answer = client.query(
            _QUERY,
            _Answer,
            what=what(pull),
            owner=client.owner,
            name=client.name,
            number=pull,
            after=after,
        )
        page = answer.repository.pull_request.comments
        found += page.nodes
        after = page.page_info.end_cursor
        if not page.page_info.has_next_page or after is None:
            break
    return [
        Comment(id=one.database_id, url=one.url, body=one.body)
        for one in found
        if one is not None
        and one.database_id is not None
        and one.viewer_did_author
        and not one.is_minimized
    ]


def _by_rest(client: Client, pull: int) -> list[Comment]:
    """List the comments of bots, where there is no GraphQL: people may not speak for us."""
    listed = client.pages(f"/issues/{pull}/comments", _Listed, what=what(pull))
    return [
        Comment(id=one.id, url=one.html_url, body=one.body or "")
        for one in listed
        if one.user is not None and one.user.type == _BOT
    ]


def what(pull: int) -> str:
    """Name the comment in a message."""
    return f"comment on pull request {pull}"
