"""The fake GitHub is as strict and as nasty as GitHub: what it refuses, and what it leaves out."""

import pytest
import requests

from tests.fakes.github.fixtures import on_github_and_ghes
from tests.integration.github.asking import FORK_SHA, SHA, ask

COMMENTS = "/issues/7/comments"


@pytest.mark.parametrize(("body", "status"), [("x" * 65_536, 201), ("x" * 65_537, 422), (" ", 422)])
def test_a_comment_has_a_text_and_not_too_much_of_it(github, body, status):
    github.add_pull(7)

    assert ask(github, "POST", COMMENTS, json={"body": body}).status_code == status
    assert len(github.comments(7)) == (status == 201)


@on_github_and_ghes
def test_a_job_can_edit_and_delete_what_others_have_written(github):
    github.add_pull(7)
    forged = github.forge_comments(7, "marker")
    address = f"/issues/comments/{forged.id}"
    ask(github, "PATCH", address, json={"body": "overwritten"})
    last_page = ask(github, "GET", f"{COMMENTS}?per_page=100&page=3").json()
    ask(github, "DELETE", address)

    assert (len(last_page), last_page[-1]["body"]) == (50, "overwritten")
    assert last_page[-1]["user"]["login"] == "mallory"
    assert len(github.comments(7)) == 249


@on_github_and_ghes
def test_a_check_run_goes_from_progress_to_its_end_and_keeps_all_annotations(github):
    github.add_pull(7, head_sha=SHA)
    annotation = {"path": "w.py", "start_line": 1, "end_line": 1}
    annotation |= {"annotation_level": "warning", "message": "slower"}
    output = {"title": "t", "summary": "s", "annotations": [annotation] * 50}
    begun = {"name": "ci-perf", "head_sha": SHA, "status": "in_progress"}
    made = ask(github, "POST", "/check-runs", json=begun).json()
    end = {"status": "completed", "conclusion": "neutral", "output": output}
    for _ in range(2):
        ask(github, "PATCH", f"/check-runs/{made['id']}", json=end)
    (seen,) = ask(github, "GET", f"/commits/{SHA}/check-runs").json()["check_runs"]

    (found,) = github.checks(SHA)
    assert [status for status, _ in found.history] == ["in_progress", "completed", "completed"]
    assert (seen["conclusion"], seen["output"]["annotations_count"]) == ("neutral", 100)
    begun["head_sha"] = "d" * 40
    assert "No commit found" in ask(github, "POST", "/check-runs", json=begun).text


@on_github_and_ghes
def test_a_fork_is_not_named_by_its_runs_and_can_be_gone(github):
    github.add_pull(7)
    github.add_pull(8, head_sha=FORK_SHA, fork=True, head_branch="patch")
    github.add_run(5)
    github.add_run(6, head_sha=FORK_SHA, fork=True, head_branch="patch")
    (found,) = ask(github, "GET", "/pulls?head=mallory:patch").json()
    (run,) = ask(github, "GET", f"/actions/runs?head_sha={FORK_SHA}").json()["workflow_runs"]
    here = ask(github, "GET", "/actions/runs/5").json()

    assert (found["number"], found["head"]["repo"]["full_name"]) == (8, github.fork)
    assert (run["id"], run["pull_requests"]) == (6, [])
    assert [pull["number"] for pull in here["pull_requests"]] == [7]
    github.delete_fork()
    assert ask(github, "GET", "/pulls/8").json()["head"]["repo"] is None
    assert ask(github, "GET", "/actions/runs/6").json()["head_repository"] is None


@on_github_and_ghes
def test_files_are_read_at_any_commit(github):
    before = github.push("main", {"baselines/a.json": "1"})
    github.push("main", {"baselines/a.json": "2", "baselines/b.json": "3"})

    assert ask(github, "GET", f"/contents/baselines/a.json?ref={before}").json()["size"] == 1
    listed = ask(github, "GET", "/contents/baselines").json()
    assert [entry["name"] for entry in listed] == ["a.json", "b.json"]


@on_github_and_ghes
def test_an_archive_lies_on_another_host_that_refuses_a_token(github):
    github.add_run(5)
    github.add_artifact(5, "other", {"x": "y"})
    gone = github.add_artifact(5, "ci-perf", {"run.json": "{}"}, expired=True)
    wanted = github.add_artifact(5, "ci-perf", {"run.json": "{}"})
    listed = ask(github, "GET", "/actions/runs/5/artifacts?name=ci-perf").json()["artifacts"]
    there = ask(github, "GET", f"/actions/artifacts/{wanted.id}/zip").headers["Location"]
    refused = requests.get(there, headers={"Authorization": "Bearer x"}, timeout=30)

    assert [artifact["id"] for artifact in listed] == [wanted.id, gone.id]
    assert requests.get(there, timeout=30).content == wanted.archive
    assert (refused.status_code, there.startswith("http://127.0.0.2:")) == (400, True)
    assert [("Authorization" in r.headers) for r in github.blob_requests] == [True, False]
    assert ask(github, "GET", f"/actions/artifacts/{gone.id}/zip").status_code == 410


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


@on_github_and_ghes
def test_the_permission_of_a_person_is_asked_for(github):
    github.set_permission("alice", "maintain")
    found = {
        who: ask(github, "GET", f"/collaborators/{who}/permission").json()["permission"]
        for who in ("octo", "alice", "mallory")
    }

    assert found == {"octo": "admin", "alice": "write", "mallory": "read"}
