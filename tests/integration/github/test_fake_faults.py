"""Each fault of the fake GitHub, as a client meets it."""

import json
import time

import pytest
import requests

from tests.fakes.github import faults
from tests.fakes.github.fixtures import on_github_and_ghes
from tests.integration.github.asking import ask

COMMENTS = r"/issues/7/comments$"


def comment(github, body="x", **options):
    return ask(github, "POST", "/issues/7/comments", json={"body": body}, **options)


@pytest.fixture
def opened(github):
    github.add_pull(7)
    return github


@on_github_and_ghes
def test_a_fault_strikes_as_often_as_it_is_told_before_or_after_the_work(opened):
    opened.fail_next("PATCH", COMMENTS, faults.BAD_GATEWAY)
    opened.fail_next("POST", r"/issues/8/", faults.BAD_GATEWAY)
    opened.fail_next("POST", COMMENTS, faults.BAD_GATEWAY, times=2)
    opened.fail_next("POST", COMMENTS, faults.BAD_GATEWAY.after_the_work())
    opened.fail_next("POST", COMMENTS, faults.meanwhile(lambda: opened.add_comment(7, "theirs")))

    assert [comment(opened, body).status_code for body in "abcd"] == [502, 502, 502, 201]
    assert [c.body for c in opened.comments(7)] == ["c", "theirs", "d"]
    assert [r.status for r in opened.sent("POST", COMMENTS)] == [502, 502, 502, 201]


@pytest.mark.parametrize(
    ("fault", "status", "headers"),
    [
        (faults.secondary_limit(), 403, {"retry-after": None}),
        (faults.secondary_limit(60), 403, {"retry-after": "60"}),
        (faults.too_many_requests(1), 429, {"retry-after": "1"}),
        (faults.rate_limited(), 403, {"x-ratelimit-remaining": "0"}),
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
    reset = int(comment(opened).headers["x-ratelimit-reset"])

    # A minute for the machine's own delays, of fifty that are told.
    assert 2940 < reset - time.time() <= 3000


def test_the_fault_says_what_a_long_comment_is_told(opened):
    opened.fail_next("POST", COMMENTS, faults.TOO_LONG)

    assert comment(opened).json() == comment(opened, "x" * 65_537).json()


def test_a_cut_answer_is_no_json(opened):
    opened.fail_next("POST", COMMENTS, faults.CUT_JSON)
    answer = comment(opened)

    assert answer.status_code == 201
    with pytest.raises(json.JSONDecodeError):
        answer.json()


@pytest.mark.parametrize(
    ("fault", "error", "done"),
    [
        (faults.STALLED, "timed out", 1),
        (faults.CUT_BODY, "IncompleteRead", 1),
        (faults.RESET, "reset", 0),
        (faults.RESET.after_the_work(), "reset", 1),
    ],
)
def test_an_answer_that_does_not_arrive_is_an_error(opened, fault, error, done):
    opened.fail_next("POST", COMMENTS, fault)
    patience_s = 0.3 if fault == faults.STALLED else 30

    with pytest.raises(requests.exceptions.RequestException, match=error):
        comment(opened, timeout=patience_s)
    assert len(opened.comments(7)) == done


@on_github_and_ghes
def test_a_redirect_leads_to_a_host_that_refuses_a_token(opened):
    opened.fail_next("POST", COMMENTS, faults.ELSEWHERE)
    there = comment(opened).headers["Location"]
    refused = requests.get(there, headers={"Authorization": "Bearer x"}, timeout=30)

    assert there.startswith("http://127.0.0.2:")
    assert refused.status_code == 400


def test_graphql_and_the_other_host_fail_as_well(github):
    github.fail_next("POST", "^/graphql$", faults.NOT_FOUND)
    github.add_run(5)
    artifact = github.add_artifact(5, "ci-perf", {"run.json": "{}"})
    github.fail_next("GET", "^/artifacts/", faults.CUT_JSON)
    there = ask(github, "GET", f"/actions/artifacts/{artifact.id}/zip").headers["Location"]

    assert requests.post(github.graphql_url, json={}, timeout=30).status_code == 404
    half = requests.get(there, timeout=30).content
    assert half == artifact.archive[: len(artifact.archive) // 2]
