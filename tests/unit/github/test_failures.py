import json
from dataclasses import dataclass, field

import pytest
import requests
from github import GithubException

from ci_perf.github import failures
from ci_perf.github.failures import FailureKind, GithubError, RetryPolicy

NOW = 1_700_000_000.0


@dataclass
class Clock:
    """Time that passes only while somebody sleeps."""

    slept: list[float] = field(default_factory=list)

    def policy(self, **more):
        return RetryPolicy(sleep=self.slept.append, now=lambda: NOW + sum(self.slept), **more)


@pytest.fixture
def clock():
    return Clock()


def answered(status, message="", **headers):
    named = {name.replace("_", "-"): str(value) for name, value in headers.items()}
    return GithubException(status, {"message": message}, named)


def asked(clock, *answers, is_repeatable=True, **more):
    """Ask somebody who answers so; exceptions are raised. Return the answer."""
    left = list(answers)

    def ask():
        answer = left.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    return failures.retry(ask, what="it", is_repeatable=is_repeatable, policy=clock.policy(**more))


LOST = [
    answered(502),
    requests.exceptions.ConnectionError("reset"),
    requests.exceptions.ReadTimeout(),
    requests.exceptions.ChunkedEncodingError(),
    json.JSONDecodeError("cut", "{", 1),
]


@pytest.mark.parametrize("lost", LOST, ids=lambda error: type(error).__name__)
def test_what_may_be_done_twice_is_asked_again_where_the_answer_is_lost(clock, lost):
    assert asked(clock, lost, lost, "done") == "done"
    assert clock.slept == [1, 2]


@pytest.mark.parametrize("lost", LOST, ids=lambda error: type(error).__name__)
def test_what_makes_something_is_never_asked_again(clock, lost):
    with pytest.raises(GithubError) as failure:
        asked(clock, lost, "done twice", is_repeatable=False)

    assert failure.value.kind is FailureKind.UNANSWERED
    assert clock.slept == []


@pytest.mark.parametrize("is_repeatable", [True, False])
def test_what_was_one_too_many_has_done_nothing_and_is_asked_again(clock, is_repeatable):
    limits = [answered(429, retry_after=7), answered(403, "x", retry_after=5)]

    assert asked(clock, *limits, "done", is_repeatable=is_repeatable) == "done"
    assert clock.slept == [7, 5]


def test_a_limit_that_says_when_it_ends_is_waited_for_with_a_second_to_spare(clock):
    limit = answered(403, "API rate limit", x_ratelimit_remaining=0, x_ratelimit_reset=int(NOW) + 9)

    assert asked(clock, limit, "done") == "done"
    assert clock.slept == [10]


def test_a_limit_that_ends_in_an_hour_is_not_waited_for(clock):
    limit = answered(403, "", x_ratelimit_remaining=0, x_ratelimit_reset=int(NOW) + 3_000)

    with pytest.raises(GithubError, match="too many requests for another 3001 s"):
        asked(clock, limit)
    assert clock.slept == []


@pytest.mark.parametrize("status", [403, 429])
def test_a_limit_that_does_not_say_when_it_ends_is_given_a_minute(clock, status):
    limit = answered(status, "You have exceeded a secondary rate limit")

    assert asked(clock, limit, "done") == "done"
    assert clock.slept == [60]


def test_patience_ends(clock):
    with pytest.raises(GithubError, match="found 502"):
        asked(clock, *[answered(502)] * 9)
    assert clock.slept == [1, 2, 4]


@pytest.mark.parametrize(
    ("status", "words"),
    [(401, "token"), (403, "no permission"), (404, "not found"), (422, "GitHub answered 422")],
)
def test_a_refusal_says_what_to_do_and_is_not_asked_again(clock, status, words):
    with pytest.raises(GithubError, match=words) as failure:
        asked(clock, answered(status, "no"))

    assert str(failure.value).startswith(f"it: GitHub answered {status} (no)")
    assert failure.value.kind is FailureKind.REFUSED
    assert clock.slept == []


def test_a_proxy_with_a_password_is_not_named(clock):
    refused = requests.exceptions.ProxyError("https://me:secret@proxy: refused")

    with pytest.raises(GithubError) as failure:
        asked(clock, refused, attempts=1)
    assert "secret" not in str(failure.value)


def test_what_github_says_is_one_short_line(clock):
    with pytest.raises(GithubError) as failure:
        asked(clock, answered(422, "no\n::error::" + "x" * 10_000))

    assert len(str(failure.value)) < 400
    assert "\n" not in str(failure.value)


def test_a_bug_of_ours_is_no_failure_of_github(clock):
    with pytest.raises(ZeroDivisionError):
        asked(clock, ZeroDivisionError())
