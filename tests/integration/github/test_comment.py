"""The sticky comment: one, found again, never a stranger's, never an older run's."""

import pytest

from ci_perf.github import report_comment, sections
from ci_perf.github.access import Access, Client
from ci_perf.github.failures import GithubError, RetryPolicy
from ci_perf.github.report_comment import CommentOutcome
from ci_perf.github.sections import Draft
from ci_perf.model.comparison import Verdict
from tests.comparisons import a_change, a_comparison, a_head
from tests.fakes.github import faults
from tests.fakes.github.fixtures import on_github_and_ghes
from tests.integration.github.stage import PULL, fine, worse
from tests.runs import CPU, GPU

MARKER = sections.marker("standard")
COMMENTS = rf"/issues/{PULL}/comments$"


@pytest.fixture
def on_pull(stage):
    """A job of an open pull request."""
    stage.github.add_pull(PULL)
    return stage.on_pull()


@pytest.fixture
def client(github):
    """Asks the GitHub of this test, without waiting."""
    github.add_pull(PULL)
    return a_client(github)


def a_client(github, **more):
    access = Access(repository=github.repository, token=github.token, api_url=github.url)
    return Client(
        access, retries=RetryPolicy(sleep=lambda _seconds: None, between_writes_s=0), **more
    )


def a_draft(name="h200", *, run=1, attempt=1, brief="### fine", rest="all"):
    return Draft(name=name, run=run, attempt=attempt, brief=brief, rest=lambda _size: rest)


def put(client, *drafts, settle=lambda: None, **more):
    return report_comment.put(client, PULL, "smoke", drafts or [a_draft()], settle=settle, **more)


def names(github):
    """The machines of each comment."""
    return [
        [one.name for one in sections.parse(each.body, "smoke")] for each in github.comments(PULL)
    ]


def overwrite(github, body):
    """Write what another job has made of what it saw."""
    (only,) = github.comments(PULL)
    client = a_client(github)
    client.change(f"/issues/comments/{only.id}", {"body": body}, what="another job")


# --- one comment


@on_github_and_ghes
def test_two_runs_write_one_comment(on_pull):
    on_pull.publish()
    ended = on_pull.on_pull(run=101).publish(of=[worse()])

    (body,) = on_pull.bodies()
    assert body.startswith(f"{MARKER}\n")
    assert "1 regression" in body
    assert "comment updated: " in ended.err


@on_github_and_ghes
def test_a_comment_is_found_behind_many_and_never_a_forged_one(client, github):
    forged = github.forge_comments(PULL, sections.marker("smoke"), count=250)
    put(client)
    put(client, a_draft(run=2, brief="### again"))

    ours = [one for one in github.comments(PULL) if one.author == "github-actions[bot]"]
    assert len(ours) == 1
    assert "### again" in ours[0].body
    assert forged.body.endswith("forged")


def test_a_comment_of_ours_with_another_key_stays(client, github):
    github.add_comment(PULL, f"{sections.marker('other')}\nother")
    put(client)

    assert github.comments(PULL)[0].body.endswith("other")
    assert len(github.comments(PULL)) == 2


def test_a_comment_that_is_hidden_is_left_alone(client, github):
    put(client)
    github.comments(PULL)[0].minimized = True
    put(client, a_draft(run=2))

    assert len(github.comments(PULL)) == 2


def test_the_same_body_is_not_sent_again(on_pull):
    on_pull.publish()
    ended = on_pull.publish()

    assert "comment unchanged: " in ended.err
    assert on_pull.github.sent("PATCH", "comments") == []


def test_a_comment_without_news_is_not_begun_when_that_is_asked(on_pull):
    ended = on_pull.publish("--skip-if-unchanged")

    assert on_pull.bodies() == []
    assert "comment skipped" in ended.err


def test_an_old_regression_does_not_stay_when_there_is_no_news_any_more(on_pull):
    on_pull.publish("--skip-if-unchanged", of=[worse()])
    on_pull.on_pull(run=101).publish("--skip-if-unchanged")

    (body,) = on_pull.bodies()
    assert "no regression" in body


# --- older and newer


@pytest.mark.parametrize(("run", "attempt"), [(99, 1), (99, 7), (100, 1)])
def test_an_older_run_never_overwrites_a_newer_one(on_pull, run, attempt):
    on_pull.on_pull(run=100, attempt=2).publish(of=[worse()])
    ended = on_pull.on_pull(run=run, attempt=attempt).publish()

    assert "1 regression" in on_pull.bodies()[0]
    assert "comment outdated" in ended.err
    assert ended.code == 0


def test_another_attempt_of_the_same_run_is_newer_and_says_so(on_pull):
    on_pull.publish(of=[worse()])
    on_pull.on_pull(attempt=2).publish()

    assert "no regression" in on_pull.bodies()[0]
    assert ", attempt 2." in on_pull.bodies()[0]


def test_a_machine_that_is_outdated_keeps_no_other_one_from_being_shown(client, github):
    put(client, a_draft("a100", run=5, brief="### newer"))
    posted = put(client, a_draft("a100", run=4, brief="### older"), a_draft("l4", run=4))

    assert posted.outcome is CommentOutcome.UPDATED
    assert names(github) == [["a100", "l4"]]
    assert "### newer" in github.comments(PULL)[0].body


# --- several machines


def test_a_matrix_of_machines_has_one_comment_with_a_section_each(on_pull):
    on_pull.publish(of=[worse(machine=GPU)])
    on_pull.publish(of=[fine(machine=CPU)])

    (body,) = on_pull.bodies()
    assert body.index("no regression") < body.index("1 regression"), "cpu before nvidia"


def test_one_job_reports_all_machines_at_once(on_pull):
    ended = on_pull.publish(of=[worse(machine=GPU), fine(machine=CPU)])

    assert len(on_pull.bodies()) == 1
    assert ended.code == 1
    assert on_pull.bodies()[0].count("<details>") > 4
    assert len(on_pull.github.sent("POST", COMMENTS)) == 1


def test_a_second_comment_of_ours_goes_also_where_the_report_is_the_same(on_pull):
    on_pull.publish()
    (body,) = on_pull.bodies()
    on_pull.github.add_comment(PULL, body)

    on_pull.publish()

    assert on_pull.bodies() == [body]


def test_two_suites_have_a_comment_each(on_pull):
    on_pull.publish(of=[fine(suite="smoke"), fine(suite="standard")])

    assert len(on_pull.bodies()) == 2


def test_a_key_makes_a_comment_of_its_own(on_pull):
    on_pull.publish()
    on_pull.publish("--key", "nightly")

    assert [body.splitlines()[0] for body in on_pull.bodies()] == [
        MARKER,
        sections.marker("nightly"),
    ]


# --- jobs that race


def test_two_jobs_that_both_see_no_comment_end_with_one(client, github):
    def other():
        put(a_client(github), a_draft("a100"))

    github.fail_next("POST", COMMENTS, faults.meanwhile(other))
    put(client, a_draft("l4"))

    assert names(github) == [["a100", "l4"]]


def test_a_section_that_another_job_overwrote_is_written_again(client, github):
    put(client, a_draft("a100"))
    before = github.comments(PULL)[0].body
    overwritten = []

    def settle():
        # The other job has read before we wrote, and writes now.
        if not overwritten:
            seen = sections.parse(before, "smoke")
            overwritten.append(sections.compose("smoke", seen, [a_draft("t4")]))
            overwrite(github, overwritten[0])

    put(client, a_draft("l4"), settle=settle)

    assert overwritten
    assert names(github) == [["a100", "l4", "t4"]]


def test_many_jobs_at_once_end_with_all_their_machines(client, github):
    machines = [f"m{number}" for number in range(6)]

    def put_all(left):
        """Each job is overtaken by the next one between its reading and its writing."""
        if left:
            github.fail_next("POST", COMMENTS, faults.meanwhile(lambda: put_all(left[1:])))
            put(client, a_draft(left[0]))

    put_all(machines)

    assert names(github) == [machines]


def test_a_newer_run_that_is_quicker_wins(client, github):
    put(client, a_draft(run=1))

    def settle():
        put(a_client(github), a_draft(run=9, brief="### newest"))

    posted = put(client, a_draft(run=2, brief="### mine"), settle=settle)

    assert "### newest" in github.comments(PULL)[0].body
    assert posted.outcome is CommentOutcome.OUTDATED


def test_jobs_that_never_leave_each_other_alone_end_with_a_hint(client, github):
    put(client, a_draft("a100"))
    before = github.comments(PULL)[0].body

    def settle():
        overwrite(github, before)

    with pytest.raises(GithubError, match="let one job report the whole matrix"):
        put(client, a_draft("l4"), settle=settle)


# --- when GitHub is unwell


def test_an_answer_that_is_lost_makes_no_second_comment(client, github):
    github.fail_next("POST", COMMENTS, faults.BAD_GATEWAY.after_the_work())
    posted = put(client)

    assert len(github.comments(PULL)) == 1
    assert posted.outcome is CommentOutcome.CREATED


@pytest.mark.parametrize("fault", ["BAD_GATEWAY", "RESET", "CUT_JSON", "CUT_BODY"])
@pytest.mark.parametrize(("method", "path"), [("POST", "graphql"), ("POST", COMMENTS)])
def test_what_goes_wrong_once_is_made_good(client, github, fault, method, path):
    github.fail_next(method, path, getattr(faults, fault))
    put(client)

    assert len(github.comments(PULL)) == 1


@pytest.mark.parametrize("fault", ["BAD_GATEWAY", "RESET", "CUT_JSON", "CUT_BODY"])
def test_a_change_that_goes_wrong_once_is_made_again(client, github, fault):
    put(client)
    github.fail_next("PATCH", "comments", getattr(faults, fault))
    put(client, a_draft(run=2, brief="### again"))

    assert "### again" in github.comments(PULL)[0].body


@pytest.mark.parametrize(
    "fault", [faults.NOT_FOUND, faults.BAD_GATEWAY], ids=["no GraphQL", "GraphQL is down"]
)
def test_without_graphql_the_comment_of_a_bot_is_ours(client, github, fault):
    github.forge_comments(PULL, sections.marker("smoke"), count=101)
    github.fail_next("POST", "graphql", fault, times=99)
    put(client)
    put(client, a_draft(run=2, brief="### again"))

    ours = [one for one in github.comments(PULL) if one.author == "github-actions[bot]"]
    assert len(ours) == 1
    assert "### again" in ours[0].body


def test_a_server_that_is_silent_is_given_up(github):
    github.add_pull(PULL)
    github.fail_next("POST", "graphql", faults.STALLED, times=9)
    github.fail_next("GET", "comments", faults.STALLED, times=9)
    client = Client(
        Access(repository=github.repository, token=github.token, api_url=github.url),
        retries=RetryPolicy(attempts=1),
        timeout_s=1,
    )

    with pytest.raises(GithubError, match="expected an answer of GitHub"):
        put(client)


def test_where_github_wants_less_than_the_usual_less_is_sent(client, github):
    github.fail_next("POST", COMMENTS, faults.TOO_LONG)
    put(client, Draft(name="m", run=1, attempt=1, brief="b", rest=lambda size: "x" * size))

    (only,) = github.comments(PULL)
    assert 29_000 < len(only.body.encode()) <= 30_000


@on_github_and_ghes
def test_a_report_of_many_machines_is_one_that_github_takes(on_pull):
    for machine in (GPU, CPU):
        row = a_change(verdict=Verdict.REGRESSED, ratio=1.1)
        many = a_comparison(*[row] * 900, head=a_head(machine=machine))
        ended = on_pull.publish(of=[many])
        assert "::warning" not in ended.err

    (body,) = on_pull.bodies()
    assert len(body.encode()) <= sections.MAX_BYTES
    assert " rows shown: " in body
