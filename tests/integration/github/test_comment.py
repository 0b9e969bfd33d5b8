"""The sticky comment: one, found again, never a stranger's, never an older run's."""

import dataclasses

import pytest

from ci_perf.github import report_comment
from ci_perf.github.client import GithubError
from ci_perf.github.report_comment import CommentOutcome, Draft
from ci_perf.model.comparison import Verdict
from tests import headlines
from tests.comparisons import a_change, a_comparison, a_head, a_numerics
from tests.fakes.github import faults
from tests.fakes.github.fixtures import on_github_and_ghes
from tests.integration.github.stage import PULL, a_client, fine, worse
from tests.runs import CPU, GPU

MARKER = report_comment.marker("standard")
COMMENTS = rf"/issues/{PULL}/comments$"


@pytest.fixture
def client(stage):
    """Asks the GitHub of this test, without waiting."""
    stage.github.add_pull(PULL)
    return a_client(stage.github)


def a_draft(text="### fine", *, run=1, attempt=1):
    return Draft(run=run, attempt=attempt, text=lambda _size: text)


def put(client, draft=None, **more):
    return report_comment.put(client, PULL, "smoke", draft or a_draft(), **more)


def overwrite(github, body):
    """Let another job write a comment."""
    (only,) = github.comments(PULL)
    a_client(github).change(f"/issues/comments/{only.id}", {"body": body}, what="another job")


# --- one comment


@on_github_and_ghes
def test_two_runs_write_one_comment(on_pull):
    on_pull.publish()
    ended = on_pull.on_pull(run=101).publish(of=[worse()])

    (body,) = on_pull.bodies()
    assert body.startswith(f"{MARKER}\n<!-- ci-perf:run=101 attempt=1 record=")
    assert "❌ 1 regressed" in body
    assert "comment updated: " in ended.err


@on_github_and_ghes
def test_a_comment_is_found_behind_many_and_never_a_forged_one(client, github):
    forged = github.forge_comments(PULL, report_comment.marker("smoke"), count=250)
    put(client)
    put(client, a_draft("### again", run=2))

    ours = [one for one in github.comments(PULL) if one.author == "github-actions[bot]"]
    assert len(ours) == 1
    assert "### again" in ours[0].body
    assert forged.body.endswith("forged")


@pytest.mark.parametrize(
    "body",
    [
        f"{report_comment.marker('smoke2')}\nother",
        f"> {report_comment.marker('smoke')}\nquoted",
        f"look:\n{report_comment.marker('smoke')}\nfurther down",
    ],
)
def test_a_comment_of_ours_that_is_another_one_stays(client, github, body):
    github.add_comment(PULL, body)
    put(client)

    assert github.comments(PULL)[0].body == body
    assert len(github.comments(PULL)) == 2


def test_a_key_cannot_end_the_marker():
    assert report_comment.marker("x --> <b>").count(">") == 1


def test_a_comment_that_is_hidden_is_left_alone(client, github):
    put(client)
    github.comments(PULL)[0].minimized = True
    put(client, a_draft(run=2))

    assert len(github.comments(PULL)) == 2


def test_the_same_body_is_not_sent_again_and_a_second_comment_of_ours_goes(on_pull):
    on_pull.publish()
    ended = on_pull.publish()
    (body,) = on_pull.bodies()
    on_pull.github.add_comment(PULL, body)
    on_pull.publish()

    assert "comment unchanged: " in ended.err
    assert on_pull.github.sent("PATCH", "comments") == []
    assert on_pull.bodies() == [body]


def test_without_news_no_comment_is_begun_and_an_old_regression_does_not_stay(on_pull):
    ended = on_pull.publish("--skip-if-unchanged")
    assert (on_pull.bodies(), "comment skipped" in ended.err) == ([], True)

    on_pull.publish("--skip-if-unchanged", of=[worse()])
    on_pull.on_pull(run=101).publish("--skip-if-unchanged")

    assert headlines.PASS in on_pull.bodies()[0]


def test_changed_numerics_are_news(on_pull):
    rows = (a_change(), a_numerics())
    on_pull.publish("--skip-if-unchanged", of=[a_comparison(*rows, verdict=Verdict.UNCHANGED)])

    assert f"### {headlines.WARNED}" in on_pull.bodies()[0]


# --- older and newer


@pytest.mark.parametrize(("run", "attempt"), [(99, 1), (99, 7), (100, 1)])
def test_an_older_run_never_overwrites_a_newer_one(on_pull, run, attempt):
    on_pull.on_pull(run=100, attempt=2).publish(of=[worse()])
    ended = on_pull.on_pull(run=run, attempt=attempt).publish()

    assert "❌ 1 regressed" in on_pull.bodies()[0]
    assert "comment outdated" in ended.err
    assert ended.code == 0


def test_another_attempt_of_the_same_run_is_newer_and_says_so(on_pull):
    on_pull.publish(of=[worse()])
    on_pull.on_pull(attempt=2).publish()

    assert headlines.PASS in on_pull.bodies()[0]
    assert ", attempt 2." in on_pull.bodies()[0]


@pytest.mark.parametrize("left", ["", "\n\n*(removed by a maintainer)*\n", "\r\n<!-- x -->"])
def test_a_comment_of_which_somebody_left_only_the_marker_is_written_anew(client, github, left):
    put(client, a_draft(run=7))
    overwrite(github, report_comment.marker("smoke") + left)
    put(client, a_draft("### again", run=1))

    assert "### again" in github.comments(PULL)[0].body


def test_a_record_follows_from_the_one_that_stands_there_also_after_githubs_editor(client, github):
    def draft(run):
        return dataclasses.replace(a_draft(run=run), record=lambda old: f"{old}{run}")

    put(client, draft(1))
    overwrite(github, github.comments(PULL)[0].body.replace("\n", "\r\n").rstrip())
    put(client, draft(2))

    assert " record=None12 -->" in github.comments(PULL)[0].body


# --- several machines


def test_one_job_reports_all_machines_in_one_comment_under_one_headline(on_pull):
    ended = on_pull.publish(of=[worse(machine=GPU), fine(machine=CPU)])

    (body,) = on_pull.bodies()
    assert ended.code == 1
    assert on_pull.summary.count("### ") == 2
    assert body.splitlines()[2] == "## ❌ Fail on 1 of 2 machines: `nvidia-h200`"
    assert body.index(headlines.PASS) < body.index("❌ 1 regressed"), "cpu before nvidia"
    assert len(on_pull.github.sent("POST", COMMENTS)) == 1


def test_two_suites_have_a_comment_each_and_so_has_a_key(on_pull):
    on_pull.publish(of=[fine(suite="smoke"), fine(suite="standard")])
    on_pull.publish("--key", "nightly")

    assert [body.splitlines()[0] for body in on_pull.bodies()] == [
        report_comment.marker(key) for key in ("smoke", "standard", "nightly")
    ]


def test_a_report_of_many_machines_is_one_that_github_takes(on_pull):
    row = a_change(verdict=Verdict.REGRESSED, ratio=1.1)
    of = [a_comparison(*[row] * 900, head=a_head(machine=machine)) for machine in (GPU, CPU)]
    ended = on_pull.publish(of=of)

    (body,) = on_pull.bodies()
    assert "::warning" not in ended.err
    assert len(body.encode()) <= report_comment.MAX_BYTES
    assert body.count(" rows shown: ") == 2


# --- when GitHub is unwell


@pytest.mark.parametrize("fault", ["BAD_GATEWAY", "RESET", "CUT_JSON"])
def test_an_answer_that_is_lost_makes_no_second_comment(client, github, fault):
    github.fail_next("POST", COMMENTS, getattr(faults, fault).after_the_work())
    posted = put(client)

    (only,) = github.comments(PULL)
    assert posted.outcome is CommentOutcome.CREATED
    assert posted.url.endswith(str(only.id))


@pytest.mark.parametrize(
    ("method", "path", "fault"),
    [
        ("POST", "graphql", "BAD_GATEWAY"),
        ("POST", COMMENTS, "RESET"),
        ("PATCH", "comments", "BAD_GATEWAY"),
    ],
)
def test_what_goes_wrong_once_is_made_good(client, github, fault, method, path):
    if method == "PATCH":
        put(client)
    github.fail_next(method, path, getattr(faults, fault))
    put(client, a_draft("### again", run=2))

    assert ["### again" in one.body for one in github.comments(PULL)] == [True]


def test_a_server_that_is_silent_is_given_up(stage):
    github = stage.github
    github.add_pull(PULL)
    github.fail_next("POST", "graphql", faults.STALLED, times=9)

    with pytest.raises(GithubError, match="expected an answer of GitHub"):
        put(a_client(github, timeout_s=1))


def test_a_list_that_never_ends_is_read_as_far_as_any_goes(client, github, monkeypatch):
    github.forge_comments(PULL, "", count=250)
    monkeypatch.setattr("ci_perf.github.client._MAX_PAGES", 2)

    assert len(client.pages(f"/issues/{PULL}/comments", dict, what="it")) == 200
