"""Payloads of events: made of what the fake knows, and held against GitHub's webhooks."""

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


def test_what_github_does_not_send_is_noticed(furnished):
    payload = furnished.event("pull_request", "opened", number=7)
    payload["pull_request"]["head"]["shaa"] = payload["pull_request"]["head"].pop("sha")
    undescribed = furnished.event("pull_request", "dreamt_of", number=7)

    missing, strange = events.problems("pull_request", payload, furnished.flavour)
    assert "'sha' is a required property" in missing
    assert strange == "pull-request-opened/pull_request/head/shaa: not described"
    assert "no webhook that is described" in events.problems("pull_request", undescribed)[0]


def test_a_payload_says_who_has_done_what(furnished):
    head = furnished.event("pull_request", "opened", number=8)["pull_request"]["head"]
    run = furnished.event("workflow_run", "completed", run_id=6)["workflow_run"]
    written = furnished.event("issue_comment", "created", comment_id=1)

    assert (head["repo"]["full_name"], head["sha"]) == (furnished.fork, FORK_SHA)
    assert (run["pull_requests"], run["head_repository"]["full_name"]) == ([], furnished.fork)
    assert written["sender"]["login"] == written["comment"]["user"]["login"] == "alice"
