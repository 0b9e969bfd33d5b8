"""Each step of our Actions, executed: what ci-perf is asked, and what the job learns of its end."""

import sys
from pathlib import Path
from typing import Any

import click
import pytest

from ci_perf.cli.main import cli
from tests.integration.actions.recording import TOKEN, called
from tests.integration.actions.stage import BASELINE, REPORT, ROOT

COUNT = ROOT / "count-checks"


def ran(done):
    return [step.name for step in done.steps if step.outcome != "skipped"]


# --- measure


def test_measuring_is_what_happens_without_inputs(recorded):
    job = recorded()

    done = job.run_action(ROOT)

    results = f"{job.temp}/ci-perf-results"
    assert ran(done) == [
        "Find or install ci-perf",
        "Measure and judge",
        "Show the report",
        "Draw the page",
        "Offer the numbers as baselines",
    ]
    assert called(job, "check") == [
        "check",
        "--workloads=workloads",
        "--baselines=baselines",
        "--device=auto",
        f"--output={results}/run.json",
        f"--comparison={results}/comparison.json",
        f"--report={results}/report.md",
    ]
    assert called(job, "export")[1:] == [
        *("--format=html", "--baselines=baselines"),
        *(f"--run={results}/run.json", f"--output={results}/page.html"),
        *("--", f"{results}/comparison.json"),
    ]
    assert called(job, "publish")[1:] == ["--no-comment", "--", f"{results}/comparison.json"]
    assert called(job, "accept")[3:] == [
        f"--patch={results}/baseline.patch",
        "--reason=As measured by workflow run 42",
        *("--", f"{results}/run.json"),
    ]
    assert list(job.workspace.iterdir()) == []


def test_watching_is_in_the_place_of_a_check(recorded):
    job = recorded()

    done = job.run_action(ROOT, verb="watch", budget="2h", suite="smoke", container="memory=4g")

    assert called(job, "watch")[1:] == [
        *("--workloads=workloads", "--baselines=baselines", "--device=auto", "--suite=smoke"),
        *("--container=memory=4g", "--budget=2h", "--output=watch.json"),
        *(f"--report={job.temp}/ci-perf-results/answer.md", "--format=markdown"),
    ]
    assert ran(done) == ["Find or install ci-perf", "Measure and judge", "Show the report"]
    assert job.summaries == ["# slower\n"]
    assert [file.name for file in job.workspace.iterdir()] == ["watch.json"]


@pytest.mark.parametrize(
    ("verb", "names", "words"),
    [
        ("run", "mlp cnn", ["mlp", "cnn"]),
        ("run", "* $(touch pwned) `x` 'a b'", ["*", "$(touch", "pwned)", "`x`", "'a", "b'"]),
        ("explain", "mlp", ["mlp"]),
        ("bisect", "v1.4 mlp", ["v1.4", "HEAD", "mlp"]),
    ],
)
def test_what_a_comment_orders_reaches_the_command_word_by_word(recorded, verb, names, words):
    job = recorded(event_name="workflow_dispatch")

    done = job.run_action(ROOT, verb=verb, names=names, against="b" * 40)

    asked = called(job, "check" if verb == "run" else verb)
    assert asked[-len(words) :] == words
    assert asked[-len(words) - 1].startswith("--")
    assert done.conclusion == "success"
    assert job.summaries == ["# shown\n" if verb == "run" else "# slower\n"]
    assert list(job.workspace.iterdir()) == []


def test_a_name_that_is_an_option_is_refused(recorded):
    job = recorded()

    done = job.run_action(ROOT, names="mlp --force")

    assert done.step("measure").code == 2
    assert "expected names, found '--force'" in done.step("measure").log


def test_a_verb_that_nobody_knows_is_refused(recorded):
    job = recorded()

    done = job.run_action(ROOT, verb="wacth")

    assert done.step("measure").code == 2
    assert "verb: expected run, explain, bisect or watch, found 'wacth'" in done.step("measure").log


@pytest.mark.parametrize("code", [0, 1, 3, 130])
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
        "results": f"{job.temp}/ci-perf-results",
        "traces": f"{job.temp}/ci-perf-traces",
    }


def test_on_a_pull_request_base_and_head_are_launched_in_turns(recorded):
    job = recorded(event={"pull_request": {"number": 7, "base": {"sha": "a1b2c3d4"}}})
    job.run_action(ROOT)

    # Nobody has counted earlier checks: the report says so.
    assert called(job, "check")[-3:] == [
        *("--against=a1b2c3d4", "--budget=20m", "--checks-before=unknown")
    ]


def test_in_a_merge_queue_what_is_merged_so_far_is_the_base(recorded):
    job = recorded(event={"merge_group": {"head_sha": "e5f6", "base_sha": "a1b2c3d4"}})
    job.run_action(ROOT)

    assert called(job, "check")[-2:] == ["--against=a1b2c3d4", "--budget=20m"]


def test_what_came_before_is_handed_on_where_it_is_there(recorded):
    job = recorded(event={"pull_request": {"number": 7, "base": {"sha": "a1b2c3d4"}}})
    (job.workspace / "first.json").write_text("{}")
    job.run_action(ROOT, checks_before="2", traces="true", add="first.json\n\nmissing.json\n")

    assert called(job, "check")[-3:] == [
        f"--traces={job.temp}/ci-perf-traces",
        *("--checks-before=2", "--add=first.json"),
    ]


def test_a_check_that_ends_at_the_first_loss_is_asked_to(recorded):
    job = recorded(event={"pull_request": {"base": {"sha": "a1b2c3d4"}}})
    job.run_action(ROOT, fail_fast="true")

    assert "--fail-fast" in called(job, "check")


def test_nobody_has_to_launch_the_base(recorded):
    job = recorded(event={"pull_request": {"base": {"sha": "a1b2c3d4"}}})
    job.run_action(ROOT, against="none", all="true", wait="5m", fail_on="likely", traces="true")

    words = called(job, "check")
    assert {"--all", "--wait=5m", "--fail-on=likely"} <= set(words)
    assert not [word for word in words if word.startswith(("--against", "--traces"))]


def test_results_of_an_earlier_step_are_not_shown_as_this_ones(recorded):
    job = recorded(ends_with=3, with_results=False)
    results = job.temp / "ci-perf-results"
    results.mkdir()
    (results / "comparison.json").write_text("all is well\n")

    done = job.run_action(ROOT)

    assert list(results.iterdir()) == []
    assert "came to no verdict" in job.summaries[0]
    assert (done.outputs["exit-code"], done.outputs["outcome"]) == ("", "failure")


# --- with a token


def test_earlier_checks_are_counted_before_anything_is_measured(recorded):
    for inputs, words in ({"key": "standard"}, ["--key=standard"]), ({}, []):
        job = recorded()
        done = job.run_action(COUNT, **inputs)

        assert ran(done) == ["Find or install ci-perf", "Count earlier checks"]
        assert called(job, "count-checks") == ["count-checks", *words]


def test_reporting_publishes_what_was_measured_elsewhere(recorded):
    job = recorded(ends_with=1)

    done = job.run_action(
        REPORT, comparison="h200.json\n\nthe l4.json\n", options="--check\n\n--key=nightly\n"
    )

    assert ran(done) == ["Find or install ci-perf", "Report"]
    assert called(job, "publish") == [
        *("publish", "--baselines=baselines", "--check", "--key=nightly"),
        *("--", "h200.json", "the l4.json"),
    ]
    assert (done.conclusion, done.outputs["outcome"]) == ("failure", "failure")
    assert done.outputs["exit-code"] == "1"


def test_the_numbers_of_another_run_are_fetched_by_its_id(recorded):
    job = recorded()
    job.run_action(REPORT, run_id="42", options="--check", artifact="h200\nl4\n", suite="standard")

    assert called(job, "rejudge") == [
        *("rejudge", "--run-id=42", "--workflow=.github/workflows/perf.yml"),
        *("--workloads=workloads", "--baselines=baselines", "--check"),
        *("--artifact=h200", "--artifact=l4", "--suite=standard"),
    ]


def test_a_baseline_is_made_of_a_file_or_for_a_comment_and_its_history_is_drawn(recorded):
    for mode, command, words in (
        ("accept", "accept", ["--append", "--reason=Nightly", "--", "run.json"]),
        ("comment", "answer-comment", ["--artifact=ci-perf"]),
        ("history", "history", ["--format=html", "--output=site"]),
    ):
        job = recorded(event_name="issue_comment" if mode == "comment" else "schedule")
        done = job.run_action(BASELINE, mode=mode, append="true", reason="Nightly")

        assert done.conclusion == "success"
        asked = [word for word in called(job, command)[1:] if not word.startswith("--workflow=")]
        assert asked == ["--workloads=workloads", "--baselines=baselines", *words]


def test_the_issues_of_several_watches_are_kept_together(recorded):
    job = recorded()
    job.run_action(BASELINE, mode="issue", watch="a.json\nthe b.json\n")

    assert called(job, "issue") == ["issue", "--", "a.json", "the b.json"]


@pytest.mark.parametrize(
    ("action", "inputs", "step"),
    [
        (ROOT, {}, None),
        (COUNT, {}, "Count earlier checks"),
        (REPORT, {}, "Report"),
        (BASELINE, {"mode": "comment"}, "Answer the comment"),
        (BASELINE, {"mode": "accept"}, None),
        (BASELINE, {"mode": "history"}, None),
        (BASELINE, {"mode": "issue"}, "Keep the issues"),
    ],
)
def test_the_token_is_given_to_the_step_that_asks_github_and_to_no_other(
    recorded, action, inputs, step
):
    done = recorded().run_action(action, **inputs)

    with_token = [one.name for one in done.steps if TOKEN in str(one.environment)]
    assert with_token == ([step] if step else [])


# --- what holds for all


@pytest.mark.parametrize("mode", ["", "a\n::error::b"])
def test_an_unknown_mode_ends_before_anything_is_done(recorded, mode):
    job = recorded()

    done = job.run_action(BASELINE, mode=mode)

    assert done.step("install").code == 2
    assert "expected accept, comment, history or issue" in done.step("install").log
    assert "b" not in [said for _, said in job.annotations]
    assert not list(Path(job.machine["RECORD"]).parent.glob("record*"))


@pytest.mark.parametrize(
    ("action", "command", "inputs"),
    [
        (ROOT, ["check"], {"suite": "s", "against": "main", "traces": "true", "wait": "1m"}),
        (ROOT, ["check"], {"fail_on": "never", "runner": "docker", "container": "image=x"}),
        (ROOT, ["explain"], {"verb": "explain", "names": "mlp", "against": "main"}),
        (ROOT, ["bisect"], {"verb": "bisect", "names": "v1.4 mlp", "suite": "s"}),
        (COUNT, ["github", "count-checks"], {"key": "k"}),
        (REPORT, ["github", "publish"], {}),
        (REPORT, ["github", "rejudge"], {"run_id": "1", "suite": "s"}),
        (BASELINE, ["accept"], {"append": "true"}),
        (BASELINE, ["github", "answer-comment"], {"mode": "comment", "asked": "asked.yml"}),
        (BASELINE, ["history"], {"mode": "history"}),
        (BASELINE, ["github", "issue"], {"mode": "issue"}),
    ],
)
def test_the_options_are_those_that_the_command_knows(recorded, action, command, inputs):
    job = recorded()
    job.run_action(action, **inputs)
    asked = [one.partition("=")[0] for one in called(job, command[-1]) if one.startswith("--")]

    known: Any = cli
    for word in command:
        known = known.get_command(click.Context(known), word)
    options = {"--", *(name for each in known.params for name in each.opts)}

    assert asked
    assert set(asked) <= options


def test_inputs_stay_data_whatever_they_hold(recorded):
    hostile = '$(touch pwned) `touch pwned` "; touch pwned; #'
    job = recorded()
    job.run_action(ROOT, suite=hostile, device="--help")
    job.run_action(REPORT, comparison=f"--check\n{hostile}", options=f"--key={hostile}")
    job.run_action(BASELINE, run="--append", reason=hostile)

    assert f"--suite={hostile}" in called(job, "check")
    assert "--device=--help" in called(job, "check")
    assert called(job, "publish")[-4:] == [f"--key={hostile}", "--", "--check", hostile]
    assert called(job, "accept")[-3:] == [f"--reason={hostile}", "--", "--append"]
    assert list(job.workspace.iterdir()) == []


# --- installing

PIP = "-P -m pip install --quiet --disable-pip-version-check"


def installed(tmp_path):
    """What the Python that only notes was asked, without the question for its version."""
    return (tmp_path / "record").read_text().splitlines()[1:]


def test_to_measure_the_action_installs_itself_beside_the_torch_that_is_there(bare, tmp_path):
    install = "--requirement=a b.txt\n\neinops"
    done = bare.run_action(ROOT, python=str(tmp_path / "python"), install=install)

    assert installed(tmp_path) == [
        f"-P -m venv --clear --system-site-packages {bare.temp}/ci-perf",
        f"{PIP} {ROOT}[measure] --requirement=a b.txt einops",
    ]
    assert (done.step("measure").code, done.outputs["outcome"]) == (1, "failure")


@pytest.mark.parametrize(
    ("action", "inputs"),
    [(COUNT, {}), (REPORT, {}), (BASELINE, {}), (BASELINE, {"mode": "comment"})],
)
def test_beside_a_token_it_installs_only_what_it_knows_by_hash(bare, tmp_path, action, inputs):
    bare.run_action(action, python=str(tmp_path / "python"), **inputs)

    locked = f"--only-binary :all: --requirement {ROOT}/requirements/report.txt"
    assert installed(tmp_path) == [
        f"-P -m venv --clear {bare.temp}/ci-perf",
        f"{PIP} --require-hashes {locked}",
        f"{PIP} --no-deps --no-index --no-build-isolation {ROOT}",
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
