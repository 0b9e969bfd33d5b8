"""The job before the measurement: each way in which one can die leaves the required check red."""

import itertools
import json
import os

import pytest

from tests.integration.actions.recording import called
from tests.integration.actions.stage import PULL, ROOT
from tests.integration.actions.test_rollout import REQUIRED, run_step
from tests.integration.actions.test_workflows import SAME, a_pull, workflow
from tests.projects import FAST

RESULTS = ("success", "failure", "cancelled", "skipped")
ANSWERS = ("same", "launch", "", "other")
JOBS = workflow("check")["jobs"]
# Of screen, its answer, and measure: in what the report may be green.
GREEN = {("success", "same", "skipped"), ("success", "launch", "success")}
# What the screen makes of its answers; a job that is cancelled after its answer has it, too.
ENDS = [
    each
    for each in itertools.product(RESULTS, ANSWERS, RESULTS)
    if each[0] != "skipped"  # then nobody has asked for a screen
]


def contexts_of(screen, answer, measure, **more):
    event = a_pull(SAME, action="opened")
    return {
        "github": {"repository": SAME, "event_name": "pull_request", "event": event},
        "inputs": {"screen": True, "artifact": "ci-perf"},
        "needs": {
            "count-checks": {"result": "success", "outputs": {}},
            "screen": {"result": screen, "outputs": {"answer": answer}},
            "measure": {"result": measure, "outputs": {}},
        },
        **more,
    }


def describe_status(*results):
    return next((each for each in ("cancelled", "failure") if each in results), "success")


@pytest.mark.parametrize("ended", ENDS, ids="-".join)
def test_the_report_runs_and_is_red_unless_each_job_has_done_its_part(expressions, ended):
    job, contexts = JOBS["report"], contexts_of(*ended)
    *publish, expect = job["steps"]
    status = describe_status(ended[0], ended[2])

    assert expressions.holds(job["if"], contexts, status)
    assert expressions.holds(expect["if"], contexts, status)
    is_red = run_step(expressions, expect, contexts).returncode != 0
    # After a measurement that has failed, the verdict is what the report says.
    assert is_red is (ended not in GREEN | {("success", "launch", "failure")})
    assert not any("if" in step for step in publish)


@pytest.mark.parametrize("status", ["success", "failure", "cancelled"])
def test_a_machine_is_asked_unless_the_answer_is_same(expressions, status):
    for screen, answer in itertools.product(RESULTS, ANSWERS):
        starts = expressions.holds(JOBS["measure"]["if"], contexts_of(screen, answer, ""), status)
        assert starts is (answer != "same" and status != "cancelled"), (screen, answer)


@pytest.mark.parametrize("ended", ENDS, ids="-".join)
@pytest.mark.parametrize("report", RESULTS)
def test_the_job_to_require_is_green_only_for_an_answer(expressions, ended, report):
    screen, answer, measure = ended
    output = workflow("check")["on"]["workflow_call"]["outputs"]["measured"]["value"]
    jobs = {
        "screen": {"result": screen, "outputs": {"answer": answer}},
        "measure": {"result": measure},
        "report": {"result": report},
    }
    measured = expressions.filled(output, {"jobs": jobs})
    contexts = {"needs": {"check": {"result": "success", "outputs": {"measured": measured}}}}

    done = run_step(expressions, REQUIRED["measured"]["steps"][0], contexts)

    is_green = screen == "success" and (
        report == "success" if answer == "same" else measure == "success"
    )
    assert (done.returncode == 0) is is_green, measured


def test_without_a_screen_the_job_to_require_is_that_of_the_measurement(expressions):
    output = workflow("check")["on"]["workflow_call"]["outputs"]["measured"]["value"]
    for measure in RESULTS:
        jobs = {
            "screen": {"result": "skipped", "outputs": {}},
            "measure": {"result": measure},
            "report": {"result": "success"},
        }
        assert expressions.filled(output, {"jobs": jobs}) == measure


def test_a_screen_is_asked_for_by_an_input_and_never_of_a_fork(expressions):
    condition = JOBS["screen"]["if"]
    asked = contexts_of("", "", "")

    assert expressions.holds(condition, asked, "success")
    assert not expressions.holds(condition, asked | {"inputs": {"screen": False}}, "success")
    fork = a_pull("mallory/model", action="opened")
    assert not expressions.holds(
        condition, asked | {"github": asked["github"] | {"event": fork}}, "success"
    )
    assert workflow("check")["on"]["workflow_call"]["inputs"]["screen"]["default"] is False


def test_the_variables_that_the_screen_is_told_are_those_of_the_measured_code(
    expressions, tmp_path
):
    fix = next(
        step for step in JOBS["measure"]["steps"] if "Fix the variables" in step.get("name", "")
    )
    told = next(step for step in JOBS["screen"]["steps"] if step.get("uses") == "$/screen")
    contexts = {
        "inputs": {
            "variables": "FLAG=1\nHOME=/home/$(id)",
            "suite": "",
            "workloads": "w",
            "baselines": "b",
        }
    }

    done = run_step(expressions, fix, contexts, GITHUB_ENV=str(tmp_path / "env"))

    assert done.returncode == 0, done.stderr
    given = (tmp_path / "env").read_text()
    assert given.strip() == expressions.filled(told["with"]["variables"], contexts)
    assert JOBS["measure"]["steps"].index(fix) < next(
        place for place, step in enumerate(JOBS["measure"]["steps"]) if step.get("uses") == "$/"
    )


def test_the_step_hands_its_inputs_on_as_data(recorded):
    job, variables = recorded(), 'A=1\nB=$(id) "x"'

    job.run_action(ROOT / "screen", suite="all", machine="h", device="cuda", variables=variables)

    # The recording has a line for each line of an argument.
    assert called(job, "screen")[1:] == [
        *("--suite=all", "--workloads=workloads", "--baselines=baselines"),
        *("--machine=h", "--device=cuda", "--env=A=1", 'B=$(id) "x"', "--against="),
        f"--comparison={job.temp}/comparison.json",
    ]


@pytest.mark.parametrize("code", [1, 2, 137])
def test_a_screen_that_dies_has_not_answered(recorded, code):
    done = recorded(ends_with=code).run_action(ROOT / "screen")

    assert (done.conclusion, done.outputs) == ("failure", {"answer": ""})


def tell_variables(stage):
    """Tell what the launches of the stage have read, as a workflow that fixes it."""
    (record,) = stage.git.root.glob("baselines/*/smoke/programs/nap.json")
    names = json.loads(record.read_text())["variables"].keys() & os.environ.keys()
    return "\n".join(f"{name}={os.environ[name]}" for name in sorted(names))


def test_a_document_is_reported_without_a_machine_and_code_asks_for_one(stage):
    stage.git.commit(product_py="SECONDS = 0.0120\n")
    event, variables = stage.pull_request(), tell_variables(stage)

    job = stage.job(event)
    done = job.run_action(ROOT / "screen", variables=variables)

    assert done.outputs == {"answer": "launch"}, done.step("screen").log
    assert "product.py differs" in job.summaries[0]
    assert not (job.temp / "comparison.json").exists()

    stage.git.commit(product_py=FAST, README_md="A product.\n")
    event = stage.pull_request("synchronize")
    job = stage.job(event)
    done = job.run_action(ROOT / "screen", variables=variables)
    stage.results = job.temp
    reporting, reported = stage.reported(event)

    assert done.outputs == {"answer": "same"}, done.step("screen").log
    (comment,) = stage.github.comments(PULL)
    assert "Same program: 1 of 1 workload was not launched" in comment.body
    assert "no machine was asked" in comment.body
    assert reported.outputs["exit-code"] == "0"
    assert reported.conclusion == "success"
    assert "Same program" in reporting.summaries[0]
