"""What the Action does with a token: for a fork that was measured, and for a comment that asks."""

import pytest

from tests.integration.actions.stage import BASELINE, PULL, REPORT
from tests.integration.github.second_stage import HEAD, RUN, artifact_of, committed, slower, steady
from tests.runs import STEADY, a_measured, a_run

BASE = "b" * 40
FORKS = ".github/workflows/label-gated.yml"
WRITES = {"contents": "write", "pull_requests": "write", "actions": "read"}


@pytest.fixture
def checkout(tmp_path):
    """The default branch on a hosted runner: nothing but its baselines matters."""
    folder = tmp_path / "hosted"
    folder.mkdir()
    committed(folder, steady())
    return folder


@pytest.fixture
def opened(stage, checkout):
    """Open a pull request, measured by a workflow; return its GitHub."""

    def make(*, fork=False, workflow=".github/workflows/perf.yml"):
        base = {
            str(path.relative_to(checkout)): path.read_bytes() for path in checkout.rglob("*.json")
        }
        stage.github.add_pull(PULL, head_sha=HEAD, base_sha=BASE, fork=fork, base_files=base)
        stage.github.add_run(RUN, head_sha=HEAD, fork=fork, path=workflow)
        stage.github.add_artifact(RUN, "ci-perf", artifact_of(slower()))
        return stage.github

    return make


def run_in(stage, checkout, name, payload, action=REPORT, **inputs):
    job = stage.job(payload, name=name, workspace=checkout, token=stage.github.token)
    return job, job.run_action(action, **inputs)


def test_a_fork_is_reported_by_numbers_that_are_judged_again(stage, checkout, opened):
    github = opened(fork=True, workflow=FORKS)
    event = github.event("workflow_run", "completed", run_id=RUN)

    job, done = run_in(
        stage, checkout, "workflow_run", event, run_id=str(RUN), workflow=FORKS,
        suite="smoke", options="--check",
    )  # fmt: skip

    assert done.step("report").code == 1, done.step("report").log
    (comment,) = github.comments(PULL)
    assert "❌ 1 regressed" in comment.body
    assert "Measured by code from a fork" in comment.body
    assert "❌ 1 regressed" in job.summaries[0]
    assert (done.outputs["exit-code"], done.outputs["outcome"]) == ("1", "failure")
    assert done.outputs["comment-url"].endswith(str(comment.id))
    assert [one.conclusion for one in github.checks(HEAD)] == ["failure"]


def test_a_comment_has_the_baselines_committed_that_were_measured(stage, checkout, opened):
    github = opened()
    github.permissions = WRITES
    github.set_permission("alice", "write")
    order = f'/ci-perf accept {HEAD[:12]} mlp "it does more"'
    comment = github.add_comment(PULL, order, author="alice")
    event = github.event("issue_comment", "created", comment_id=comment.id)

    _, done = run_in(stage, checkout, "issue_comment", event, BASELINE, mode="comment")

    assert done.conclusion == "success", done.step("comment").log
    assert github.head("feature") != HEAD
    assert "Accepted for `alice`" in github.comments(PULL)[1].body
    assert github.token not in done.step("comment").log


def test_a_nightly_session_is_added_to_the_history(stage, checkout):
    before = {path: path.read_text() for path in checkout.rglob("baselines/*/*/*.json")}
    tonight = a_run(a_measured("mlp", *STEADY), id="tonight")
    (checkout / "measured").mkdir()
    (checkout / "measured/run.json").write_text(artifact_of(tonight)["run.json"])
    event = stage.github.event("schedule")

    _, done = run_in(
        stage, checkout, "schedule", event, BASELINE, run="measured/run.json", append="true"
    )

    assert done.conclusion == "success", done.step("accept").log
    assert all(path.read_text() != text for path, text in before.items())
