"""What goes wrong between a job and GitHub, one fault at a time."""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from tests.fakes.github import access, call

JSON = "application/json; charset=utf-8"

LIMITED = "API rate limit exceeded for installation ID 1."
SLOW_DOWN = (
    "You have exceeded a secondary rate limit. Please wait a few minutes before you try again."
)


@dataclass(frozen=True)
class Fault:
    """A fault strikes before the work is done, unless it says otherwise."""

    after: bool = False

    def after_the_work(self):
        """Let GitHub do what it was asked to, and lose its answer."""
        return replace(self, after=True)


@dataclass(frozen=True)
class Answered(Fault):
    """Another answer than the right one."""

    status: int = 500
    body: bytes = b""
    content_type: str = JSON
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Broken(Fault):
    """The right answer, which does not arrive whole: `how` names what the server does to it."""

    how: str = ""
    after: bool = True


@dataclass(frozen=True)
class Elsewhere(Fault):
    """The same question, please, to another host."""


@dataclass(frozen=True)
class Meanwhile(Fault):
    """Somebody else is quicker; then all goes its way."""

    happens: Callable[[], object] = print


def refused(status, message, errors=None, **headers):
    """Return an error in the words of GitHub; `_` in the name of a header stands for `-`."""
    body = json.dumps(call.error(status, message, errors)).encode()
    said = {name.replace("_", "-"): str(value) for name, value in headers.items()}
    return Answered(status=status, body=body, headers={**call.RATE_LIMIT, **said})


def rate_limited(reset_in_s=3000):
    """Return what GitHub says when the hour's requests are spent."""
    reset = int(time.time()) + reset_in_s
    return refused(403, LIMITED, x_ratelimit_remaining=0, x_ratelimit_reset=reset)


def secondary_limit(retry_after_s=None):
    """Return what GitHub says to one who writes too fast."""
    return refused(403, SLOW_DOWN, **_waiting(retry_after_s))


def too_many_requests(retry_after_s=None):
    """Return the same with the status that was made for it."""
    return refused(429, SLOW_DOWN, **_waiting(retry_after_s))


def meanwhile(happens):
    """Return a fault that is none: `happens()` is called before the request is answered."""
    return Meanwhile(happens=happens)


def _waiting(retry_after_s):
    return {} if retry_after_s is None else {"retry_after": retry_after_s}


BAD_GATEWAY = Answered(
    status=502, body=b"<html><body>Unicorn!</body></html>", content_type="text/html"
)
BAD_CREDENTIALS = refused(401, "Bad credentials")
NOT_FOUND = refused(404, "Not Found")
NOT_ACCESSIBLE = refused(403, access.NOT_ACCESSIBLE)
STALLED = Broken(how="stalled")
CUT_JSON = Broken(how="cut_json")
CUT_BODY = Broken(how="cut_body")
RESET = Broken(how="reset", after=False)
ELSEWHERE = Elsewhere()
