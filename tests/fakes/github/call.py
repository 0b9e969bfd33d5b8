"""What an operation is given, and the two ways in which it ends."""

from dataclasses import dataclass, field
from typing import Any

from tests.fakes.github.forms import Forms
from tests.fakes.github.state import Repository, State

PAGE = 30
LARGEST_PAGE = 100
# With every answer of github.com; GHES has no limits unless it is told to.
RATE_LIMIT = {
    "x-ratelimit-limit": "1000",
    "x-ratelimit-remaining": "999",
    "x-ratelimit-used": "1",
    "x-ratelimit-reset": "1800000000",
    "x-ratelimit-resource": "core",
}


@dataclass(frozen=True)
class Answer:
    status: int
    body: object = None
    headers: dict[str, str] = field(default_factory=dict)


class RefusedError(Exception):
    """GitHub says no, in this form."""

    def __init__(self, status, message, errors=None):
        super().__init__(message)
        self.answer = Answer(status, error(status, message, errors))


def error(status, message, errors=None):
    """Return an error as GitHub words it."""
    documented = {
        "message": message,
        "documentation_url": "https://docs.github.com/rest",
        "status": str(status),
    }
    return documented if errors is None else {**documented, "errors": errors}


@dataclass(frozen=True)
class Call:
    """A request that has been understood and allowed."""

    state: State
    forms: Forms
    login: str
    repository: Repository | None
    parts: dict[str, str]
    query: dict[str, str]
    body: dict[str, Any]
    blobs: str  # the address of the other host

    def number(self, name):
        return int(self.parts[name])

    def found(self, things, key):
        """Return what has this key, or refuse as GitHub does."""
        if key not in things:
            raise RefusedError(404, "Not Found")
        return things[key]

    def page(self, things):
        """Return the page of things that is asked for."""
        size = min(int(self.query.get("per_page", PAGE)), LARGEST_PAGE)
        start = (max(int(self.query.get("page", 1)), 1) - 1) * size
        return things[start : start + size]
