import json

import pytest
import requests
from github import GithubException

from ci_perf.github import client


def answered(status, message="", **headers):
    named = {name.replace("_", "-"): str(value) for name, value in headers.items()}
    return GithubException(status, {"message": message}, named)


def told(error):
    failure = client.convert_failure(error, "it")
    assert failure is not None
    return failure


@pytest.mark.parametrize(
    "lost",
    [
        answered(502),
        requests.exceptions.ConnectionError("reset"),
        requests.exceptions.ReadTimeout(),
        requests.exceptions.ChunkedEncodingError(),
        requests.exceptions.ProxyError("https://me:secret@proxy: refused"),
        json.JSONDecodeError("cut", "{", 1),
    ],
    ids=lambda error: type(error).__name__,
)
def test_of_what_is_lost_nobody_knows_whether_it_was_done(lost):
    failure = told(lost)

    assert failure.is_unanswered
    assert str(failure).startswith("it: expected an answer of GitHub, found ")
    assert "secret" not in str(failure)


@pytest.mark.parametrize(
    ("error", "status", "words"),
    [
        (answered(401, "no"), 401, "it: GitHub answered 401 (no): the token"),
        (answered(403, "no"), 403, "no permission"),
        (answered(404, "no"), 404, "not found"),
        (answered(422, "no"), 422, "it: GitHub answered 422 (no)"),
        (answered(429, "x"), 429, "too many requests"),
        (answered(403, "You have exceeded a secondary rate limit"), 429, "too many requests"),
        (answered(403, "x", retry_after=5), 429, "too many requests"),
        (answered(403, "x", x_ratelimit_remaining=0), 429, "too many requests"),
    ],
)
def test_a_refusal_says_what_to_do(error, status, words):
    failure = told(error)

    assert words in str(failure)
    assert (failure.status, failure.is_unanswered) == (status, False)


def test_what_github_says_is_one_short_line():
    failure = told(answered(422, "no\n::error::" + "x" * 10_000))

    assert len(str(failure)) < 400
    assert "\n" not in str(failure)


@pytest.mark.parametrize(
    "error", [AssertionError(), RuntimeError("Github server redirected the request to x")]
)
def test_another_host_than_that_of_github_is_a_failure_of_github(error):
    assert str(told(error)) == "it: GitHub led to another host"


def test_a_bug_of_ours_is_no_failure_of_github():
    assert client.convert_failure(ZeroDivisionError(), "it") is None
