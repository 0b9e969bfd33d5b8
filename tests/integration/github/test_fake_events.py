"""Payloads of events: made of what the fake knows, and held against GitHub's webhooks."""

import copy

import pytest

from tests.fakes.github import events
from tests.fakes.github.fake import FakeGitHub
from tests.fakes.github.schema import FLAVOURS

FORK_SHA = "c" * 40
EVENTS = [
    ("pull_request", "opened", {"number": 7}),
    ("pull_request", "opened", {"number": 8}),
    ("pull_request", "synchronize", {"number": 7}),
    ("pull_request", "closed", {"number": 9}),
    ("push", None, {"branch": "main"}),
    ("push", None, {"branch": "feature"}),
    ("workflow_run", "completed", {"run_id": 5}),
    ("workflow_run", "completed", {"run_id": 6}),
    ("merge_group", "checks_requested", {"number": 7}),
    ("workflow_dispatch", None, {"inputs": {"pr": "7"}}),
    ("workflow_dispatch", None, {}),
    ("issue_comment", "created", {"comment_id": 1}),
    ("schedule", None, {}),
]


def furnish(github):
    """Put there what the events above are about."""
    github.add_pull(7, files={"a.py": "x\n"})
    github.add_pull(8, head_sha=FORK_SHA, fork=True, head_branch="patch", draft=True)
    github.add_pull(9, head_sha="d" * 40, state="closed", head_branch="done")
    github.add_run(5)
    github.add_run(6, head_sha=FORK_SHA, fork=True, head_branch="patch")
    comment = github.add_comment(7, "/ci-perf accept aaaaaaa", author="alice")
    github.state.comments = {1: comment}


@pytest.fixture(params=FLAVOURS)
def furnished(request):
    with FakeGitHub(request.param) as github:
        furnish(github)
        yield github


@pytest.mark.parametrize(("name", "action", "details"), EVENTS)
def test_every_event_is_one_that_github_could_send(furnished, name, action, details):
    payload = furnished.event(name, action, **details)

    assert events.problems(name, payload, furnished.flavour) == []


@pytest.mark.parametrize(("name", "action", "details"), EVENTS[:-1])
def test_a_payload_that_lacks_its_matter_is_noticed(furnished, name, action, details):
    payload = copy.deepcopy(furnished.event(name, action, **details))
    matter = {"pull_request", "workflow_run", "merge_group", "head_commit", "comment", "ref"}

    del payload[next(key for key in payload if key in matter)]

    assert any("is a required property" in p for p in events.problems(name, payload))


def test_a_key_that_github_does_not_send_is_noticed(furnished):
    payload = furnished.event("pull_request", "opened", number=7)
    payload["pull_request"]["head"]["shaa"] = "x"

    (problem,) = events.problems("pull_request", payload, furnished.flavour)

    assert problem == "pull-request-opened/pull_request/head/shaa: not described"


def test_an_action_that_is_not_described_is_noticed(furnished):
    payload = furnished.event("pull_request", "dreamt_of", number=7)

    assert "no webhook that is described" in events.problems("pull_request", payload)[0]


def test_a_pull_request_from_a_fork_says_so(furnished):
    head = furnished.event("pull_request", "opened", number=8)["pull_request"]["head"]

    assert (head["repo"]["full_name"], head["sha"]) == (furnished.fork, FORK_SHA)


def test_a_run_of_a_fork_names_no_pull_request(furnished):
    run = furnished.event("workflow_run", "completed", run_id=6)["workflow_run"]

    assert (run["pull_requests"], run["head_repository"]["full_name"]) == ([], furnished.fork)


def test_the_one_who_comments_is_the_one_who_sends(furnished):
    payload = furnished.event("issue_comment", "created", comment_id=1)

    assert payload["sender"]["login"] == payload["comment"]["user"]["login"] == "alice"
