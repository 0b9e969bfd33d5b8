"""What a comment can have done: a commit of numbers that were measured, and nothing else."""

import re

import pytest

from ci_perf.baselines import layout
from ci_perf.errors import ExitCode
from ci_perf.model import codec
from ci_perf.model.baseline import Baseline
from ci_perf.pull_request import bot
from tests.fakes.github import faults
from tests.fakes.github.fixtures import on_github_and_ghes
from tests.integration.github.second_stage import (
    ACCEPT,
    HEAD,
    RUN,
    TOGETHER,
    answer,
    artifact_of,
    committed,
    of_head,
    paired,
    slower,
    steady,
)
from tests.integration.github.stage import PULL
from tests.runs import GPU, SLOW, STEADY, a_measured, an_environment, an_evidence

MLP = f"{TOGETHER}/mlp.json"


def accepted_baseline(second, path=MLP):
    return codec.decode(second.github.file("feature", path), Baseline, name=path)


def refused(second, body, match, **of):
    """The bot says why, and commits nothing."""
    before = second.github.head("feature")
    _, ended = second.bot(body, **of)

    assert ended.code == ExitCode.OK
    assert "refused: " in ended.err
    assert re.search(match, answer(second)), answer(second)
    assert second.github.head("feature") == before
    assert second.github.token not in ended.out + ended.err


# --- done


@on_github_and_ghes
@pytest.mark.parametrize("level", ["write", "admin"])
def test_who_may_push_can_have_numbers_accepted_by_a_comment(second, level):
    second.measured(slower())
    _, ended = second.bot(ACCEPT, login="alice", level=level)

    assert ended.code == ExitCode.OK
    found = accepted_baseline(second)
    assert [one.run for one in found.sessions] == ["steady", "slower"]
    assert found.sessions[-1].reason == f"it does more (alice, #{PULL})"
    assert layout.render(found).encode() == second.github.file("feature", MLP)
    assert f"moved on  {MLP}" in answer(second)
    assert "step time: 1.00 ms → 2.00 ms (+100 %)" in answer(second)
    assert "GitHub starts no workflow for a commit" in answer(second)
    assert "/tmp" not in answer(second)


def test_the_commit_lies_on_the_one_that_was_measured_and_says_who_asked(second):
    second.measured(slower()).bot(ACCEPT)
    commit = second.github.commit("feature")

    assert commit.parents == (HEAD,)
    assert commit.message.startswith("Accept 1 new baseline\n\nit does more\n\nAsked for by octo: ")
    assert f"/actions/runs/{RUN}" in commit.message
    assert commit.author == "github-actions[bot]"


def test_only_baselines_are_touched(second):
    second.opened(files={"code.py": "x", ".github/workflows/perf.yml": "y"})
    before = second.github.commit(HEAD).files
    second.measured(slower()).bot(ACCEPT)
    after = second.github.commit("feature").files

    assert {path for path in after if after[path] != before.get(path)} == {MLP}
    assert set(before) <= set(after)


def test_all_machines_of_a_matrix_are_accepted_in_one_commit(second):
    gpu = of_head(a_measured("mlp", *STEADY), environment=an_environment(hard=GPU))
    second.measured(slower())
    second.github.add_artifact(RUN, "ci-perf-h200", artifact_of(gpu))
    second.bot(ACCEPT, "--artifact", "ci-perf", "--artifact", "ci-perf-h200")

    assert second.github.commit("feature").parents == (HEAD,)
    assert accepted_baseline(second, "baselines/nvidia-h200/smoke/mlp.json").machine == GPU
    assert len(accepted_baseline(second).sessions) == 2


def test_the_history_is_that_of_the_branch_not_of_the_checkout(second):
    """The branch has accepted something already."""
    second.opened(files=committed(second.folder / "x", steady(), steady_again()))
    second.measured(slower()).bot(ACCEPT)

    assert [one.run for one in accepted_baseline(second).sessions] == ["steady", "again", "slower"]


def steady_again(**more):
    return of_head(a_measured("mlp", *STEADY, breaks=1), id="again", **more)


def test_a_workload_that_is_new_needs_no_reason(second):
    second.measured(steady("mlp", "cnn")).bot(f"/ci-perf accept {HEAD} cnn")

    assert accepted_baseline(second, f"{TOGETHER}/cnn.json").sessions[0].reason == ""


def test_where_every_baseline_says_so_already_nothing_is_committed(second):
    second.measured(steady())
    second.bot(f"/ci-perf accept {HEAD}")

    assert "Nothing to accept" in answer(second)
    assert second.github.head("feature") == HEAD


def test_after_it_a_report_of_the_same_numbers_has_nothing_to_say_of_them(second):
    """The way from red to green: reported, accepted, measured again, judged by the new numbers."""
    second.measured(steady_again())
    assert second.report().code == ExitCode.REGRESSED
    second.bot(f'/ci-perf accept {HEAD} "why"')
    new = second.github.head("feature")
    second.github.add_run(50, head_sha=new)
    second.github.add_artifact(50, "ci-perf", artifact_of(steady_again(commit=new)))
    for path, content in second.github.commit("feature").files.items():
        (second.folder / path).write_bytes(content)  # what merging will give

    assert second.report(run=50).code == ExitCode.OK


# --- refused, each check by itself


@pytest.mark.parametrize("level", ["read", "triage"])
def test_who_may_not_push_is_refused(second, level):
    second.measured(slower())
    refused(
        second, ACCEPT, "permission of mallory: expected write access", login="mallory", level=level
    )


def test_a_stranger_who_writes_nonsense_learns_only_that(second):
    second.measured(slower())
    refused(second, "/ci-perf @octo/team", "permission of mallory", login="mallory", level="none")


GRAMMAR = "expected /ci-perf accept SHA .* with 12 to 40 digits"


@pytest.mark.parametrize(
    ("line", "match"),
    [
        ("/ci-perf reject", GRAMMAR),
        (f"/ci-perf accept {HEAD[:11]}", GRAMMAR),
        (f"/ci-perf accept {HEAD} ../../x", GRAMMAR),
        (f'/ci-perf accept {HEAD} "begun', GRAMMAR),
        (f'/ci-perf accept {HEAD} "\u202e"', GRAMMAR),
        (f"/ci-perf accept {HEAD} mlp", "expected a reason for every number"),
        (f'/ci-perf accept {HEAD} cnn "x"', "has no workload 'cnn'"),
    ],
)
def test_a_line_that_asks_for_nothing_possible_is_refused_with_what_is_expected(
    second, line, match
):
    second.measured(slower())
    refused(second, line, match)


SHA = "a1b2c3d4e5f6"


@pytest.mark.parametrize(
    ("line", "sha", "workloads", "reason"),
    [
        (f"/ci-perf accept {SHA}", SHA, [], None),
        (f"/ci-perf\taccept  {SHA} mlp cnn.n=4", SHA, ["mlp", "cnn.n=4"], None),
        (f'/ci-perf accept {"a" * 40} mlp "naïve → fast"  ', "a" * 40, ["mlp"], "naïve → fast"),
        (f"/ci-perf accept {SHA} “from a phone”", SHA, [], "from a phone"),
    ],
)
def test_what_follows_the_grammar_is_understood(line, sha, workloads, reason):
    found = bot._ORDER.fullmatch(line)
    assert found is not None

    assert (found["sha"], found["workloads"].split(), found["reason"]) == (sha, workloads, reason)


@pytest.mark.parametrize("workload", ["cnn", "mlp"], ids=["another text", "the same text"])
def test_a_comment_that_was_edited_since_is_refused(second, workload):
    second.measured(slower())
    edited = second.writes(ACCEPT)
    second.github.permissions = {**second.github.permissions, "contents": "write"}
    second.github.state.edit_comment(edited, ACCEPT.replace("mlp", workload))
    second.types("github", "answer-comment")

    assert "expected an unedited comment" in answer(second)
    assert second.github.head("feature") == HEAD


def test_numbers_of_a_busy_machine_are_refused_with_how_to_accept_them_by_hand(second):
    busy = a_measured("mlp", *SLOW, evidence=an_evidence(cpu_pressure=0.93))
    second.measured(of_head(busy, id="busy", **paired(2.0)))

    refused(second, ACCEPT, r"waited for a CPU 93% (?s:.*)--force(?s:.*)ci-perf accept --run")


def test_a_pull_request_that_is_closed_is_refused(second):
    second.opened(state="closed")
    second.measured(slower())
    refused(second, ACCEPT, "expected it open, found it closed")


def test_a_commit_that_is_not_the_head_any_more_is_refused(second):
    second.measured(slower())
    newer = second.github.push("feature", {"code.py": "x"})
    refused(second, ACCEPT, f"expected {HEAD[:12]} at its head, found {newer[:12]}")


def test_a_head_that_nobody_has_measured_is_refused(second):
    second.opened()
    refused(second, ACCEPT, NO_RUN)


NO_RUN = "expected a run of .github/workflows/perf.yml that measured it"


@pytest.mark.parametrize(
    ("of_run", "match"),
    [
        ({"path": ".github/workflows/evil.yml"}, NO_RUN),
        ({"event": "push"}, NO_RUN),
        ({"fork": True}, NO_RUN),
        ({"status": "in_progress", "conclusion": None}, "42: .* has ended, found it in_progress"),
        ({"artifact": False}, "has the job that measures uploaded it"),
        ({"artifact": {"run.json": '{"type": "run"}'}}, "expected the field"),
    ],
)
def test_a_run_of_something_else_or_without_its_numbers_is_not_taken(second, of_run, match):
    second.opened()
    second.measured(**of_run)
    refused(second, ACCEPT, match)


def test_the_newest_run_counts_even_where_an_older_one_has_numbers(second):
    second.measured(slower())
    second.github.add_run(43, head_sha=HEAD, status="queued", conclusion=None)
    refused(second, ACCEPT, "workflow run 43: expected one that has ended, found it queued")


def test_a_pull_request_from_a_fork_is_told_how_to_do_it_by_hand(second):
    second.measured(slower(), fork=True)
    before = second.github.head("feature", fork=True)
    _, ended = second.bot(ACCEPT)

    assert ended.code == ExitCode.OK
    assert "to which the token of a job cannot push" in answer(second)
    assert f"gh pr checkout {PULL}\nci-perf accept --run {RUN} " in answer(second)
    assert second.github.head("feature", fork=True) == before


def test_a_baseline_on_the_branch_that_cannot_be_read_is_refused(second):
    second.opened(files={MLP: b"<<<<<<< ours"})
    second.measured(slower())
    refused(second, ACCEPT, "mlp.json: expected a JSON document")


def test_a_branch_that_moves_at_the_last_moment_is_left_alone(second):
    second.measured(slower())

    def push():
        second.github.push("feature", {"code.py": "x"})

    second.writes(ACCEPT)
    second.github.permissions = {**second.github.permissions, "contents": "write"}
    # The first request by GraphQL is the commit: everything has been checked by then.
    second.github.fail_next("POST", "graphql", faults.meanwhile(push))
    second.types("github", "answer-comment")

    assert "has somebody pushed meanwhile?" in answer(second)
    assert second.github.commit("feature").files["code.py"] == b"x"
    assert len(accepted_baseline(second).sessions) == 1


def test_what_is_refused_is_quoted_and_never_obeyed(second):
    second.measured(of_head(a_measured("mlp", *STEADY), suite="smoke", id="x", validity=_invalid()))
    second.bot(ACCEPT)

    assert "@octo/team" in answer(second)
    assert re.search(r"`[^`]*@octo/team[^`]*`", answer(second))
    assert "<!-- ci-perf:v1 key=smoke" not in answer(second)


def _invalid():
    from ci_perf.model import validity

    reason = validity.Reason(
        code="x", status=validity.Status.INVALID, detail="@octo/team <!-- ci-perf:v1 key=smoke -->"
    )
    return validity.Validity(status=validity.Status.INVALID, reasons=(reason,))
