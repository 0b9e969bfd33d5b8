"""A commit status: less than a check, for tokens that may make none."""

from dataclasses import dataclass
from typing import Literal

from ci_perf.github.client import Client

MAX_CHARS = 140

State = Literal["success", "failure", "error", "pending"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """What is said of a commit; a later one with the same context replaces it."""

    context: str
    state: State
    description: str
    url: str = ""


def put(client: Client, sha: str, status: Status) -> None:
    """Report `status` on the commit `sha`. Raises GithubError."""
    text = status.description
    short = text if len(text) <= MAX_CHARS else text[: MAX_CHARS - 1] + "…"
    body = {"context": status.context, "state": status.state, "description": short}
    if status.url:
        body["target_url"] = status.url
    what = f"status {status.context!r}"
    client.make(f"/statuses/{sha}", body, what=what, is_repeatable=True)
