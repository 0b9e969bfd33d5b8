"""What cannot be seen in the payloads of tests/integration/github/test_events.py."""

import json

import pytest

from ci_perf.errors import InvalidFileError
from ci_perf.github import actions

SHA = "a" * 40


def read(name, payload, **environment):
    return actions.read_event(
        {
            "GITHUB_ACTIONS": "true",
            "GITHUB_EVENT_NAME": name,
            "GITHUB_REPOSITORY": "octo/model",
            "GITHUB_RUN_ID": "12",
            "GITHUB_SHA": SHA,
            **environment,
        },
        payload if isinstance(payload, str) else json.dumps(payload),
    )


def a_pull_request(head="octo/model", **more):
    repository = {"id": 1, "full_name": head} if head else None
    base = {"sha": "b" * 40, "repo": {"id": 1, "full_name": "octo/model"}}
    found = {"number": 7, "head": {"sha": SHA, "repo": repository}, "base": base, **more}
    return {"pull_request": found}


def a_workflow_run(**more):
    repository = {"id": 1, "full_name": "octo/model", "owner": {"login": "octo"}}
    run = {"id": 99, "event": "pull_request", "head_sha": SHA, "head_branch": "feature"}
    return {"workflow_run": {**run, "repository": repository, "head_repository": None, **more}}


def test_a_fork_that_was_deleted_meanwhile_is_a_fork():
    found = read("pull_request", a_pull_request(head=None))

    assert found.is_fork
    assert found.is_read_only


def test_letters_of_another_case_make_no_fork():
    assert not read("pull_request", a_pull_request(head="Octo/Model")).is_fork


def test_dependabot_may_only_read():
    assert read("pull_request", a_pull_request(), GITHUB_ACTOR="dependabot[bot]").is_read_only


def test_a_run_of_a_fork_that_was_deleted_leads_to_no_pull_request():
    found = read("workflow_run", a_workflow_run())

    assert found.measured is None
    assert found.is_fork


def test_a_run_of_another_repository_is_refused():
    stranger = {"id": 2, "full_name": "mallory/model"}

    with pytest.raises(InvalidFileError, match="mallory/model"):
        read("workflow_run", a_workflow_run(repository=stranger))


def test_the_run_that_measured_is_the_one_that_counts():
    found = read("workflow_run", a_workflow_run(run_attempt=2), GITHUB_RUN_ATTEMPT="5")

    assert (found.run.number, found.run.attempt) == (99, 2)
    assert found.run.url == "https://github.com/octo/model/actions/runs/99"


def test_a_server_that_is_no_address_is_not_shown():
    found = read("schedule", {}, GITHUB_SERVER_URL="https://x) [evil](https://y")

    assert found.run.url == ""


@pytest.mark.parametrize("ref", ["refs/heads/pull-request/0", "refs/heads/pull-request/1/x", "x"])
def test_a_branch_that_only_looks_like_a_copied_pull_request_is_a_branch(ref):
    repository = {"full_name": "octo/model", "default_branch": "main"}

    assert read("push", {"ref": ref, "repository": repository}).pull == 0


@pytest.mark.parametrize(
    "payload", ["", "{", "[]", '{"pull_request": 3}', "[" * 100_000, a_pull_request(number="7")]
)
def test_a_payload_that_is_none_is_refused_with_its_place(payload):
    with pytest.raises(InvalidFileError, match="GITHUB_EVENT_PATH: expected the payload"):
        read("pull_request", payload)


@pytest.mark.parametrize(
    ("name", "value"), [("GITHUB_REPOSITORY", "octo"), ("GITHUB_SHA", "$(id)")]
)
def test_an_environment_that_is_none_is_refused(name, value):
    with pytest.raises(InvalidFileError, match="expected"):
        read("schedule", {}, **{name: value})


@pytest.mark.parametrize("name", ["pull_request_target", "issue_comment", "made_up", ""])
def test_any_other_event_is_only_summarised(name):
    found = read(name, a_pull_request())

    assert not found.pull
    assert not found.sha
