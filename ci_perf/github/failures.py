"""Failed requests: repeat them where that is safe, else say what to do, and never the token."""

import itertools
import json
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TypeVar

from ci_perf.errors import CiPerfError

_HTTP_OK = 400
_MAX_CHARS = 200
_LIMITED = re.compile(r"rate limit|abuse detection|wait a few minutes", re.IGNORECASE)
_SEEN = re.compile(r"[^\x20-\x7e\xa0-\uffff]+")
_T = TypeVar("_T")


class FailureKind(Enum):
    """What a failure means for the caller."""

    UNANSWERED = "unanswered"  # whether it was done, nobody knows
    LIMITED = "limited"  # nothing was done: too many requests
    REFUSED = "refused"  # nothing was done, and asking again would not help


class GithubError(CiPerfError):
    """GitHub did not do what it was asked for.

    ``status`` is that of HTTP, 0 where there was no answer. ``wait_s`` is how long GitHub wants to
    be left alone, ``None`` where it does not say.
    """

    def __init__(
        self, message: str, *, kind: FailureKind, status: int = 0, wait_s: float | None = None
    ) -> None:
        super().__init__(message)
        self.kind, self.status, self.wait_s = kind, status, wait_s


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """How often to ask, and how long to wait: the runner, maybe with a GPU, waits as long.

    GitHub asks for a minute after a secondary limit that names no time: the longest wait. Against
    these limits it advises a second between two writes.
    """

    attempts: int = 4
    first_wait_s: float = 1.0
    longest_wait_s: float = 60.0
    between_writes_s: float = 1.0
    sleep: Callable[[float], None] = lambda seconds: time.sleep(seconds)  # noqa: PLW0108  looked up when it is called
    now: Callable[[], float] = time.time


def retry(ask: Callable[[], _T], *, what: str, is_repeatable: bool, policy: RetryPolicy) -> _T:
    """Send a request, and send it again where that cannot do a thing twice. Raises GithubError.

    A request that GitHub refused for its rate limit has done nothing, whatever it was.
    """
    for attempt in itertools.count():
        try:
            return ask()
        except Exception as error:
            failure = from_exception(error, what, now=policy.now())
            if failure is None:
                raise
        wait_s = _pause_s(failure, attempt, policy, is_repeatable=is_repeatable)
        if wait_s is None:
            raise failure
        policy.sleep(wait_s)
    raise AssertionError("it returns or raises")


def from_exception(error: Exception, what: str, *, now: float) -> GithubError | None:
    """Convert a failure of PyGithub or requests; `None` for any other, which is a bug of ours."""
    import requests
    from github import GithubException

    if isinstance(error, GithubException):
        headers = {name.lower(): value for name, value in (error.headers or {}).items()}
        return _answered(what, error.status or 0, _message(error.data), headers, now)
    if isinstance(error, requests.RequestException | ConnectionError | TimeoutError):
        # The text of such an error may hold the address of a proxy, with its password.
        return _unanswered(what, f"no answer ({type(error).__name__})")
    if isinstance(error, json.JSONDecodeError):
        return _unanswered(what, "an answer that was cut off")
    # PyGithub asserts that an address is of the configured host, or says that it is not.
    if isinstance(error, AssertionError) or str(error).startswith("Github server redirected"):
        return GithubError(f"{what}: GitHub led to another host", kind=FailureKind.REFUSED)
    return None


def unexpected_answer(what: str) -> GithubError:
    """Say that an answer lacks what every answer of GitHub has: it came from somebody else."""
    return GithubError(
        f"{what}: expected GitHub's answer, found another one; is there a proxy between, and does "
        "GITHUB_API_URL name the API?",
        kind=FailureKind.REFUSED,
    )


def from_graphql(what: str, errors: list[dict[str, object]]) -> GithubError:
    """Convert the errors of a GraphQL answer, whose status is that of a success."""
    said = _message({"message": errors[0].get("message")})
    return GithubError(f"{what}: GitHub refused the query ({said})", kind=FailureKind.REFUSED)


def _pause_s(
    failure: GithubError, attempt: int, policy: RetryPolicy, *, is_repeatable: bool
) -> float | None:
    """Return how long to wait before the next attempt; `None`: no further attempt."""
    may_repeat = failure.kind is FailureKind.LIMITED or (
        failure.kind is FailureKind.UNANSWERED and is_repeatable
    )
    if not may_repeat or attempt + 1 == policy.attempts:
        return None
    wait_s = policy.first_wait_s * 2**attempt
    if failure.kind is FailureKind.LIMITED:
        wait_s = max(wait_s, policy.longest_wait_s if failure.wait_s is None else failure.wait_s)
    return wait_s if wait_s <= policy.longest_wait_s else None


def _answered(
    what: str, status: int, message: str, headers: Mapping[str, str], now: float
) -> GithubError:
    said = f"{what}: GitHub answered {status}" + (f" ({message})" if message else "")
    if _is_limited(status, message, headers):
        wait_s = _wait_s(headers, now)
        until = "" if wait_s is None else f" for another {wait_s:.0f} s"
        text = f"{said}: too many requests{until}; later jobs will report again"
        return GithubError(text, kind=FailureKind.LIMITED, status=status, wait_s=wait_s)
    if status < _HTTP_OK or status >= 500:
        return _unanswered(what, f"{status}" + (f" ({message})" if message else ""), status)
    return GithubError(f"{said}{_cure(status)}", kind=FailureKind.REFUSED, status=status)


def _unanswered(what: str, found: str, status: int = 0) -> GithubError:
    text = f"{what}: expected an answer of GitHub, found {found}; is GitHub well, and reachable?"
    return GithubError(text, kind=FailureKind.UNANSWERED, status=status)


def _cure(status: int) -> str:
    if status == 401:
        return ": the token is not accepted; GITHUB_TOKEN must be that of this job"
    if status == 403:
        return (
            ": no permission; give the job what docs/github.md lists (on a pull request from a "
            "fork or of Dependabot a token may only read)"
        )
    if status == 404:
        return ": not found; does GITHUB_TOKEN belong to this repository?"
    return ""


def _is_limited(status: int, message: str, headers: Mapping[str, str]) -> bool:
    if status == 429:
        return True
    is_empty = headers.get("x-ratelimit-remaining") == "0"
    return status == 403 and (
        "retry-after" in headers or is_empty or bool(_LIMITED.search(message))
    )


def _wait_s(headers: Mapping[str, str], now: float) -> float | None:
    after, reset = headers.get("retry-after", ""), headers.get("x-ratelimit-reset", "")
    if after.isdecimal():
        return float(after)
    if headers.get("x-ratelimit-remaining") == "0" and reset.isdecimal():
        # It is not said when within that second.
        return max(0.0, float(reset) - now) + 1
    return None


def _message(data: object) -> str:
    """Return what GitHub says, short and on one line; a page of HTML says nothing."""
    if not isinstance(data, dict) or not isinstance(message := data.get("message"), str):
        return ""
    errors = data.get("errors")
    first = errors[0] if isinstance(errors, list) and errors else None
    detail = first.get("message") if isinstance(first, dict) else None
    text = message if not isinstance(detail, str) else f"{message}: {detail}"
    line = " ".join(_SEEN.sub(" ", text).split())
    return line if len(line) <= _MAX_CHARS else line[: _MAX_CHARS - 1] + "…"
