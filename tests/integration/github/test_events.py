"""What is posted for which event: a row of the table in docs/github.md each.

Every payload is held against GitHub's description of its webhook before a job begins with it.
"""

import re
from pathlib import Path

import pytest

from tests import headlines
from tests.fakes.github.fixtures import on_github_and_ghes
from tests.integration.github.stage import PULL, fine, worse

HEAD, MERGED = "a" * 40, "c" * 40
FROM_A_FORK = "Measured by code from a fork"


def posted(stage, sha=HEAD):
    """What there is on the pull request and on a commit: comments and checks."""
    return (len(stage.bodies()), len(stage.github.checks(sha)))


@on_github_and_ghes
@pytest.mark.parametrize("draft", [False, True])
def test_a_pull_request_is_commented_and_its_head_checked(stage, draft):
    stage.github.add_pull(PULL, head_sha=HEAD, draft=draft)
    ended = stage.on_pull("opened", sha=MERGED).publish("--check")

    assert ended.code == 0
    assert not re.search("::warning|no comment", ended.err)
    assert posted(stage) == (1, 1)
    assert stage.github.checks(MERGED) == []
    assert stage.summary.startswith(f"### {headlines.PASS}")


def test_a_pull_request_from_a_fork_is_only_summarised_and_nothing_is_tried(stage):
    stage.github.add_pull(PULL, head_sha=HEAD, fork=True)
    stage.github.read_only()
    ended = stage.on_pull("opened").publish("--check", of=[worse()])

    assert ended.code == 1
    assert "may only read" in ended.err
    assert "::warning" not in ended.err
    assert stage.github.requests == []
    assert FROM_A_FORK in stage.summary


def test_a_pull_request_of_dependabot_is_only_summarised(stage):
    stage.github.add_pull(PULL, head_sha=HEAD)
    stage.github.read_only()
    ended = stage.on_pull("opened", actor="dependabot[bot]").publish()

    assert "may only read" in ended.err
    assert stage.github.requests == []
    assert FROM_A_FORK not in stage.summary


def test_a_pull_request_that_is_closed_gets_no_comment(stage):
    stage.github.add_pull(PULL, head_sha=HEAD, state="closed")
    ended = stage.on_pull("closed").publish("--check")

    assert ended.code == 0
    assert posted(stage) == (0, 1)


@on_github_and_ghes
@pytest.mark.parametrize("fork", [False, True])
def test_the_run_of_a_pull_request_leads_to_it(stage, fork):
    stage.github.add_pull(PULL, head_sha=HEAD, fork=fork)
    stage.github.add_run(42, head_sha=HEAD, fork=fork)
    ended = stage.happens("workflow_run", "completed", run_id=42, run=100).publish("--check")

    assert ended.code == 0
    assert posted(stage) == (1, 1)
    (made,) = stage.github.checks(HEAD)
    for text in (stage.bodies()[0], stage.summary, made.output["summary"]):
        assert (FROM_A_FORK in text) == fork
        assert "/actions/runs/42)" in text
    assert posted(stage, MERGED)[1] == 0


def test_a_run_whose_pull_request_has_moved_on_posts_no_comment(stage):
    stage.github.add_pull(PULL, head_sha=HEAD)
    stage.github.add_run(42, head_sha=HEAD)
    stage.happens("workflow_run", "completed", run_id=42)
    stage.github.push("feature", {"a": "newer"})
    ended = stage.publish()

    assert posted(stage)[0] == 0
    assert "a newer commit will be reported" in ended.err


def test_a_run_of_a_fork_does_not_reach_the_branch_of_the_same_name_here(stage):
    stage.github.add_pull(PULL, head_sha=HEAD)
    stage.github.add_run(42, head_sha=HEAD, fork=True)
    stage.happens("workflow_run", "completed", run_id=42).publish()

    assert posted(stage)[0] == 0


def test_the_run_of_a_push_leads_to_no_pull_request(stage):
    stage.github.add_pull(PULL, head_sha=HEAD)
    stage.github.add_run(42, head_sha=HEAD, event="push")
    stage.happens("workflow_run", "completed", run_id=42).publish("--check")

    assert posted(stage) == (0, 1)


@pytest.mark.parametrize("branch", ["main", "topic"])
def test_a_push_is_summarised_and_its_commit_checked_when_asked_for(stage, branch):
    stage.github.add_pull(PULL, head_sha=HEAD)
    sha = stage.github.push(branch, {"a": "1"})
    ended = stage.happens("push", branch=branch, sha=sha).publish("--check")

    assert ended.err.count("no comment: ") == 1
    assert posted(stage, sha) == (0, 1)
    assert stage.summary


def test_a_push_is_only_summarised_unless_more_is_asked_for(stage):
    sha = stage.github.push("main", {"a": "1"})
    stage.happens("push", branch="main", sha=sha).publish()

    assert stage.github.requests == []
    assert stage.summary


@pytest.mark.parametrize("fork", [False, True])
def test_a_copied_pull_request_is_commented_if_its_head_is_what_was_measured(stage, fork):
    sha = stage.github.push(f"pull-request/{PULL}", {"a": "1"})
    stage.github.add_pull(PULL, head_sha=sha, fork=fork)
    stage.happens("push", branch=f"pull-request/{PULL}", sha=sha).publish("--check")

    assert posted(stage, sha) == (1, 1)
    assert (FROM_A_FORK in stage.bodies()[0]) == fork


def test_a_copied_pull_request_that_has_moved_on_gets_no_comment(stage):
    sha = stage.github.push(f"pull-request/{PULL}", {"a": "1"})
    stage.github.add_pull(PULL, head_sha=HEAD)
    ended = stage.happens("push", branch=f"pull-request/{PULL}", sha=sha).publish()

    assert posted(stage)[0] == 0
    assert ended.code == 0


def test_a_merge_group_is_summarised_and_its_head_checked_when_asked_for(stage):
    stage.github.add_pull(PULL, head_sha=HEAD)
    stage.happens("merge_group", "checks_requested", number=PULL).publish("--check")

    assert posted(stage) == (0, 1)


@pytest.mark.parametrize("name", ["workflow_dispatch", "schedule"])
def test_without_a_pull_request_there_is_a_summary(stage, name):
    sha = stage.github.push("main", {"a": "1"})
    stage.happens(name, sha=sha).publish("--check")

    assert posted(stage, sha) == (0, 1)
    assert stage.summary


def test_any_other_event_is_only_summarised(stage):
    stage.github.add_pull(PULL, head_sha=HEAD)
    told = stage.github.add_comment(PULL, "hello", author="octocat")
    stage.happens("issue_comment", "created", comment_id=told.id).publish("--check")

    assert len(stage.bodies()) == 1
    assert stage.github.requests == []
    assert stage.summary


def test_every_event_of_the_table_is_tested_here():
    table = Path(__file__).parents[3].joinpath("docs/github.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (.*?) \|", table.split("## What goes where")[1], re.MULTILINE)
    named = {name for row in rows for name in re.findall(r"`([a-z_]+)`", row)}
    source = Path(__file__).read_text(encoding="utf-8")

    happening = set(re.findall(r'"(\w+)"', source)) | {"pull_request"}
    assert named - {"pull_request_target"} <= happening


def test_what_is_asked_not_to_be_posted_is_not(stage):
    stage.github.add_pull(PULL, head_sha=HEAD)
    stage.on_pull().publish("--no-comment", of=[fine()])

    assert stage.github.requests == []
