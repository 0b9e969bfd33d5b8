"""docs/rollout.md: each workflow by GitHub's own rules, each script and formula for real."""

import json
import math
import os
import re
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from ci_perf.launch import child_environment
from ci_perf.model.comparison import Verdict
from ci_perf.model.suite import PlannedWorkload, Protocol
from ci_perf.report import headline
from ci_perf.system import files
from tests import repositories
from tests.actions.runner import SHELLS
from tests.comparisons import a_change, a_comparison
from tests.integration.actions.test_workflows import FORK, SAME, a_pull, ended, workflow
from tests.integration.github.stage import fine, worse

ROOT = Path(__file__).parents[3]
GUIDE = (ROOT / "docs/rollout.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(yaml|text)\n(.*?)^```", GUIDE, re.MULTILINE | re.DOTALL)
REQUIRED, LABELLED, MACHINES, NOTIFY = (
    YAML(typ="safe").load(text) for language, text in BLOCKS if language == "yaml"
)
(OWNERS,) = (text for language, text in BLOCKS if language == "text")


def a_job_of(event, **contexts):
    """What the conditions of a pull request's job see."""
    github = {"repository": SAME, "event_name": "pull_request", "event": event}
    return {"github": github, **contexts}


def run_step(expressions, step, contexts, **more):
    """Run the script of a step as a runner does."""
    values = {key: expressions.filled(value, contexts) for key, value in step["env"].items()}
    return subprocess.run(
        [*SHELLS["bash"], "-c", step["run"]],
        env={"PATH": os.environ["PATH"], **values, **more},
        check=False,
        capture_output=True,
        text=True,
    )


# --- the job to require


@pytest.mark.parametrize(
    ("measured", "code"),
    [
        (["success"], 0),
        (["success", "success"], 0),
        *(([result], 1) for result in ("skipped", "failure", "cancelled", "", None)),
        *((["success", result], 1) for result in ("skipped", "failure", "", None)),
    ],
)
def test_the_job_to_require_is_red_for_what_nobody_has_measured(expressions, measured, code):
    """A fork is left out: all jobs of check.yml are skipped, which passes where it is required."""
    job = REQUIRED["measured"]
    needs = {
        f"check{i}": {"result": "skipped", "outputs": {} if each is None else {"measured": each}}
        for i, each in enumerate(measured)
    }
    contexts = a_job_of(a_pull(FORK, action="opened"), needs=needs)
    (step,) = job["steps"]

    assert run_step(expressions, step, contexts).returncode == code
    assert expressions.holds(job["if"], contexts, "failure")
    assert job["needs"] == ["check"] == list(workflow("perf")["jobs"])
    assert workflow("check")["on"]["workflow_call"]["outputs"].keys() == {"measured"}


def test_a_new_title_leaves_the_job_to_require_as_it_was(expressions):
    job = REQUIRED["measured"]
    contexts = a_job_of(a_pull(SAME, action="edited", changes={"title": {"from": "old"}}))

    assert not expressions.holds(job["if"], contexts, "success")
    assert expressions.filled(job["name"], contexts) == "measured (same base)"
    plain = a_job_of(a_pull(SAME, action="opened"))
    assert expressions.filled(job["name"], plain) == "measured"


def test_a_group_of_a_merge_queue_has_the_job_to_require(expressions):
    job, event = REQUIRED["measured"], {"action": "checks_requested", "merge_group": {}}
    github = {"event_name": "merge_group", "repository": SAME, "event": event}

    assert expressions.holds(job["if"], {"github": github}, "success")
    assert expressions.filled(job["name"], {"github": github}) == "measured"
    assert "merge_group" in workflow("perf")["on"]


def test_only_the_label_measures_and_each_time_that_it_is_added(expressions):
    perf = workflow("perf") | {"on": LABELLED["on"]}
    job = perf["jobs"]["check"] | LABELLED["jobs"]["check"]
    measure = workflow("check")["jobs"]["measure"]["if"]

    for label, starts in (("perf", True), ("bug", False)):
        contexts = a_job_of(
            a_pull(SAME, action="labeled", label={"name": label}),
            needs=ended("skipped", job="screen"),
        )
        assert expressions.holds(job["if"], contexts, "success") is starts
        assert expressions.holds(measure, contexts, "success")
    assert perf["on"] == {"pull_request": {"types": ["labeled"]}}


# --- runners


def test_two_kinds_of_machine_share_neither_artifact_nor_comment_nor_queue(expressions):
    check = workflow("check")
    inputs = check["on"]["workflow_call"]["inputs"]
    groups, given = set(), [job["with"] for job in MACHINES["jobs"].values()]
    for each in given:
        assert each.keys() <= inputs.keys()
        assert json.loads(each["runs-on"])
        contexts = a_job_of(a_pull(SAME, number=7), inputs=each)
        groups.add(expressions.filled(check["jobs"]["measure"]["concurrency"]["group"], contexts))
    for name in ("artifact", "key", "runs-on"):
        assert len({each[name] for each in given}) == len(given)
    assert len(groups) == len(given)
    assert f"needs: [{', '.join(MACHINES['jobs'])}]" in GUIDE


def test_a_push_replaces_the_job_of_its_pull_request_that_waits_and_no_other(expressions):
    concurrency = workflow("check")["jobs"]["measure"]["concurrency"]

    def name_group(number, sha):
        pull = {"number": number, "head": {"sha": sha}}
        contexts = a_job_of({"pull_request": pull}, inputs={"artifact": "ci-perf"})
        return expressions.filled(concurrency["group"], contexts)

    assert name_group(7, "a") == name_group(7, "b") != name_group(8, "a")
    assert concurrency["cancel-in-progress"] is False


def test_the_hours_of_a_month_are_those_of_the_formula():
    ((formula, hours),) = re.findall(r"`([\d.* /]+)` = (\d+) hours", GUIDE)
    *counts, seconds, hour = (float(number) for number in re.findall(r"[\d.]+", formula))

    assert round(math.prod([*counts, seconds]) / hour) == int(hours)
    assert hour == 3600
    assert f"A launch takes {seconds} s" in (ROOT / "docs/gpu-day.md").read_text(encoding="utf-8")


def test_a_workload_finds_data_and_weights_on_the_disk_and_asks_no_hub():
    workload = PlannedWorkload(
        id="it", file="it.py", description="", parameters={}, protocol=Protocol()
    )
    runner = {"CI_PERF_DATA_DIR": "/data", "HF_HOME": "/weights"}

    given = child_environment.build_task_environment(runner, workload, Path("cache"))

    assert runner.items() <= given.items()
    assert given["HF_HUB_OFFLINE"] == "1"
    assert all(f"`{name}`" in GUIDE for name in (*runner, "HF_HUB_OFFLINE=1"))


# --- tell a channel


@pytest.fixture
def channel():
    """A server that remembers what was posted."""
    posted = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            posted.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_):
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/", posted
        server.shutdown()


@pytest.mark.parametrize("is_worse", [True, False])
def test_a_channel_hears_what_is_worse_and_nothing_else(
    expressions, channel, tmp_path, monkeypatch, is_worse
):
    address, posted = channel
    job = NOTIFY["notify"]
    github = {"server_url": "https://github.com", "repository": SAME, "run_id": "42"}
    contexts = {"github": github, "secrets": {"SLACK_WEBHOOK": address}}
    files.write(tmp_path / "comparison.json", worse() if is_worse else fine())
    monkeypatch.chdir(tmp_path)

    done = run_step(expressions, job["steps"][-1], contexts)

    said = f"regressed: mlp step_time_s https://github.com/{SAME}/actions/runs/42"
    assert done.returncode == 0, done.stderr
    assert posted == ([{"text": said}] if is_worse else [])
    assert job["steps"][0]["uses"] in (ROOT / ".github/workflows/check.yml").read_text()


@pytest.mark.parametrize(
    ("result", "starts"), [("success", True), ("failure", True), ("skipped", False)]
)
def test_a_channel_hears_of_what_was_measured_alone(expressions, result, starts):
    contexts = a_job_of(a_pull(FORK), needs={"check": {"result": result}})

    assert expressions.holds(NOTIFY["notify"]["if"], contexts, "failure") is starts


# --- exceptions and rules


def test_the_variable_of_the_pause_is_read_by_each_workflow_that_judges(expressions):
    ((name, date),) = re.findall(r"gh variable set (\w+) --body ([\d-]+)", GUIDE)
    (check,) = [
        step["with"]
        for step in workflow("check")["jobs"]["measure"]["steps"]
        if step.get("uses") == "$/"
    ]
    (report,) = [
        step["with"]
        for step in workflow("report")["jobs"]["report"]["steps"]
        if "/report@" in step["uses"]
    ]
    (merge,) = [
        step["env"]
        for step in workflow("matrix")["jobs"]["merge"]["steps"]
        if step.get("name") == "Merge and judge"
    ]

    for given, text in ((name, date), ("OTHER", "")):
        contexts = {"vars": {given: date}}
        assert expressions.filled(check["paused-until"], contexts) == text
        assert expressions.filled(merge["PAUSED_UNTIL"], contexts) == text
        assert expressions.filled(report["options"], contexts) == f"--paused-until={text}"


def test_a_paused_report_begins_as_the_guide_says():
    (example,) = re.findall(r"\*(⏸️ Paused\s[^*]+)\*", GUIDE)
    (end,) = re.findall(r"[\d-]{10}", example)
    row = a_change("train", Verdict.REGRESSED, ratio=1.248)
    paused = a_comparison(row, paused_until=end)

    said = headline.render(paused).replace("\N{NO-BREAK SPACE}", " ")
    assert said.replace("`", "") == " ".join(example.split())


def test_the_owners_of_the_rules_are_asked_for_exactly_these(tmp_path):
    """CODEOWNERS has the patterns of .gitignore."""
    git = repositories.init(tmp_path / "repository")
    patterns = [line.split()[0] for line in OWNERS.splitlines()]
    (git.root / ".git/info/exclude").write_text("\n".join(patterns))
    rules = [".github/workflows/perf.yml", "baselines/cpu/smoke/a.json", "workloads/suite.toml"]
    others = ["src/model.py", "workloads/train.py", "docs/baselines/a.json"]

    asked = subprocess.run(
        ["git", "check-ignore", *rules, *others],
        cwd=git.root,
        capture_output=True,
        text=True,
        check=False,
    )

    assert asked.stdout.split() == rules
