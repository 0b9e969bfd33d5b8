"""The second stage: numbers of strangers, judged again by us. Nothing else of theirs counts."""

import re

import msgspec
import pytest

from ci_perf.errors import ExitCode
from ci_perf.github import artifacts
from ci_perf.model import codec
from ci_perf.model.validity import validity_of
from ci_perf.pull_request import fetch
from tests.comparisons import a_plant
from tests.fakes.github import faults
from tests.fakes.github.fixtures import on_github_and_ghes
from tests.histories import in_turns, pairs
from tests.integration.github.second_stage import (
    HEAD,
    RUN,
    WORKFLOW,
    artifact_of,
    of_head,
    paired,
    slower,
    steady,
)
from tests.integration.github.stage import PULL
from tests.runs import GPU, STEADY, a_measured, a_reason, a_run, an_environment
from tests.unit.github.test_artifacts import a_link, zipped

FROM_A_FORK = "Measured by code from a fork"


def nothing_was_posted(second):
    return second.github.comments(PULL) == [] and second.stage.summary == ""


# --- what is reported


@on_github_and_ghes
@pytest.mark.parametrize("fork", [False, True])
def test_what_a_pull_request_has_measured_is_judged_again_and_posted(second, fork):
    second.measured(slower(), fork=fork)
    ended = second.report("--check")

    assert ended.code == ExitCode.REGRESSED
    assert "::warning" not in ended.err
    assert "❌ 1 regressed" in second.body
    assert (FROM_A_FORK in second.body) == fork
    assert f"/actions/runs/{RUN})" in second.body
    assert [one.conclusion for one in second.github.checks(HEAD)] == ["failure"]
    assert "❌ 1 regressed" in second.stage.summary


def test_a_pull_request_without_news_ends_well(second):
    assert second.measured(steady()).report().code == ExitCode.OK


def test_the_verdict_of_whoever_measured_is_not_even_read(second):
    second.measured(
        artifact=artifact_of(slower()) | {"comparison.json": '{"verdict": "unchanged"}'}
    )

    assert second.report().code == ExitCode.REGRESSED
    assert "not ours" not in second.body


def test_the_limits_are_those_of_the_base_branch(second):
    (second.folder / "workloads").mkdir()
    (second.folder / "workloads/mlp.py").write_text("def build(context): ...\n")
    (second.folder / "workloads/suite.toml").write_text(
        "[suites.smoke]\nfail_on = 'never'\n[[suites.smoke.workloads]]\nworkload = 'mlp'\n"
    )
    second.measured(slower())

    assert second.report().code == ExitCode.OK
    assert "❌ 1 regressed" in second.body


def test_what_can_be_accepted_comes_with_lines_to_copy(second):
    second.measured(slower()).report()

    assert f"gh pr checkout {PULL}\nci-perf accept --run {RUN} " in second.body
    assert f"/ci-perf accept {HEAD} " in second.body
    assert f"`ci-perf accept --run {RUN} --workload mlp" in second.body


def test_of_a_run_that_is_invalid_nothing_can_be_accepted(second):
    second.measured(slower(validity=validity_of((a_reason(),)))).report()

    assert "ci-perf accept" not in second.body


@pytest.mark.parametrize("dirty", [False, True])
def test_where_nothing_has_changed_a_comment_is_begun_only_to_say_a_doubt(second, dirty):
    run = steady(**paired(1.0))
    source = msgspec.structs.replace(run.source, dirty=dirty)
    second.measured(msgspec.structs.replace(run, source=source)).report("--skip-if-unchanged")

    assert len(second.stage.bodies()) == dirty


def test_a_fork_is_not_told_of_a_comment_that_could_not_help(second):
    second.measured(slower(), fork=True).report()

    assert f"ci-perf accept --run {RUN} " in second.body
    assert "/ci-perf accept" not in second.body


def test_a_matrix_of_machines_is_reported_as_one_comment(second):
    gpu = of_head(a_measured("mlp", *STEADY), environment=an_environment(hard=GPU))
    second.measured(slower())
    second.github.add_artifact(RUN, "ci-perf-h200", artifact_of(gpu))
    ended = second.report("--artifact", "ci-perf", "--artifact", "ci-perf-h200")

    assert ended.code == ExitCode.REGRESSED
    assert len(re.findall("^### ", second.body, re.MULTILINE)) == 2
    assert f"ci-perf accept --run {RUN} --artifact ci-perf-h200" in second.body


# --- which pull request, which run


@pytest.mark.parametrize(
    ("fork", "change"),
    [
        (False, lambda github: github.push("feature", {"code.py": "newer"})),
        (False, lambda github: setattr(github.state.pulls[PULL], "state", "closed")),
        (True, lambda github: github.delete_fork()),
    ],
    ids=["pushed to", "closed", "without its fork"],
)
def test_a_pull_request_that_has_changed_meanwhile_is_left_alone(second, fork, change):
    second.measured(slower(), fork=fork)
    ended = second.report(meanwhile=lambda: change(second.github))

    assert ended.code == ExitCode.OK
    assert "nothing to report" in ended.err
    assert nothing_was_posted(second)


def test_a_pull_request_of_somebody_elses_branch_with_this_name_is_never_meant(second):
    """The run is of a fork; the pull request with the same branch and commit is not."""
    second.opened(fork=False)
    second.measured(slower(), fork=True)

    assert second.report().code == ExitCode.OK
    assert nothing_was_posted(second)


@pytest.mark.parametrize(
    ("of_run", "match"),
    [
        ({"event": "push"}, "expected one that pull_request began, found 'push'"),
        ({"event": "pull_request_target"}, "expected one that pull_request began"),
        ({"path": ".github/workflows/perf.yml.yml"}, f"expected one of {WORKFLOW}, found"),
        ({"status": "in_progress", "conclusion": None}, "expected one that has ended"),
    ],
)
def test_a_run_that_is_not_the_one_that_measures_is_refused(second, of_run, match):
    second.measured(slower(), **of_run)
    ended = second.report()

    assert ended.code == ExitCode.NO_ANSWER
    assert re.search(match, ended.err)
    assert nothing_was_posted(second)


@pytest.mark.parametrize(
    ("path", "words"),
    [
        (f"{WORKFLOW}@refs/pull/7/merge", ()),
        (".github/workflows/gpu.yml", ("--workflow", ".github/workflows/gpu.yml")),
    ],
)
def test_a_workflow_is_known_by_its_file_whatever_ref_github_adds(second, path, words):
    second.measured(slower(), path=path)

    assert second.report(*words).code == ExitCode.REGRESSED


def test_a_run_that_nobody_knows_is_said_to_be_missing(second):
    second.measured(slower())
    ended = second.report(run=43)

    assert ended.code == ExitCode.NO_ANSWER
    assert "workflow run 43: GitHub answered 404" in ended.err


# --- the artifact


def refused(second, match, code):
    ended = second.report()

    assert ended.code == code
    assert re.search(match, ended.err), ended.err
    assert nothing_was_posted(second)
    assert "Traceback" not in ended.err


def test_no_other_artifact_is_taken_and_who_should_have_uploaded_it_is_said(second):
    second.measured(artifact=False)
    second.github.add_artifact(RUN, "ci-perf-2", artifact_of(steady()))
    second.github.add_run(41, head_sha=HEAD)
    second.github.add_artifact(41, "ci-perf", artifact_of(steady()))

    refused(
        second,
        "artifact 'ci-perf' of workflow run 42: expected one, found none(?s:.*)uploaded it",
        ExitCode.NO_ANSWER,
    )


def test_of_two_artifacts_the_one_of_the_last_attempt_counts(second):
    second.measured(slower())
    second.github.add_artifact(RUN, "ci-perf", artifact_of(steady()))

    assert second.report().code == ExitCode.OK


OTHER = f"sha256:{'0' * 64}"


@pytest.mark.parametrize(
    ("facts", "match", "code"),
    [
        ({"expired": True}, "found it expired; measure again", ExitCode.NO_ANSWER),
        ({"digest": OTHER}, f"expected the digest {OTHER}", ExitCode.USAGE),
        ({"size": artifacts.MAX_BYTES + 1}, "run 42: expected at most", ExitCode.USAGE),
    ],
    ids=["expired", "another digest", "too large"],
)
def test_an_artifact_of_which_github_says_no_good_is_refused(second, facts, match, code):
    second.measured(artifact=False)
    second.github.add_artifact(RUN, "ci-perf", artifact_of(slower()), **facts)

    refused(second, match, code)
    assert len(second.github.blob_requests) == ("digest" in facts)  # the others are not fetched


def test_an_artifact_that_is_larger_than_it_says_is_not_read_to_its_end(second):
    second.measured(artifact=False)
    archive = zipped(("run.json", bytes(artifacts.MAX_BYTES)), compression=0)
    second.github.add_artifact(RUN, "ci-perf", archive, size=100)

    refused(second, "expected at most 50 MiB, found more", ExitCode.USAGE)


# What an archive may be is tested in tests/unit/github/test_artifacts.py.
HOSTILE = {
    "no archive": (b"<html>", "damaged"),
    "a link": (zipped((a_link(), "/etc/passwd")), "found a link"),
    "a bomb": (zipped(("run.json", bytes(artifacts.MAX_BYTES + 1))), "at most 50 MiB"),
    "no UTF-8": (zipped(("run.json", b'{"id": "\xff\xfe"}')), "expected"),
    "NaN": (zipped(("run.json", '{"duration_s": NaN}')), "expected a JSON document"),
    "deep": (zipped(("run.json", '{"a":' * 5_000 + "1" + "}" * 5_000)), "nested too deep"),
    "another document": (zipped(("run.json", '{"type": "baseline"}')), "expected|[Ii]nvalid"),
    "an unknown key": (
        zipped(("run.json", codec.encode(steady()).replace('"id"', '"id2"', 1))),
        "unknown key 'id2'",
    ),
    "a hostile name": (
        zipped(("run.json", codec.encode(steady()).replace('"mlp"', '"../../x"', 1))),
        r"\$.measured",
    ),
}


@pytest.mark.parametrize(("data", "match"), HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_artifact_is_refused_and_leaves_nothing(second, data, match):
    second.measured(artifact=data)
    before = sorted(second.folder.rglob("*"))

    refused(second, match, ExitCode.USAGE)
    left = {*second.folder.rglob("*")} - {*before, second.folder / "event.json"}
    assert left == set()


def test_a_run_that_was_slowed_down_on_purpose_is_refused(second):
    second.measured(in_turns(steady(), pairs(1.1), workload="mlp", planted=a_plant("mlp")))

    refused(second, "on purpose", ExitCode.USAGE)


def test_more_workloads_than_any_suite_has_are_refused(second):
    second.measured(steady(*(f"w{number}" for number in range(2_001))))

    refused(second, "expected at most 2,000 workloads", ExitCode.USAGE)


@pytest.mark.parametrize(("fewer", "code"), [(0, ExitCode.OK), (1, ExitCode.USAGE)])
def test_as_many_numbers_as_are_allowed_are_judged(second, monkeypatch, fewer, code):
    monkeypatch.setattr(fetch, "_MAX_WORKLOADS", 1)
    monkeypatch.setattr(fetch, "_MAX_PROCESSES", len(STEADY) - fewer)

    assert second.measured(steady()).report().code == code


def test_numbers_that_no_machine_gives_are_refused_or_judged_and_never_a_crash(second):
    tiny = of_head(a_measured("mlp", 1e-12, 1e9, 1e-12, items_per_step=1e18))
    second.measured(tiny)
    ended = second.report()

    assert "Traceback" not in ended.err
    assert ended.code in {ExitCode.OK, ExitCode.USAGE, ExitCode.NO_ANSWER}


def test_a_run_of_a_suite_that_nobody_expects_can_be_refused(second):
    second.measured(slower(suite="easy"))
    ended = second.report("--suite", "smoke")

    assert ended.code == ExitCode.NO_ANSWER
    assert "expected suite 'smoke', found 'easy'" in ended.err


def test_hostile_text_in_a_run_is_shown_and_never_obeyed(second):
    loud = "@octo/team <!-- ci-perf:v1 --> ::error::x #1 \u202e`"
    second.measured(a_run(a_measured("mlp", *STEADY), commit=loud, selection=(loud,)))
    ended = second.report()

    assert "\n::error::" not in ended.err + ended.out
    assert "<!-- ci-perf:v1 -->" not in second.body
    assert "\u202e" not in second.body


# --- the token


def test_the_host_of_artifacts_never_sees_the_token(second):
    second.measured(slower()).report()

    assert len(second.github.blob_requests) == 1
    (asked,) = second.github.blob_requests
    assert "Authorization" not in asked.headers
    assert second.github.token not in str(asked)
    assert {request.token for request in second.github.requests} == {second.github.token}


@pytest.mark.parametrize(
    ("method", "path", "fault"),
    [
        ("GET", "/zip$", faults.NOT_ACCESSIBLE),
        ("GET", "^/artifacts/", faults.BAD_GATEWAY),
        ("GET", "^/artifacts/", faults.RESET),
        ("GET", "/actions/runs/42$", faults.BAD_CREDENTIALS),
        ("GET", "/artifacts$", faults.CUT_JSON),
    ],
)
def test_when_github_fails_there_is_no_answer_and_no_token_in_any_message(
    second, method, path, fault
):
    second.measured(slower())
    second.github.fail_next(method, path, fault, times=99)
    ended = second.report()

    assert ended.code == ExitCode.NO_ANSWER
    assert "error: " in ended.err
    assert second.github.token not in ended.out + ended.err
    assert nothing_was_posted(second)


@pytest.mark.parametrize("fault", ["BAD_GATEWAY", "RESET"])
def test_an_artifact_that_gets_lost_once_is_fetched_again(second, fault):
    second.measured(slower())
    second.github.fail_next("GET", "^/artifacts/", getattr(faults, fault))

    assert second.report().code == ExitCode.REGRESSED


def test_a_token_that_may_not_comment_changes_no_verdict(second):
    second.measured(slower())
    second.github.read_only()
    ended = second.report()

    assert ended.code == ExitCode.REGRESSED
    assert "::warning title=ci-perf::not reported" in ended.err
    assert second.report("--require-report").code == ExitCode.NO_ANSWER
