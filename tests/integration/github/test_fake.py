"""The fake GitHub is as strict as GitHub, and notices what does not fit GitHub's description.

What the product's own requests meet, archives on another host and faults, is shown by its tests.
"""

import pytest
import requests

from tests.fakes.github import events
from tests.fakes.github.fake import FakeGitHub
from tests.fakes.github.fixtures import on_github_and_ghes, undisputed
from tests.integration.github.second_stage import HEAD

COMMENTS = "/issues/7/comments"


def ask(github, method, path, *, token=None, **options):
    """Ask about the repository; the client waits for as long as a busy machine may need."""
    headers = {"Authorization": f"Bearer {token or github.token}"}
    address = f"{github.url}/repos/{github.repository}{path}"
    return requests.request(method, address, **{"timeout": 30, "headers": headers, **options})


@pytest.fixture
def careless():
    """A GitHub whose violations are the matter of the test."""
    with FakeGitHub() as fake:
        fake.add_pull(7, head_sha=HEAD)
        yield fake


CHECK = {"name": "ci-perf", "head_sha": HEAD}
MANY = {"output": {"title": "t", "summary": "s", "annotations": [{}] * 51}}


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "wrong"),
    [
        ("POST", COMMENTS, {"body": 5}, 422, "body/body: 5 is not of type 'string'"),
        ("POST", COMMENTS, {}, 422, "'body' is a required property"),
        ("POST", COMMENTS, {"body": "x", "boddy": "x"}, 422, "body/boddy: not described"),
        ("POST", "/check-runs", CHECK | MANY, 422, "output/annotations"),
        ("GET", "/pulls?sate=open", None, 422, "unknown parameter 'sate'"),
        ("GET", "/pulls?sort=updated", None, 422, "query sort: the fake does not know it"),
        ("GET", "/pulls/7/comments", None, 404, "no operation that is known"),
    ],
)
def test_what_is_not_described_is_noticed_and_refused(careless, method, path, body, status, wrong):
    assert ask(careless, method, path, json=body).status_code == status
    assert any(wrong in violation for violation in careless.violations)
    assert careless.comments(7) == []


@on_github_and_ghes
def test_who_ignores_the_base_of_the_interface_is_noticed(github):
    """On GHES a path of github.com leads to a web page, and the other way round."""
    strangers = {"github.com": "/api/v3", "ghes-3.19": ""}
    address = f"{github.server_url}{strangers[github.flavour]}/repos/{github.repository}"

    assert requests.get(address, timeout=30).status_code == 404
    assert "no operation that is known" in github.violations.pop()


def test_the_fixture_fails_a_test_that_has_broken_the_description():
    with pytest.raises(AssertionError, match="no operation"), undisputed("github.com") as github:
        ask(github, "GET", "/nowhere")


def test_mistakes_of_a_document_of_an_event_and_of_the_fake_are_noticed(careless):
    document = {"query": "{ repositry }"}
    headers = {"Authorization": f"Bearer {careless.token}"}
    requests.post(careless.graphql_url, json=document, headers=headers, timeout=30)
    careless.add_comment(7, "x").created_at = "yesterday"
    ask(careless, "GET", COMMENTS)
    payload = careless.event("pull_request", "opened", number=7)
    payload["pull_request"]["head"]["shaa"] = payload["pull_request"]["head"].pop("sha")
    careless.state.pulls[7].head_sha = "gone"

    assert ask(careless, "GET", "/pulls/7/files").status_code == 500
    of_document, of_answer, crashed = careless.violations
    assert "repositry" in of_document
    assert "created_at: 'yesterday' is not a 'date-time'" in of_answer
    assert "the fake itself" in crashed
    assert any("shaa: not described" in one for one in events.problems("pull_request", payload))


def test_who_may_do_what(github):
    github.add_pull(7, fork=True)
    comment = {"json": {"body": "x"}}
    person, nobody = {"token": github.add_token("mallory")}, {"headers": {}}
    statuses = {"a person reads": ask(github, "GET", "/pulls/7", **person)}
    statuses["a person writes"] = ask(github, "POST", COMMENTS, **comment, **person)
    github.read_only()
    statuses["a job of a fork reads"] = ask(github, "GET", COMMENTS)
    statuses["a job of a fork writes"] = ask(github, "POST", COMMENTS, **comment)
    statuses["an unknown token"] = ask(github, "GET", "/pulls/7", token="stolen")
    github.make_private()
    statuses["a stranger"] = ask(github, "GET", "/pulls/7", **person)
    statuses["nobody"] = ask(github, "GET", "/pulls/7", **nobody)
    statuses["a job"] = ask(github, "GET", "/pulls/7")

    assert {who: answer.status_code for who, answer in statuses.items()} == {
        "a person reads": 200,
        "a person writes": 403,
        "a job of a fork reads": 200,
        "a job of a fork writes": 403,
        "an unknown token": 401,
        "a stranger": 404,
        "nobody": 404,
        "a job": 200,
    }
