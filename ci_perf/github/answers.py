"""What is said to a comment: a reaction, and one answer."""

from enum import Enum

from ci_perf.github import comments, sections
from ci_perf.github.client import Client
from ci_perf.github.failures import GithubError, Kind


class Reaction(Enum):
    """How a comment is answered at a glance."""

    SEEN = "eyes"
    DONE = "rocket"
    REFUSED = "confused"


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
        if error.kind is not Kind.UNANSWERED:
            raise
        if not comments.find(client, pull, key):
            client.make(path, {"body": body}, what=what)
