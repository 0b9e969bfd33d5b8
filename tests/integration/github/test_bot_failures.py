"""When the bot has nothing to do, or GitHub is unwell: nothing is done twice, or by halves."""

import pytest

from ci_perf.errors import ExitCode
from tests.fakes.github import faults
from tests.integration.github.second_stage import ACCEPT, HEAD, answer, slower

# --- left alone


@pytest.mark.parametrize(
    "body",
    ["LGTM", "> /ci-perf accept a", "", "/ci-performance", "/CI-PERF accept", "Please:\n/ci-perf"],
)
def test_a_comment_that_does_not_speak_to_us_is_left_alone(second, body):
    second.measured(slower())
    _, ended = second.bot(body or "-")

    assert ended.code == ExitCode.OK
    assert "nothing to do" in ended.err
    assert second.github.requests == []


def test_what_a_bot_writes_is_left_alone(second):
    """Ours among them: no answer is ever an order."""
    second.measured(slower())
    second.bot(ACCEPT, login="github-actions[bot]", level="admin")

    assert second.github.requests == []


def test_another_event_is_left_alone(second):
    second.measured(slower())
    second.stage.on_pull()

    assert "nothing to do" in second.types("github", "answer-comment").err


def test_a_folder_that_no_commit_could_hold_is_refused(second):
    second.measured(slower())
    for folder in ("../elsewhere", "/etc", "."):
        second.writes(ACCEPT)
        ended = second.types("github", "answer-comment", "--baselines", folder)

        assert ended.code == ExitCode.USAGE
    assert second.github.requests == []


# --- when GitHub is unwell


@pytest.mark.parametrize("fault", ["BAD_GATEWAY", "RESET", "CUT_JSON"])
def test_an_answer_that_is_lost_fails_the_job_and_makes_no_second_commit(second, fault):
    second.measured(slower())
    second.github.fail_next("POST", "graphql", getattr(faults, fault).after_the_work())
    comment, ended = second.bot(ACCEPT)
    made = second.github.head("feature")
    second.stage.happens("issue_comment", "created", run=902, comment_id=comment.id)
    second.types("github", "answer-comment")

    assert ended.code == ExitCode.NO_ANSWER
    assert second.github.commit("feature").parents == (HEAD,)
    assert f"found {made[:12]}" in answer(second)
    assert second.github.head("feature") == made


@pytest.mark.parametrize("fault", ["BAD_GATEWAY", "RESET"])
def test_a_reply_that_is_lost_is_not_given_twice(second, fault):
    second.measured(slower())
    lost = getattr(faults, fault).after_the_work()
    second.github.fail_next("POST", "/issues/7/comments$", lost)
    second.bot(ACCEPT)

    assert "Accepted for" in answer(second)


def test_a_token_that_may_not_write_commits_nothing_and_is_not_shown(second):
    second.measured(slower())
    second.writes(ACCEPT)
    ended = second.types("github", "answer-comment")

    assert "commit on feature: GitHub refused" in answer(second)
    assert second.github.head("feature") == HEAD
    assert second.github.token not in ended.out + ended.err


@pytest.mark.parametrize("path", ["/permission$", "/pulls/7$", "/contents/", "/zip$", "/comments/"])
@pytest.mark.parametrize("fault", ["BAD_GATEWAY", "NOT_ACCESSIBLE"])
def test_a_failure_anywhere_commits_nothing(second, path, fault):
    second.measured(slower())
    second.github.fail_next("GET", path, getattr(faults, fault), times=99)
    _, ended = second.bot(ACCEPT)

    assert ended.code == ExitCode.NO_ANSWER
    assert second.github.head("feature") == HEAD
    assert second.github.token not in ended.out + ended.err
