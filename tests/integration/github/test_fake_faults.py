"""Each fault of the fake GitHub, as a client meets it."""

import json
import time

import pytest
import requests
from github import (
    Auth,
    BadCredentialsException,
    Github,
    GithubException,
    GithubRetry,
    RateLimitExceededException,
    UnknownObjectException,
)

from tests.fakes.github import faults
from tests.fakes.github.fixtures import on_github_and_ghes

COMMENTS = r"/issues/7/comments$"


def comment(github, body="x", **options):
    """Write a comment; the client waits for as long as a busy machine may need."""
    return requests.post(
        f"{github.url}/repos/{github.repository}/issues/7/comments",
        json={"body": body},
        headers={"Authorization": f"Bearer {github.token}"},
        **{"timeout": 30, **options},
    )


def through_pygithub(github, **options):
    """Return the pull request as an issue; nothing has been asked yet."""
    client = Github(
        auth=Auth.Token(github.token),
        base_url=github.url,
        lazy=True,
        seconds_between_requests=0,
        seconds_between_writes=0,
        **options,
    )
    return client.get_repo(github.repository).get_issue(7)


@pytest.fixture
def opened(github):
    github.add_pull(7)
    return github


@on_github_and_ghes
def test_a_lost_answer_hides_work_that_was_done(opened):
    opened.fail_next("POST", COMMENTS, faults.BAD_GATEWAY.after_the_work())

    assert comment(opened).status_code == 502
    assert len(opened.comments(7)) == 1


def test_a_fault_strikes_before_the_work_and_only_once(opened):
    opened.fail_next("POST", COMMENTS, faults.BAD_GATEWAY)

    assert [comment(opened, body).status_code for body in "ab"] == [502, 201]
    assert [c.body for c in opened.comments(7)] == ["b"]
    assert [r.status for r in opened.sent("POST", COMMENTS)] == [502, 201]


def test_a_fault_strikes_as_often_as_it_is_told(opened):
    opened.fail_next("POST", COMMENTS, faults.BAD_GATEWAY, times=2)

    assert [comment(opened).status_code for _ in range(3)] == [502, 502, 201]


def test_a_fault_leaves_other_requests_alone(opened):
    opened.fail_next("PATCH", COMMENTS, faults.BAD_GATEWAY)
    opened.fail_next("POST", r"/issues/8/", faults.BAD_GATEWAY)

    assert comment(opened).status_code == 201


@pytest.mark.parametrize(
    ("fault", "status", "headers"),
    [
        (faults.secondary_limit(), 403, {"retry-after": None}),
        (faults.secondary_limit(60), 403, {"retry-after": "60"}),
        (faults.too_many_requests(), 429, {"retry-after": None}),
        (faults.too_many_requests(1), 429, {"retry-after": "1"}),
        (faults.BAD_CREDENTIALS, 401, {}),
        (faults.NOT_FOUND, 404, {}),
        (faults.NOT_ACCESSIBLE, 403, {"x-ratelimit-remaining": "999"}),
        (faults.TOO_LONG, 422, {}),
    ],
)
def test_a_refusal_looks_like_one_of_github(opened, fault, status, headers):
    opened.fail_next("POST", COMMENTS, fault)

    answer = comment(opened)

    assert answer.status_code == status
    assert {name: answer.headers.get(name) for name in headers} == headers
    assert set(answer.json()) >= {"message", "documentation_url"}
    assert opened.comments(7) == []


def test_the_primary_limit_says_when_it_ends(opened):
    opened.fail_next("POST", COMMENTS, faults.rate_limited(reset_in_s=3000))

    answer = comment(opened)

    assert (answer.status_code, answer.headers["x-ratelimit-remaining"]) == (403, "0")
    # A minute for the machine's own delays, of fifty that are told.
    assert 2940 < int(answer.headers["x-ratelimit-reset"]) - time.time() <= 3000
    assert answer.json()["message"].startswith("API rate limit exceeded")


def test_the_fault_says_what_a_long_comment_is_told(opened):
    opened.fail_next("POST", COMMENTS, faults.TOO_LONG)

    assert comment(opened).json() == comment(opened, "x" * 65_537).json()


def test_a_slow_answer_arrives_whole(opened):
    opened.fail_next("POST", COMMENTS, faults.SLOW)

    assert comment(opened).json()["body"] == "x"


def test_a_stalled_answer_ends_when_the_client_gives_up(opened):
    opened.fail_next("POST", COMMENTS, faults.STALLED)

    with pytest.raises(requests.exceptions.RequestException, match="timed out"):
        comment(opened, timeout=0.3)


def test_a_cut_answer_is_no_json(opened):
    opened.fail_next("POST", COMMENTS, faults.CUT_JSON)

    answer = comment(opened)

    assert answer.status_code == 201
    with pytest.raises(json.JSONDecodeError):
        answer.json()


def test_a_connection_that_ends_too_early_is_an_error(opened):
    opened.fail_next("POST", COMMENTS, faults.CUT_BODY)

    with pytest.raises(requests.exceptions.ChunkedEncodingError):
        comment(opened)


@pytest.mark.parametrize(("fault", "done"), [(faults.RESET, 0), (faults.RESET.after_the_work(), 1)])
def test_a_connection_is_reset_before_or_after_the_work(opened, fault, done):
    opened.fail_next("POST", COMMENTS, fault)

    with pytest.raises(requests.exceptions.ConnectionError, match="reset"):
        comment(opened)

    assert len(opened.comments(7)) == done
    assert [r.status for r in opened.sent("POST", COMMENTS)] == [0]


@on_github_and_ghes
def test_a_redirect_leads_to_a_host_that_refuses_a_token(opened):
    opened.fail_next("POST", COMMENTS, faults.ELSEWHERE)

    there = comment(opened, allow_redirects=False).headers["Location"]
    refused = requests.get(there, headers={"Authorization": "Bearer x"}, timeout=30)

    assert there.startswith("http://127.0.0.2:")
    assert refused.status_code == 400


def test_somebody_else_is_quicker(opened):
    earlier = faults.meanwhile(lambda: opened.add_comment(7, "theirs"))
    opened.fail_next("POST", COMMENTS, earlier)

    assert comment(opened, "ours").status_code == 201
    assert [c.body for c in opened.comments(7)] == ["theirs", "ours"]


def test_graphql_fails_as_rest_does(opened):
    opened.fail_next("POST", "^/graphql$", faults.NOT_FOUND)

    answer = requests.post(opened.graphql_url, json={"query": "{ viewer { login } }"}, timeout=30)

    assert answer.status_code == 404


def test_the_other_host_fails_as_well(github):
    github.add_run(5)
    artifact = github.add_artifact(5, "ci-perf", {"run.json": "{}"})
    github.fail_next("GET", "^/artifacts/", faults.CUT_JSON)
    github.fail_next("GET", "^/artifacts/", faults.CUT_BODY)
    path = f"{github.url}/repos/{github.repository}/actions/artifacts/{artifact.id}/zip"
    headers = {"Authorization": f"Bearer {github.token}"}
    answer = requests.get(path, headers=headers, allow_redirects=False, timeout=30)

    half = requests.get(answer.headers["Location"], timeout=30).content

    assert half == artifact.archive[: len(artifact.archive) // 2]
    with pytest.raises(requests.exceptions.ChunkedEncodingError):
        requests.get(answer.headers["Location"], timeout=30)


# --- as PyGithub sees it


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        (faults.BAD_GATEWAY, GithubException),
        (faults.rate_limited(), RateLimitExceededException),
        (faults.secondary_limit(), RateLimitExceededException),
        (faults.too_many_requests(), GithubException),
        (faults.BAD_CREDENTIALS, BadCredentialsException),
        (faults.NOT_FOUND, UnknownObjectException),
        (faults.NOT_ACCESSIBLE, GithubException),
        (faults.TOO_LONG, GithubException),
        (faults.CUT_BODY, requests.exceptions.ChunkedEncodingError),
        (faults.RESET, requests.exceptions.ConnectionError),
    ],
)
def test_pygithub_takes_each_fault_for_what_it_is(opened, fault, expected):
    opened.fail_next("POST", COMMENTS, fault)

    with pytest.raises(expected) as caught:
        through_pygithub(opened, retry=None, timeout=30).create_comment("x")

    assert type(caught.value) is expected


def test_pygithub_does_not_follow_a_repository_to_another_host(opened):
    opened.fail_next("GET", COMMENTS, faults.elsewhere(301))

    with pytest.raises(RuntimeError):
        list(through_pygithub(opened, retry=None).get_comments())

    assert opened.blob_requests == []


@pytest.mark.parametrize("status", [302, 307])
def test_pygithub_takes_other_redirects_for_an_empty_answer(opened, status):
    """Nothing was read and nothing was written, and nobody says so: a client must look itself."""
    opened.add_comment(7, "x")
    opened.fail_next("GET", COMMENTS, faults.elsewhere(status))
    opened.fail_next("POST", COMMENTS, faults.elsewhere(status))
    issue = through_pygithub(opened, retry=None)

    issue.create_comment("y")

    assert list(issue.get_comments()) == []
    assert [c.body for c in opened.comments(7)] == ["x"]


def test_pygithub_comments_twice_when_an_answer_is_lost(opened):
    """Why its own way to repeat a request is not the one to take."""
    opened.fail_next("POST", COMMENTS, faults.BAD_GATEWAY.after_the_work())

    through_pygithub(opened, retry=GithubRetry(total=1)).create_comment("x")

    assert [c.body for c in opened.comments(7)] == ["x", "x"]
