"""What a run that anybody may have made says of itself, and how little of it counts."""

import datetime as dt

import msgspec
import pytest

from ci_perf.errors import ExitCode
from ci_perf.report.sheet import Label
from tests.fakes.github import faults
from tests.fakes.github.fixtures import on_github_and_ghes
from tests.integration.github.second_stage import (
    ACCEPT,
    BASE,
    HEAD,
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
from tests.runs import GPU, SLOW, STEADY, a_measured, an_environment

LEFT_ALONE = "The pairs of this run are ignored"


def twice_as_slow(pairs):
    return of_head(a_measured("mlp", *SLOW), id="slower", **pairs)


def dirty(run):
    return msgspec.structs.replace(run, source=msgspec.structs.replace(run.source, dirty=True))


# --- pairs


@on_github_and_ghes
def test_pairs_of_a_commit_of_the_base_branch_count(second):
    """Also of one that lies behind its head."""
    second.opened(fork=True)
    older = BASE
    second.github.state.pulls[PULL].base_sha = second.github.push("main", {"more.py": "x"})
    ended = second.measured(twice_as_slow(paired(2.0, commit=older)), fork=True).report()

    assert ended.code == ExitCode.REGRESSED
    assert LEFT_ALONE not in second.body


def test_a_pause_holds_for_a_fork_by_the_word_of_the_second_job_alone(second):
    end = dt.datetime.now(dt.UTC).date() + dt.timedelta(days=7)
    ended = second.measured(twice_as_slow(paired(2.0)), fork=True).report(f"--paused-until={end}")

    assert ended.code == ExitCode.OK
    assert f"Paused until {end} (green job), else ❌ Fail: slower" in second.body


def test_changed_tests_are_named_by_the_commits_and_lost_ones_by_the_run(second):
    """The base branch may have moved on since: what it changes is not the pull request's."""
    base = {**committed(second.folder / "seed", steady()), "bench/test_x.py": b"work"}
    second.opened(base=base, files={"bench/conftest.py": "wrap()"})
    (second.folder / "bench/test_x.py").write_text("more work")
    run = of_head(a_measured("mlp", *STEADY, parameters={"node": "bench/test_x.py::a"}))
    run = msgspec.structs.replace(
        run, measured=tuple(msgspec.structs.replace(each, launch="fork") for each in run.measured)
    )
    how = msgspec.structs.replace(
        paired(1.0)["interleaved"], unmeasured={"test_x.b": "Skipped: flaky"}
    )
    second.measured(msgspec.structs.replace(run, interleaved=how)).report()

    assert "- workload removed: `test_x.b`, because: `Skipped: flaky`" in second.body
    assert "different work): `bench/conftest.py`\n" in second.body


def test_a_run_cannot_say_that_a_change_was_accepted(second):
    """The baselines of the base branch say what was; a run could name every metric."""
    second.opened(fork=True)
    run = twice_as_slow(paired(2.0, commit=BASE))
    how = msgspec.structs.replace(run.interleaved, accepted={"mlp": ("step_time_s",)})
    ended = second.measured(msgspec.structs.replace(run, interleaved=how), fork=True).report()

    assert ended.code == ExitCode.REGRESSED


@pytest.mark.parametrize("commit", ["f" * 40, HEAD, "unknown", "main", "../../../user"])
def test_pairs_of_any_other_commit_are_left_alone_and_the_report_says_so(second, commit):
    second.opened(fork=True)
    second.measured(twice_as_slow(paired(2.0, commit=commit)), fork=True)
    ended = second.report()

    assert ended.code == ExitCode.NO_ANSWER  # it looks slower, without pairs that count
    assert "1 workload looks slower, and no trusted pairs" in second.body
    assert LEFT_ALONE in second.body
    assert LEFT_ALONE in second.stage.summary


def test_pairs_of_a_commit_of_the_fork_that_git_knows_are_left_alone(second):
    second.opened(fork=True)
    slow = second.github.push("slow", {"slow.py": "x"}, fork=True)
    second.measured(twice_as_slow(paired(2.0, commit=slow)), fork=True).report()

    assert LEFT_ALONE in second.body


def test_pairs_of_a_base_with_changed_files_are_left_alone(second):
    second.opened(fork=True)
    second.measured(twice_as_slow(paired(2.0, dirty=True)), fork=True).report()

    assert LEFT_ALONE in second.body


def test_what_has_no_baseline_is_not_new_where_its_pairs_are_left_alone(second):
    second.opened()
    how = paired(1.0, commit="f" * 40)
    measured = (a_measured("mlp", *STEADY), a_measured("added", *STEADY))
    ended = second.measured(of_head(*measured, **how)).report()

    assert ended.code == ExitCode.NO_ANSWER
    assert "1 workload could not be compared without the pairs that are ignored" in second.body


def test_what_the_budget_left_is_not_new_for_the_job_that_judges_again(second):
    second.opened()
    how = paired(1.0)
    left = {"stopped": "budget", "expected": ("mlp", "left")}
    how["interleaved"] = msgspec.structs.replace(how["interleaved"], **left)
    measured = (a_measured("mlp", *STEADY), a_measured("left", *STEADY))
    ended = second.measured(of_head(*measured, **how)).report()

    assert ended.code == ExitCode.NO_ANSWER
    assert f"{Label.NOT_COMPARED.value}: `left`" in second.body


def test_a_base_of_its_own_does_not_clear_a_head_in_the_eyes_of_the_bot(second):
    second.measured(twice_as_slow(paired(1.0, commit="f" * 40)))
    _, ended = second.bot(ACCEPT)

    assert LEFT_ALONE in ended.err


@pytest.mark.parametrize("fork", [False, True])
def test_a_base_branch_that_is_as_slow_as_the_head_clears_nothing(second, fork):
    """The author chooses the base, and can change it once the commit has a green check."""
    second.opened(fork=fork, base_branch="old-and-slow")
    main = second.github.push("main", {"more.py": "x"})
    judges = {"GITHUB_REF_NAME": "main", "GITHUB_SHA": main}
    second.measured(twice_as_slow(paired(1.0, commit=BASE)), fork=fork)
    ended = second.report("--check", meanwhile=lambda: second.stage.environment(**judges))

    assert ended.code == ExitCode.NO_ANSWER
    assert "targets the branch `old-and-slow`, but is judged by the branch `main`" in second.body
    assert LEFT_ALONE in second.body
    assert [one.conclusion for one in second.github.checks(HEAD)] == ["failure"]


def test_pairs_against_the_branch_that_judges_count_whatever_the_pull_request_goes_to(second):
    second.opened(fork=True, base_branch="release")
    main = second.github.push("main", {"more.py": "x"})
    judges = {"GITHUB_REF_NAME": "main", "GITHUB_SHA": main}
    second.measured(twice_as_slow(paired(2.0, commit=main)), fork=True)
    ended = second.report(meanwhile=lambda: second.stage.environment(**judges))

    assert ended.code == ExitCode.REGRESSED
    assert LEFT_ALONE not in second.body


def test_a_fork_that_leaves_its_pairs_out_is_not_passed(second):
    second.opened(fork=True)
    ended = second.measured(twice_as_slow({}), fork=True).report("--check")

    assert ended.code == ExitCode.NO_ANSWER
    assert [one.conclusion for one in second.github.checks(HEAD)] == ["failure"]


def test_the_base_branch_stands_in_the_comment_and_the_check(second):
    second.measured(steady()).report("--check")

    assert "<sub>Judged for the branch `main`. Measured by [this run]" in second.body
    assert second.github.checks(HEAD)[0].output["title"].endswith(" · for main")


# --- which workloads


def of_two(second):
    base = committed(second.folder / "two", steady("mlp", "cnn"))
    second.opened(fork=True, base=base)


@pytest.mark.parametrize("selection", [("cnn",), ("none",)])
def test_a_workload_is_missing_whatever_the_run_says_that_was_asked_for(second, selection):
    of_two(second)
    second.measured(of_head(a_measured("cnn", *STEADY), selection=selection), fork=True)

    assert second.report().code == ExitCode.NO_ANSWER
    assert "missing" in second.body


@pytest.mark.parametrize(
    "other", [{"environment": an_environment(hard=GPU)}, {"items_per_step": 9999.0}]
)
def test_a_fork_cannot_choose_what_no_baseline_compares_with(second, other):
    """Another machine, or another workload, would leave only its own pairs to judge."""
    items = {k: v for k, v in other.items() if k == "items_per_step"}
    rest = {k: v for k, v in other.items() if k != "items_per_step"}
    run = of_head(a_measured("mlp", *SLOW, **items), **paired(1.0), **rest)
    ended = second.measured(run, fork=True).report("--check")

    assert ended.code == ExitCode.NO_ANSWER
    assert "1 workload could not be compared with the baselines" in second.body
    assert [one.conclusion for one in second.github.checks(HEAD)] == ["failure"]


def test_a_branch_of_this_repository_may_come_from_another_machine(second):
    run = of_head(a_measured("mlp", *SLOW, items_per_step=9999.0), **paired(1.0))

    assert second.measured(run).report().code == ExitCode.OK


# --- which commit


def test_numbers_of_another_commit_are_reported_as_such(second):
    second.measured(steady(commit="d" * 40)).report("--skip-if-unchanged")

    assert f"`{'d' * 12}`, but the head is `{HEAD[:12]}`" in second.body


@pytest.mark.parametrize(
    "run",
    [slower(commit="e" * 40), dirty(steady())],
    ids=["a slower other commit", "changed files"],
)
def test_numbers_of_other_code_from_a_fork_neither_pass_nor_blame_the_head(second, run):
    ended = second.measured(run, fork=True).report("--check")

    assert ended.code == ExitCode.NO_ANSWER
    assert [one.conclusion for one in second.github.checks(HEAD)] == ["failure"]


def test_numbers_of_changed_files_are_reported_as_such(second):
    second.measured(dirty(steady())).report()

    assert "These numbers are for a checkout with uncommitted changes" in second.body


def test_the_bot_accepts_numbers_of_the_head_only(second):
    second.measured(slower(commit="d" * 40)).bot(ACCEPT)

    words = "expected numbers of aaaaaaaaaaaa, found numbers of dddddddddddd"
    assert words in answer(second)
    assert second.github.head("feature") == HEAD


# --- which run


@pytest.mark.parametrize("conclusion", ["cancelled", "skipped"])
def test_the_bot_takes_the_newest_run_that_measured_to_its_end(second, conclusion):
    second.measured(slower())
    second.github.add_run(43, head_sha=HEAD, conclusion=conclusion)
    second.bot(ACCEPT)

    assert "Accepted for" in answer(second)


def test_a_run_that_has_found_a_regression_has_measured(second):
    second.measured(slower(), conclusion="failure").bot(ACCEPT)

    assert "Accepted for" in answer(second)


def test_the_bot_never_takes_a_run_that_github_knows_to_be_of_another_pull_request(second):
    second.measured(slower(), head_branch="other")
    second.github.add_pull(8, head_sha=HEAD, head_branch="other")
    second.bot(ACCEPT)

    assert "that measured it, found none" in answer(second)


# --- which pull request


@pytest.mark.parametrize("fork", [False, True])
def test_of_two_pull_requests_of_one_branch_the_one_for_the_checkout_is_reported(second, fork):
    second.measured(slower(), fork=fork)
    second.github.add_pull(8, head_sha=HEAD, base_sha=BASE, fork=fork, base_branch="release")
    second.stage.environment(GITHUB_REF_NAME="main")

    assert second.report().code == ExitCode.REGRESSED
    assert "❌ 1 regressed" in second.body
    assert second.github.comments(8) == []


def test_where_it_cannot_be_told_which_is_meant_there_is_no_answer(second):
    second.measured(slower())
    second.github.add_pull(8, head_sha=HEAD, base_sha=BASE, base_branch="release")
    second.stage.environment(GITHUB_REF_NAME="elsewhere")
    ended = second.report()

    assert ended.code == ExitCode.NO_ANSWER
    assert "for the branch elsewhere, found 0 of #8, #7" in ended.err
    assert second.github.comments(PULL) == []


@pytest.mark.parametrize(("run", "code"), [(slower(), 1), (steady(), 3)], ids=["slower", "fine"])
def test_a_machine_that_left_nothing_hides_nothing_of_the_others(second, run, code):
    second.measured(run)
    ended = second.report("--artifact", "ci-perf", "--artifact", "ci-perf-l4", "--check")

    assert ended.code == code
    assert "Not reported: `artifact 'ci-perf-l4' of workflow run 42: expected one" in second.body
    assert [one.conclusion for one in second.github.checks(HEAD)] == ["failure"]


def test_a_suite_may_be_called_as_the_answers_of_the_bot_were(second):
    second.measured(slower())
    comment, _ = second.bot(ACCEPT)
    said = answer(second)
    second.github.add_run(50, head_sha=second.github.head("feature"))
    second.github.add_artifact(50, "ci-perf", artifact_of(slower(suite=f"answer-{comment.id}")))
    second.report(run=50)

    assert [one for one in second.stage.bodies() if one.endswith(said)]


# --- baselines that it brings


@pytest.mark.parametrize(
    "files",
    [
        {f"baselines/m/s/{'x' * 300}.json": b"{}"},
        {"baselines/README.md": None, "baselines/README.md/a/x.json": b"{}"},
        {"baselines/a/b/c.json/d.txt": None, "baselines/a/b/c.json": b"{}"},
    ],
    ids=["a long name", "a folder for a file", "a file for a folder"],
)
def test_no_name_of_a_file_keeps_a_fork_from_being_reported(second, files):
    base = committed(second.folder / "names", steady())
    base |= {path: b"hi" for path, content in files.items() if content is None}
    second.opened(fork=True, base=base, files=files)

    assert second.measured(slower(), fork=True).report().code == ExitCode.REGRESSED
    assert "❌ 1 regressed" in second.body


def test_a_calibration_that_is_changed_is_shown(second):
    machine = TOGETHER.split("/")[1]
    second.opened(files={f"baselines/{machine}/calibration.json": b"{}"})
    second.measured(slower()).report()

    changed = f"`baselines/{machine}/calibration.json`"
    assert f"✏️ This pull request changes 1 baseline ({changed})" in second.body


def test_where_github_does_not_say_what_is_changed_the_verdict_is_reported_all_the_same(second):
    second.measured(slower(), fork=True)
    second.github.fail_next("GET", r"/pulls/7/files", faults.BAD_GATEWAY, times=99)

    assert second.report().code == ExitCode.REGRESSED
    assert "❌ 1 regressed" in second.body


def test_the_bot_says_that_a_file_stands_where_baselines_should_lie(second):
    second.opened(files={f"{TOGETHER}/mlp.json": None, TOGETHER: b"x"})
    second.measured(slower())
    second.bot(ACCEPT)

    assert "expected a folder, found a file" in answer(second)
    assert second.github.head("feature") == HEAD


# --- publish


def test_publish_is_silent_where_the_head_has_moved_on(second):
    second.opened()
    second.stage.on_pull()
    second.github.push("feature", {"code.py": "newer"})
    ended = second.stage.publish()

    assert "no open pull request has the measured commit at its head" in ended.err
    assert second.github.comments(PULL) == []
