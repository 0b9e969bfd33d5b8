"""The steps of action.yml, run as a runner does, with a ci-perf that notes how it was called."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.actions.recording import TOKEN, called
from tests.integration.actions.stage import ROOT


def ran(done):
    return [step.name for step in done.steps if step.outcome != "skipped"]


# --- history


def test_a_history_is_drawn_without_a_token(recorded):
    job = recorded(with_results=False)

    done = job.run_action(ROOT, mode="history", site="public", token=TOKEN)

    assert ran(done) == ["Find or install ci-perf", "Draw the history"]
    assert called(job, "history") == [
        "history",
        "--workloads=workloads",
        "--baselines=baselines",
        "--format=html",
        "--output=public",
    ]
    assert done.outputs["outcome"] == "success"
    assert not [step.name for step in done.steps if TOKEN in str(step.environment)]


# --- measure


def test_measuring_is_what_happens_without_inputs(recorded):
    job = recorded()

    done = job.run_action(ROOT)

    assert ran(done) == [
        "Find or install ci-perf",
        "Measure and judge",
        "Show the report",
        "Offer the numbers as baselines",
    ]
    assert called(job, "check") == [
        "check",
        "--workloads=workloads",
        "--baselines=baselines",
        "--device=auto",
        "--run-output=run.json",
        "--comparison-output=comparison.json",
        "--format=markdown",
        "--output=report.md",
        "--page=page.html",
    ]
    assert called(job, "publish") == ["publish", "--no-comment", "--", "comparison.json"]
    assert called(job, "accept")[3:] == [
        "--patch=baseline.patch",
        "--reason=As measured by workflow run 42",
        *("--", "run.json"),
    ]


@pytest.mark.parametrize("code", [0, 1, 2, 3, 130])
def test_the_exit_code_of_ci_perf_is_that_of_the_step_and_the_report_is_shown(recorded, code):
    job = recorded(ends_with=code)

    done = job.run_action(ROOT)

    outcome = "failure" if code else "success"
    assert done.step("measure").code == code
    assert (done.conclusion, job.summaries) == (outcome, ["# shown\n"])
    assert done.outputs == {
        "outcome": outcome,
        "exit-code": "1",
        "verdict": "regressed",
        "comment-url": "",
        "report": "report.md",
        "run": "run.json",
        "comparison": "comparison.json",
        "checks-before": "",
        "matrix": "",
    }


def test_no_step_that_measures_is_given_a_token(recorded):
    job = recorded()

    done = job.run_action(ROOT, token=TOKEN)

    assert not [step.name for step in done.steps if TOKEN in str(step.environment)]


def test_on_a_pull_request_base_and_head_are_launched_in_turns(recorded):
    job = recorded(event={"pull_request": {"base": {"sha": "a1b2c3d4"}}})
    job.run_action(ROOT)

    assert called(job, "check")[-2:] == ["--against=a1b2c3d4", "--budget=20m"]


def test_traces_are_kept_where_somebody_asks_and_a_base_is_launched(recorded):
    job = recorded(event={"pull_request": {"base": {"sha": "a1b2c3d4"}}})
    (job.workspace / "the traces").mkdir()
    older, other = (
        job.workspace / "the traces" / name for name in ("w.base.pt.trace.json.gz", "mine.txt")
    )
    for file in (older, other):
        file.write_text("")
    job.run_action(ROOT, traces="the traces")

    assert called(job, "check")[-1] == "--traces=the traces"
    assert (older.exists(), other.exists()) == (False, True)

    job.run_action(ROOT, traces="the traces", against="none")

    assert not [word for word in called(job, "check") if word.startswith("--traces")]


def test_a_pull_request_whose_earlier_checks_nobody_has_counted_says_so(recorded):
    job = recorded(event={"pull_request": {"number": 7, "base": {"sha": "a1b2c3d4"}}})
    job.run_action(ROOT)

    assert called(job, "check")[-1] == "--checks-before=unknown"


def test_what_came_before_is_handed_on_where_it_is_there(recorded):
    job = recorded(event={"pull_request": {"number": 7, "base": {"sha": "a1b2c3d4"}}})
    (job.workspace / "first.json").write_text("{}")
    job.run_action(ROOT, checks_before="2", add="first.json\n\nmissing.json\n")

    assert called(job, "check")[-2:] == ["--checks-before=2", "--add=first.json"]


def test_earlier_checks_are_counted_with_a_token_before_anything_is_measured(recorded):
    job = recorded()
    done = job.run_action(ROOT, mode="before", suite="standard", token=TOKEN)

    assert ran(done) == ["Find or install ci-perf", "Count earlier checks"]
    assert called(job, "count-checks") == ["count-checks", "--key=standard"]
    assert done.outputs["outcome"] == "success"


def test_nobody_has_to_launch_the_base(recorded):
    job = recorded(event={"pull_request": {"base": {"sha": "a1b2c3d4"}}})
    job.run_action(ROOT, against="none", all="true", wait="5m", fail_on="unconfirmed")

    words = called(job, "check")
    assert {"--all", "--wait=5m", "--fail-on=unconfirmed"} <= set(words)
    assert not [word for word in words if word.startswith("--against")]


def test_results_of_an_earlier_job_are_not_shown_as_this_ones(recorded):
    job = recorded(ends_with=3, with_results=False)
    for name in ("report.md", "run.json", "comparison.json", "baseline.patch"):
        (job.workspace / name).write_text("all is well\n")

    done = job.run_action(ROOT)

    assert list(job.workspace.iterdir()) == []
    assert "came to no verdict" in job.summaries[0]
    assert (done.outputs["exit-code"], done.outputs["outcome"]) == ("", "failure")


# --- report and accept


def test_reporting_publishes_what_was_measured_elsewhere(recorded):
    job = recorded(ends_with=1)

    done = job.run_action(ROOT, mode="report", comparison="h200.json\n\nthe l4.json\n")

    assert ran(done) == ["Find or install ci-perf", "Report"]
    assert called(job, "publish") == [
        *("publish", "--workloads=workloads", "--", "h200.json", "the l4.json"),
    ]
    assert (done.conclusion, done.outputs["outcome"]) == ("failure", "failure")
    assert done.outputs["exit-code"] == "1"


def test_every_wish_of_a_report_becomes_an_option(recorded):
    job = recorded()
    job.run_action(
        ROOT,
        mode="report",
        comment="false",
        check="true",
        skip_if_unchanged="true",
        require_report="true",
        key="nightly",
        history_url="https://octo.github.io/model/",
    )

    assert called(job, "publish")[2:-2] == [
        *("--no-comment", "--check", "--skip-if-unchanged", "--require-report"),
        *("--key=nightly", "--history-url=https://octo.github.io/model/"),
    ]


def test_the_numbers_of_another_run_are_fetched_by_its_id(recorded):
    job = recorded()

    job.run_action(
        ROOT, mode="report", run_id="42", check="true", artifact="h200\nl4\n", suite="standard"
    )

    assert called(job, "rejudge") == [
        *("rejudge", "--run-id=42", "--workflow=.github/workflows/perf.yml"),
        *("--baselines=baselines", "--workloads=workloads", "--check"),
        *("--artifact=h200", "--artifact=l4", "--suite=standard"),
    ]


def test_accepting_takes_a_file_or_answers_a_comment(recorded):
    for_file, for_comment = recorded(event_name="schedule"), recorded(event_name="issue_comment")

    for_file.run_action(ROOT, mode="accept", append="true", reason="Nightly")
    for_comment.run_action(ROOT, mode="accept")

    assert called(for_file, "accept") == [
        *("accept", "--workloads=workloads", "--baselines=baselines"),
        *("--append", "--reason=Nightly", "--", "run.json"),
    ]
    assert called(for_comment, "accept-comment") == [
        *("accept-comment", "--workflow=.github/workflows/perf.yml"),
        *("--workloads=workloads", "--baselines=baselines", "--artifact=ci-perf"),
    ]


@pytest.mark.parametrize(
    ("mode", "step", "command"), [("report", "Report", "publish"), ("accept", "Accept", "accept")]
)
def test_the_token_is_given_to_the_step_that_posts_and_to_no_other(recorded, mode, step, command):
    job = recorded()

    done = job.run_action(ROOT, mode=mode)

    assert [one.name for one in done.steps if TOKEN in str(one.environment)] == [step]
    assert called(job, f"{command}.token") == [TOKEN]


# --- what holds for all

FULL = {name: ["github", name] for name in ("publish", "count-checks", "rejudge", "accept-comment")}


@pytest.mark.parametrize("mode", ["Measure", "publish", "", "a\n::error::b"])
def test_an_unknown_mode_ends_before_anything_is_done(recorded, mode):
    job = recorded()

    done = job.run_action(ROOT, mode=mode)

    assert done.step("install").code == 2
    modes = "expected measure, before, report, accept, history, plan or merge"
    assert modes in done.step("install").log
    assert "b" not in [said for _, said in job.annotations]
    assert not list(Path(job.machine["RECORD"]).parent.glob("record*"))


@pytest.mark.parametrize(
    ("mode", "command", "inputs"),
    [
        ("measure", "check", {"suite": "s", "processes": "3", "against": "main", "traces": "t"}),
        ("measure", "check", {"fail_on": "never"}),
        ("measure", "accept", {}),
        ("report", "publish", {"check": "true", "key": "k", "comment": "false"}),
        ("report", "publish", {"skip_if_unchanged": "true", "require_report": "true"}),
        ("report", "rejudge", {"run_id": "1", "suite": "s", "check": "true"}),
        ("report", "rejudge", {"run_id": "1", "comment": "false", "require_report": "true"}),
        ("report", "rejudge", {"run_id": "1", "skip_if_unchanged": "true", "key": "k"}),
        ("accept", "accept", {"append": "true"}),
        ("accept", "accept-comment", {}),
    ],
)
def test_the_options_are_those_that_the_command_knows(recorded, mode, command, inputs):
    job = recorded(event_name="issue_comment" if command == "accept-comment" else "pull_request")
    job.run_action(ROOT, mode=mode, **inputs)
    asked = [one.partition("=")[0] for one in called(job, command)[1:] if one.startswith("--")]

    help_text = subprocess.run(
        [sys.executable, "-m", "ci_perf", *FULL.get(command, [command]), "--help"],
        capture_output=True,
        check=True,
        cwd=ROOT,
        text=True,
    ).stdout

    assert [one for one in asked if one != "--" and not re.search(rf"{one}\b", help_text)] == []


def test_inputs_stay_data_whatever_they_hold(recorded):
    hostile = '$(touch pwned) `touch pwned` "; touch pwned; #'
    job = recorded()
    job.run_action(ROOT, suite=hostile, device="--help", processes="3", report="the report.md")
    job.run_action(ROOT, mode="report", comparison=f"--check\n{hostile}", key=hostile)
    job.run_action(ROOT, mode="accept", run="--append", reason=hostile)

    assert f"--suite={hostile}" in called(job, "check")
    assert "--device=--help" in called(job, "check")
    assert called(job, "publish")[-4:] == [f"--key={hostile}", "--", "--check", hostile]
    assert called(job, "accept")[-3:] == [f"--reason={hostile}", "--", "--append"]
    written = sorted(path.name for path in job.workspace.iterdir())
    assert written == ["comparison.json", "the report.md"]


def test_a_line_break_in_an_input_makes_no_second_output(recorded):
    done = recorded().run_action(ROOT, report="a.md\noutcome=success\nverdict=x")

    assert done.outputs["report"] == "a.md\noutcome=success\nverdict=x"
    assert done.outputs["verdict"] == "regressed"


# --- installing


def test_to_measure_the_action_installs_itself_beside_the_torch_that_is_there(bare, tmp_path):
    done = bare.run_action(ROOT, python=str(tmp_path / "python"))

    check, *installing = (tmp_path / "record").read_text().splitlines()
    assert check.startswith("-c import sys")
    assert installing == [
        f"-P -m venv --clear --system-site-packages {bare.temp}/ci-perf",
        f"-P -m pip install --quiet --disable-pip-version-check {ROOT}[measure]",
    ]
    assert (done.step("measure").code, done.outputs["outcome"]) == (1, "failure")


def test_what_the_workloads_import_is_installed_beside_it(bare, tmp_path):
    bare.run_action(
        ROOT, python=str(tmp_path / "python"), install="--requirement=a b.txt\n\neinops"
    )

    installing = (tmp_path / "record").read_text().splitlines()[-1]
    assert installing.endswith(f" {ROOT}[measure] --requirement=a b.txt einops")


def test_to_report_it_installs_only_what_it_knows_by_hash_and_nothing_that_measures(bare, tmp_path):
    bare.run_action(ROOT, mode="report", python=str(tmp_path / "python"))

    pip = "-P -m pip install --quiet --disable-pip-version-check"
    locked = f"--only-binary :all: --requirement {ROOT}/requirements/report.txt"
    assert (tmp_path / "record").read_text().splitlines()[1:] == [
        f"-P -m venv --clear {bare.temp}/ci-perf",
        f"{pip} --require-hashes {locked}",
        f"{pip} --no-deps --no-index --no-build-isolation {ROOT}",
    ]


def test_an_installation_that_fails_fails_the_job_and_measures_nothing(job):
    job = job(ci_perf=None, PATH="/usr/bin:/bin")

    done = job.run_action(ROOT, python="/no/such/python")

    known = [step.code for step in done.steps if step.code is not None]
    assert known == [127, 0]  # the installation, and what says that there is no verdict
    assert "came to no verdict" in job.summaries[0]
    assert done.conclusion == "failure"


def test_an_old_python_is_named_with_the_input_that_names_another_one(job, tmp_path):
    old = tmp_path / "python"
    old.write_text(
        f'#!/bin/sh\nexec "{sys.executable}" -c "import sys; '
        'sys.version_info = (3, 10); sys.version = \'3.10.1 (x)\'; exec(sys.argv[1])" "$2"\n'
    )
    old.chmod(0o755)
    job = job(ci_perf=None, PATH="/usr/bin:/bin")

    done = job.run_action(ROOT, python=str(old))

    assert "3.11 or newer, found 3.10.1" in done.step("install").log
    assert "input `python`" in done.step("install").log
