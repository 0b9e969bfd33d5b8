"""The fake GitHub, asked by PyGithub and by requests: it must be one that they take for real."""

import pytest
import requests
from github import GithubException

from tests.fakes.github.fixtures import on_github_and_ghes
from tests.integration.github.asking import FORK_SHA, MARKER, SHA, ask, graphql, repository

# --- comments


@on_github_and_ghes
def test_a_comment_is_written_edited_and_found_again(github):
    github.add_pull(7)
    issue = repository(github).get_issue(7)

    issue.create_comment("one").edit("two")

    (comment,) = issue.get_comments()
    assert (comment.body, comment.user.login) == ("two", "github-actions[bot]")
    assert github.comments(7)[0].bodies == ["one", "two"]


@on_github_and_ghes
def test_all_pages_of_comments_are_reached_by_their_links(github):
    github.add_pull(7)
    github.forge_comments(7, MARKER)

    comments = list(repository(github).get_issue(7).get_comments())

    assert len(comments) == 250
    assert [c.user.login for c in comments if c.body.startswith(MARKER)] == ["mallory"]
    assert len(github.sent("GET", r"/issues/7/comments$")) == 3


def test_a_job_can_edit_the_comments_of_others(github):
    github.add_pull(7)
    forged = github.forge_comments(7, MARKER, count=1)

    repository(github).get_issue(7).get_comment(forged.id).edit("overwritten")

    assert forged.body == "overwritten"


@pytest.mark.parametrize("body", ["x" * 65_537, " \n"])
def test_a_comment_that_is_too_long_or_empty_is_refused(github, body):
    github.add_pull(7)

    with pytest.raises(GithubException) as caught:
        repository(github).get_issue(7).create_comment(body)

    assert caught.value.status == 422
    assert github.comments(7) == []


def test_a_comment_of_the_longest_length_is_taken(github):
    github.add_pull(7)

    repository(github).get_issue(7).create_comment("x" * 65_536)

    assert len(github.comments(7)[0].body) == 65_536


def test_a_comment_is_deleted(github):
    github.add_pull(7)
    comment = github.add_comment(7, "old")

    repository(github).get_issue(7).get_comment(comment.id).delete()

    assert github.comments(7) == []


# --- checks


@on_github_and_ghes
def test_a_check_run_goes_from_progress_to_its_end(github):
    github.add_pull(7, head_sha=SHA)
    output = {"title": "ci-perf", "summary": "x" * 65_535}
    annotation = {"path": "w.py", "start_line": 1, "end_line": 1}
    annotation |= {"annotation_level": "warning", "message": "slower"}

    check = repository(github).create_check_run("ci-perf", SHA, status="in_progress", output=output)
    for _ in range(2):
        annotated = {**output, "annotations": [annotation] * 50}
        check.edit(status="completed", conclusion="neutral", output=annotated)

    (found,) = github.checks(SHA)
    assert found.history[0] == ("in_progress", None)
    assert (found.status, found.conclusion, len(found.annotations)) == ("completed", "neutral", 100)
    (seen,) = repository(github).get_commit(SHA).get_check_runs(check_name="ci-perf")
    assert seen.output.annotations_count == 100


def test_a_check_run_of_an_unknown_commit_is_refused(github):
    with pytest.raises(GithubException, match="No commit found"):
        repository(github).create_check_run("ci-perf", "d" * 40)


# --- pull requests, files and commits


@on_github_and_ghes
def test_a_pull_request_knows_its_ends_and_its_files(github):
    github.push("main", {"suite.toml": "a = 1\n"})
    base = github.head("main")
    github.add_pull(7, base_sha=base, files={"suite.toml": "a = 2\n", "new.py": "x\n"}, draft=True)

    pull = repository(github).get_pull(7)

    assert (pull.head.sha, pull.base.sha, pull.draft) == (SHA, base, True)
    files = {file.filename: file for file in pull.get_files()}
    assert {name: f.status for name, f in files.items()} == {
        "suite.toml": "modified",
        "new.py": "added",
    }
    assert files["suite.toml"].patch.splitlines()[1:] == ["-a = 1", "+a = 2"]


@on_github_and_ghes
def test_a_pull_request_from_a_fork_is_found_by_its_branch(github):
    github.add_pull(7)
    github.add_pull(8, head_sha=FORK_SHA, fork=True, head_branch="patch")
    there = repository(github)

    (pull,) = there.get_pulls(state="open", head="mallory:patch")

    assert (pull.number, pull.head.repo.full_name) == (8, github.fork)


@on_github_and_ghes
def test_a_pull_request_outlives_its_fork(github):
    github.add_pull(8, fork=True)
    github.add_run(5, fork=True)
    github.delete_fork()

    pull = ask(github, "GET", f"/repos/{github.repository}/pulls/8").json()
    run = ask(github, "GET", f"/repos/{github.repository}/actions/runs/5").json()

    assert (pull["head"]["repo"], run["head_repository"]) == (None, None)


@on_github_and_ghes
def test_files_are_read_at_any_commit(github):
    before = github.push("main", {"baselines/a.json": "1"})
    github.push("main", {"baselines/a.json": "2", "baselines/b.json": "3"})
    there = repository(github)

    assert there.get_contents("baselines/a.json", ref=before).decoded_content == b"1"
    assert there.get_contents("baselines/a.json").decoded_content == b"2"
    assert [entry.name for entry in there.get_contents("baselines")] == ["a.json", "b.json"]


# --- runs and artifacts


@on_github_and_ghes
def test_a_run_names_its_pull_requests_unless_it_is_of_a_fork(github):
    github.add_pull(7)
    github.add_pull(8, head_sha=FORK_SHA, fork=True, head_branch="patch")
    github.add_run(5)
    github.add_run(6, head_sha=FORK_SHA, fork=True, head_branch="patch")
    there = repository(github)

    assert [p.number for p in there.get_workflow_run(5).pull_requests] == [7]
    assert there.get_workflow_run(6).pull_requests == []
    assert there.get_workflow_run(6).head_repository.full_name == github.fork
    assert [r.id for r in there.get_workflow_runs(head_sha=FORK_SHA)] == [6]


@on_github_and_ghes
def test_an_archive_lies_on_another_host_that_wants_no_token(github):
    github.add_run(5)
    github.add_artifact(5, "other", {"x": "y"})
    wanted = github.add_artifact(5, "ci-perf", {"run.json": "{}"})

    (artifact, _) = repository(github).get_workflow_run(5).get_artifacts()
    path = artifact.archive_download_url.removeprefix(github.url)
    there = ask(github, "GET", path).headers["Location"]
    refused = requests.get(there, headers={"Authorization": "Bearer x"}, timeout=30)

    assert requests.get(there, timeout=30).content == wanted.archive
    assert refused.status_code == 400
    assert (artifact.name, there.startswith("http://127.0.0.2:")) == ("ci-perf", True)
    assert [("Authorization" in r.headers) for r in github.blob_requests] == [True, False]


def test_artifacts_of_a_run_are_found_by_name_the_newest_first(github):
    github.add_run(5)
    github.add_run(6)
    for run_id, name in [(5, "ci-perf"), (5, "other"), (6, "ci-perf"), (5, "ci-perf")]:
        github.add_artifact(run_id, name, {"run.json": "{}"})

    path = f"/repos/{github.repository}/actions/runs/5/artifacts?name=ci-perf"
    found = ask(github, "GET", path).json()

    ids = [artifact["id"] for artifact in found["artifacts"]]
    assert (found["total_count"], ids) == (2, sorted(ids, reverse=True))


def test_an_archive_that_has_expired_is_gone(github):
    github.add_run(5)
    artifact = github.add_artifact(5, "ci-perf", {"run.json": "{}"}, expired=True)

    path = f"/repos/{github.repository}/actions/artifacts/{artifact.id}/zip"

    assert ask(github, "GET", path).status_code == 410


# --- who may do what


def test_a_job_of_a_pull_request_from_a_fork_may_only_read(github):
    github.add_pull(7, fork=True)
    github.read_only()
    issue = repository(github).get_issue(7)

    with pytest.raises(GithubException, match="Resource not accessible by integration"):
        issue.create_comment("x")

    assert list(issue.get_comments()) == []


def test_an_unknown_token_is_refused(github):
    with pytest.raises(GithubException) as caught:
        repository(github, token="stolen").get_pull(7).complete()

    assert caught.value.status == 401


def test_a_private_repository_is_not_there_for_a_stranger(github):
    github.add_pull(7)
    github.make_private()
    path = f"/repos/{github.repository}/pulls/7"

    answers = [
        ask(github, "GET", path, token=github.add_token("mallory")),
        requests.get(github.url + path, timeout=30),
        ask(github, "GET", path),
    ]

    assert [answer.status_code for answer in answers] == [404, 404, 200]


def test_a_job_asks_by_graphql_who_it_is(github):
    assert graphql(github, "{ viewer { login } }")["data"] == {
        "viewer": {"login": "github-actions[bot]"}
    }


@on_github_and_ghes
def test_the_permission_of_a_person_is_asked_for(github):
    github.set_permission("alice", "maintain")
    there = repository(github)

    found = {who: there.get_collaborator_permission(who) for who in ("octo", "alice", "mallory")}

    assert found == {"octo": "admin", "alice": "write", "mallory": "read"}


def test_a_check_run_is_not_for_persons(github):
    github.add_pull(7, head_sha=SHA)
    token = github.add_token("octo")

    with pytest.raises(GithubException, match="GitHub App"):
        repository(github, token).create_check_run("ci-perf", SHA)


def test_the_token_of_a_job_is_all_that_the_environment_has_to_say(github):
    environment = github.environment()

    path = f"{environment['GITHUB_API_URL']}/repos/{environment['GITHUB_REPOSITORY']}"
    headers = {"Authorization": f"token {environment['GITHUB_TOKEN']}"}
    found = requests.get(path, headers=headers, timeout=30).json()

    assert str(found["id"]) == environment["GITHUB_REPOSITORY_ID"]
    assert found["full_name"] == github.repository
