"""What a comment can have started: a run on the commit that it names, and nothing else."""

import pytest

from ci_perf.errors import ExitCode
from ci_perf.pull_request import orders
from tests.fakes.github import faults
from tests.fakes.github.fixtures import on_github_and_ghes
from tests.integration.github.second_stage import BASE, HEAD, RUN, answer, slower

ASKED = ".github/workflows/asked.yml"


def order(second, body, *, actions="write", **of):
    """Let a person write a comment, and the bot of asked.yml read it."""
    second.writes(body, **of)
    second.github.permissions = {**second.github.permissions, "actions": actions}
    return second.types("github", "answer-comment", "--asked", ASKED)


def started(second):
    """The runs that were started, as their inputs."""
    runs = second.github.state.runs.values()
    return [run.inputs for run in runs if run.event == "workflow_dispatch"]


def refused(second, body, match, **of):
    """The bot says why, and starts nothing."""
    ended = order(second, body, **of)

    assert ended.code == ExitCode.OK
    assert "refused: " in ended.err
    assert match in answer(second)
    assert started(second) == []
    assert second.github.sent("POST", "/rerun$") == []
    assert second.github.token not in ended.out + ended.err


# --- done


@on_github_and_ghes
@pytest.mark.parametrize(
    ("words", "verb", "names"),
    [
        ("run {}", "run", ""),
        ("run {} mlp cnn.n=4", "run", "mlp cnn.n=4"),
        ("explain {} mlp", "explain", "mlp"),
        ("bisect {} v1.4 mlp", "bisect", "v1.4 mlp"),
    ],
)
def test_who_may_push_starts_a_run_of_that_very_commit(second, words, verb, names):
    second.opened()
    ended = order(second, f"/ci-perf {words.format(HEAD[:12])}\nfor people", login="alice")

    assert ended.code == ExitCode.OK
    inputs = {"verb": verb, "sha": HEAD, "base": BASE, "names": names, "fork": "false"}
    assert started(second) == [inputs]
    sent = second.github.sent("POST", "/dispatches$")[-1]
    assert sent.path.endswith("/actions/workflows/asked.yml/dispatches")
    assert sent.body["ref"] == "main"
    assert f"Started for `alice`: {verb} of `{HEAD[:12]}`" in answer(second)
    is_told = second.github.flavour == "github.com"
    # Enterprise Server refuses what it does not know, and is asked again without.
    assert ["return_run_details" in each for each in second.github.violations] == [True] * (
        not is_told
    )
    second.github.violations.clear()
    page = "/octo/model/actions/" + ("runs/" if is_told else "workflows/asked.yml")
    assert page in answer(second)


def test_a_server_that_refuses_to_say_which_run_it_is_starts_it_all_the_same(second):
    second.opened()
    refusal = faults.refused(422, "return_run_details is not a permitted key.")
    second.github.fail_next("POST", "/dispatches$", refusal)
    order(second, f"/ci-perf run {HEAD}")

    assert len(started(second)) == 1
    assert "return_run_details" not in second.github.sent("POST", "/dispatches$")[1].body


def test_more_repeats_the_run_that_measured_the_commit_so_that_its_pairs_add_up(second):
    second.measured(slower())
    order(second, f"/ci-perf more {HEAD}")

    assert second.github.state.runs[RUN].attempt == 2
    assert started(second) == []
    assert f"/actions/runs/{RUN})" in answer(second)


def test_a_commit_of_a_fork_is_measured_for_a_writer_who_is_not_its_author(second):
    second.opened(fork=True, author="mallory")
    order(second, f"/ci-perf run {HEAD}", login="alice", level="write")

    assert [(run["sha"], run["fork"]) for run in started(second)] == [(HEAD, "true")]


# --- refused


@pytest.mark.parametrize(
    ("author", "login"), [("Alice", "alice"), ("octocat", "mallory")], ids=["author", "owner"]
)
@pytest.mark.parametrize("words", ["run {}", "more {}", "explain {} mlp", "bisect {} main mlp"])
def test_the_author_of_a_fork_needs_a_second_writer(second, author, login, words):
    second.measured(slower())
    second.opened(fork=True, author=author)
    body = f"/ci-perf {words.format(HEAD)}"
    refused(second, body, "expected a second person", login=login, level="write")


@pytest.mark.parametrize("level", ["none", "read", "triage"])
def test_who_may_not_push_is_refused(second, level):
    second.opened()
    body = f"/ci-perf run {HEAD}"
    refused(second, body, "expected write access", login="mallory", level=level)


@pytest.mark.parametrize(
    "words",
    [
        "runs {}",
        "RUN {}",
        "run",
        "run main",
        f"run {HEAD[:11]}",
        f"run {HEAD}a",
        f"run {HEAD.upper()}",
        "run {} `touch pwned`",
        "run {} $(touch pwned)",
        "run {} ${{{{ secrets.TOKEN }}}}",
        "run {} <!--",
        "run {} @octo/team",
        "run {} --all",
        "run {} ../../x",
        "run {} a;b",
        "run {} m\u202elp",
        "run {} " + "a" * 201,
        "run {}" + " mlp" * 51,
        "more {} mlp",
        "explain {}",
        "bisect {} main",
        "bisect {} main mlp cnn",
        "bisect {} --upload-pack=x mlp",
        "bisect {} main~1 mlp",
    ],
)
def test_what_does_not_follow_the_grammar_is_answered_with_it_and_starts_nothing(second, words):
    second.opened()
    refused(second, "/ci-perf " + words.format(HEAD), "or /ci-perf bisect SHA GOOD WORKLOAD")


def test_a_second_line_is_never_an_order(second):
    second.opened()
    order(second, f"/ci-perf run {HEAD}\n/ci-perf run {HEAD} $(touch pwned)\r/ci-perf more {HEAD}")

    assert [run["names"] for run in started(second)] == [""]


def test_a_comment_that_was_edited_since_starts_nothing(second):
    second.opened()
    edited = second.writes(f"/ci-perf run {HEAD}")
    second.github.state.edit_comment(edited, f"/ci-perf run {HEAD} mlp")
    second.types("github", "answer-comment", "--asked", ASKED)

    assert "expected an unedited comment" in answer(second)
    assert started(second) == []


def test_what_a_bot_writes_starts_nothing(second):
    second.opened()
    order(second, f"/ci-perf run {HEAD}", login="github-actions[bot]")

    assert second.github.requests == []


@pytest.mark.parametrize("fork", [False, True])
def test_an_old_commit_is_refused(second, fork):
    second.opened(fork=fork, author="carol")
    newer = second.github.push("feature", {"code.py": "x"}, fork=fork)
    match = f"expected {HEAD[:12]} at its head, found {newer[:12]}"
    refused(second, f"/ci-perf run {HEAD}", match)


def test_a_closed_pull_request_is_refused(second):
    second.opened(state="closed")
    refused(second, f"/ci-perf run {HEAD}", "expected it open, found it closed")


def test_more_of_what_nobody_has_measured_is_refused(second):
    second.opened()
    refused(second, f"/ci-perf more {HEAD}", "that measured it, found none")


def test_more_of_a_run_under_way_is_refused(second):
    second.measured(slower(), status="in_progress", conclusion=None)
    refused(second, f"/ci-perf more {HEAD}", "has ended, found it in_progress")


def test_a_repository_without_the_workflow_is_told_so(second):
    second.opened()
    second.github.state.workflows.clear()
    refused(second, f"/ci-perf run {HEAD}", "asked.yml: GitHub answered 404")


def test_a_token_that_may_start_nothing_is_told_so_and_not_shown(second):
    second.opened()
    refused(second, f"/ci-perf run {HEAD}", "no permission; give the job", actions="read")


def test_a_start_whose_answer_is_lost_is_not_repeated(second):
    second.opened()
    second.github.fail_next("POST", "/dispatches$", faults.BAD_GATEWAY.after_the_work())
    order(second, f"/ci-perf run {HEAD}")

    assert len(started(second)) == 1
    assert "it may run all the same" in answer(second)


def test_without_the_option_a_comment_can_only_accept(second):
    second.opened()
    second.bot(f"/ci-perf run {HEAD}")

    assert "expected /ci-perf accept SHA" in answer(second)
    assert started(second) == []


@pytest.mark.parametrize("name", ["a b", "-x", "$(x)", "`x`", "a\nb", "x'", 'x"', "a/b", "é", "{}"])
def test_a_word_of_an_order_is_one_word_of_a_shell(name):
    found = orders.read(f"/ci-perf explain {HEAD} {name}")

    assert found is None or found["names"].split() == ["a", "b"]
