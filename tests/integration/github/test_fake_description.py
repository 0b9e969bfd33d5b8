"""What does not fit GitHub's own description is noticed: ours, and the fake's."""

import pytest
import requests

from tests.fakes.github.fake import FakeGitHub
from tests.fakes.github.fixtures import on_github_and_ghes, undisputed
from tests.integration.github.asking import SHA, ask, graphql


@pytest.fixture
def careless():
    """A GitHub whose violations are the matter of the test."""
    with FakeGitHub() as fake:
        fake.add_pull(7, head_sha=SHA)
        yield fake


def only_violation(github):
    (violation,) = github.violations
    return violation


@pytest.mark.parametrize(
    ("body", "wrong"),
    [
        ({"body": 5}, "body/body: 5 is not of type 'string'"),
        ({}, "'body' is a required property"),
        ({"body": "x", "boddy": "x"}, "body/boddy: not described"),
    ],
)
def test_a_body_that_is_not_described_is_noticed_and_refused(careless, body, wrong):
    assert ask(careless, "POST", "/issues/7/comments", json=body).status_code == 422
    assert wrong in only_violation(careless)
    assert careless.comments(7) == []


@pytest.mark.parametrize(
    ("output", "wrong"),
    [
        ({"summary": "x" * 65_536}, "output/summary"),
        ({"annotations": [{}] * 51}, "output/annotations"),
        ({"anotations": []}, "output/anotations: not described"),
    ],
)
def test_limits_of_a_check_run_are_those_of_the_description(careless, output, wrong):
    whole = {"title": "t", "summary": "s", **output}
    body = {"name": "ci-perf", "head_sha": SHA, "output": whole}

    assert ask(careless, "POST", "/check-runs", json=body).status_code == 422
    assert any(wrong in violation for violation in careless.violations)


@pytest.mark.parametrize(
    ("path", "wrong"),
    [
        ("/pulls?sate=open", "unknown parameter 'sate'"),
        ("/pulls?state=opened", "query state"),
        ("/pulls?sort=updated", "query sort: the fake does not know it"),
        ("/pulls/7/comments", "no operation that is known"),
    ],
)
def test_a_path_that_is_not_described_is_noticed(careless, path, wrong):
    ask(careless, "GET", path)

    assert wrong in only_violation(careless)


@on_github_and_ghes
def test_who_ignores_the_base_of_the_interface_is_noticed(github):
    """On GHES a path of github.com leads to a web page, and the other way round."""
    strangers = {"github.com": "/api/v3", "ghes-3.19": ""}
    address = f"{github.server_url}{strangers[github.flavour]}/repos/{github.repository}"

    answer = requests.get(address, timeout=30)

    assert answer.status_code == 404
    assert "no operation that is known" in only_violation(github)
    github.violations.clear()


def test_the_fixture_fails_a_test_that_has_broken_the_description():
    with pytest.raises(AssertionError, match="no operation"), undisputed("github.com") as github:
        ask(github, "GET", "/nowhere")


def test_a_document_that_the_schema_does_not_know_is_noticed(careless):
    answer = graphql(careless, "{ repositry }")

    assert "data" not in answer
    assert "repositry" in only_violation(careless)


def test_a_mistake_of_the_fake_is_noticed(careless):
    careless.add_comment(7, "x").created_at = "yesterday"
    careless.state.pulls[7].head_sha = "gone"
    ask(careless, "GET", "/issues/7/comments")

    assert ask(careless, "GET", "/pulls/7/files").status_code == 500
    described, crashed = careless.violations
    assert "created_at: 'yesterday' is not a 'date-time'" in described
    assert "the fake itself" in crashed
