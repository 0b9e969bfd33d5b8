"""action.yml and all workflows: valid, and safe by construction."""

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from tests.actions import node

ROOT = Path(__file__).parents[3]
ACTION = ROOT / "action.yml"
EXAMPLES = sorted((ROOT / "examples/workflows").glob("*.yml"))
WORKFLOWS = [*sorted((ROOT / ".github/workflows").glob("*.yml")), *EXAMPLES]
MEASURE, MEASURE_ON_A_CPU = (
    ROOT / f"examples/workflows/measure{kind}.yml" for kind in ("", "-cpu")
)
LOCK = ROOT / "requirements/report.txt"
# Of another repository by its commit; our own Action is that of the checkout.
PINNED = re.compile(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+\b.*|\./ # .+")
BIN = Path(sys.executable).parent
# Permissions that let a job change something.
WRITES = {"write", "write-all"}

by_name = pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)


def load(path):
    return YAML(typ="safe").load(path.read_text())


def steps_of(path):
    document = load(path)
    if "runs" in document:
        return document["runs"]["steps"]
    return [step for job in document["jobs"].values() for step in job["steps"]]


def jobs_of(*paths):
    return [job for path in paths for job in load(path)["jobs"].values()]


# --- other people's linters


@pytest.mark.parametrize(
    ("schema", "paths"),
    [
        ("vendor.github-actions", [ACTION]),
        ("vendor.github-workflows", WORKFLOWS),
        ("vendor.github-issue-forms", sorted((ROOT / ".github/ISSUE_TEMPLATE").glob("*.yml"))),
    ],
)
def test_the_files_follow_githubs_schemas(schema, paths):
    command = [
        sys.executable,
        "-m",
        "check_jsonschema",
        "--builtin-schema",
        schema,
        *map(str, paths),
    ]
    done = subprocess.run(command, capture_output=True, check=False, text=True)

    assert done.returncode == 0, done.stdout + done.stderr


def test_zizmor_finds_nothing_as_an_auditor():
    command = [str(BIN / "zizmor"), "--offline", "--no-progress", "--persona=auditor"]
    done = subprocess.run(
        [*command, ACTION, *WORKFLOWS], capture_output=True, check=False, text=True
    )

    assert done.returncode == 0, done.stdout + done.stderr


def test_everything_that_zizmor_is_told_to_overlook_is_explained():
    ignored = [
        re.findall(r"# zizmor: ignore(.*)", path.read_text()) for path in [ACTION, *WORKFLOWS]
    ]

    assert all(re.fullmatch(r"\[[\w-]+\] \S.{5,}", one) for found in ignored for one in found)


def validated(*paths):
    command = ["node", node.HERE / "validate.mjs", *paths]
    return json.loads(subprocess.run(command, capture_output=True, check=True, text=True).stdout)


def test_githubs_language_service_finds_nothing():
    node.require()

    assert validated(ACTION, *WORKFLOWS) == []


def test_githubs_language_service_would_find_something(tmp_path):
    node.require()
    (tmp_path / "action.yml").write_text(ACTION.read_text().replace("shell: bash", "shel: bash", 1))
    (tmp_path / "perf.yml").write_text(MEASURE.read_text().replace("github.event.action", "gihtub"))

    found = validated(tmp_path / "action.yml", tmp_path / "perf.yml")

    assert {Path(one["file"]).name for one in found} == {"action.yml", "perf.yml"}


# --- scripts


@pytest.mark.parametrize("path", [ACTION, *WORKFLOWS], ids=lambda path: path.name)
def test_no_script_is_put_together_from_expressions(path):
    scripts = [step["run"] for step in steps_of(path) if "run" in step]

    assert not [script for script in scripts if "${{" in script]


def test_the_action_uses_no_other_action():
    assert not [step for step in steps_of(ACTION) if "uses" in step]


def test_each_input_is_used_and_each_used_input_is_declared():
    used = set(re.findall(r"inputs\.([\w-]+)", ACTION.read_text()))

    assert used == set(load(ACTION)["inputs"])


def test_each_variable_of_a_step_is_used_and_each_used_one_is_given():
    for step in steps_of(ACTION):
        used = set(re.findall(r"\b(?:INPUT_\w+|CI_PERF)\b", step["run"]))

        assert used == {name for name in step["env"] if name != "GITHUB_TOKEN"}, step["name"]


def test_a_script_that_starts_ci_perf_becomes_it_and_hands_nothing_to_a_pipe():
    scripts = [step["run"] for step in steps_of(ACTION) if '"$CI_PERF"' in step["run"]]

    assert len(scripts) == 9
    for script in scripts:
        calls = re.findall(r"^.*\"\$CI_PERF\".*$", script, re.MULTILINE)
        assert all(call.strip().startswith('exec "$CI_PERF"') for call in calls)
        assert script.rpartition("\nexec ")[1] or script.startswith("exec ")
        assert not re.search(r"[^|]\|[^|]", script)


def test_only_what_posts_is_given_a_token():
    given = [step["id"] for step in steps_of(ACTION) if "token" in str(step["env"]).lower()]

    assert given == ["before", "report", "accept"]


def test_no_python_of_the_action_looks_for_modules_in_the_workspace():
    install = steps_of(ACTION)[0]["run"]
    started = re.findall(r"/bin/python\"? (.*)|\$INPUT_PYTHON\" (.*)", install)

    assert len(started) == 6
    assert all((one or other).startswith(("-P ", "-c 'import sys;")) for one, other in started)


# --- workflows


@by_name
def test_every_action_is_pinned_by_commit_with_its_version(path):
    uses = re.findall(r"uses: (.+)", path.read_text())

    assert uses
    assert all(PINNED.fullmatch(use) for use in uses)


def test_all_workflows_for_users_use_the_same_versions_of_an_action():
    text = "".join(path.read_text() for path in EXAMPLES)
    uses = {use.partition("@")[0]: set() for use in re.findall(r"uses: (\S+)", text)}
    for use in re.findall(r"uses: (\S+)", text):
        uses[use.partition("@")[0]].add(use)

    assert all(len(versions) == 1 for versions in uses.values()), uses


@by_name
def test_a_workflow_may_do_nothing_but_what_a_job_says_with_a_reason(path):
    document = load(path)
    permissions = re.findall(r"^ +[\w-]+: (?:read|write)\b(.*)$", path.read_text(), re.MULTILINE)

    assert document["permissions"] in ({}, {"contents": "read"})
    assert all(re.fullmatch(r" +# \S.+", reason) for reason in permissions)


def test_whoever_runs_measured_code_may_only_read_and_keeps_no_token():
    measuring = [job for job in jobs_of(*WORKFLOWS) if "self-hosted" in job["runs-on"]]

    assert len(measuring) == 6
    for job in measuring:
        assert job["permissions"] == {"contents": "read"}
        checkouts = [step for step in job["steps"] if "checkout@" in step.get("uses", "")]
        assert [step["with"]["persist-credentials"] for step in checkouts] == [False]
        assert "github.token" not in str(job)
        assert "secrets." not in str(job)


def test_whoever_may_write_runs_on_a_hosted_runner_and_checks_out_no_pull_request():
    writing = [
        job for job in jobs_of(*EXAMPLES) if WRITES & set(job.get("permissions", {}).values())
    ]

    assert len(writing) == 7
    for job in writing:
        assert job["runs-on"] == "ubuntu-latest"
        checkouts = [step for step in job["steps"] if "checkout@" in step.get("uses", "")]
        assert not [step for step in checkouts if {"ref", "repository"} & step["with"].keys()]
    in_pull_requests = [load(path)["jobs"]["report"] for path in (MEASURE, MEASURE_ON_A_CPU)]
    assert not [job for job in in_pull_requests if "checkout@" in str(job)]


def test_whoever_deploys_pages_runs_nothing_else_and_whoever_draws_them_may_only_read():
    draw, deploy = (
        load(ROOT / "examples/workflows/history.yml")["jobs"][n] for n in ("draw", "deploy")
    )

    assert draw["permissions"] == {"contents": "read"}
    assert deploy["permissions"] == {"pages": "write", "id-token": "write"}
    (step,) = deploy["steps"]
    assert step["uses"].startswith("actions/deploy-pages@")
    assert "with" not in step


def concurrency_of(path):
    """That of the workflow, or those of its jobs, where not every event starts these."""
    places = [load(path)] if "concurrency" in load(path) else jobs_of(path)
    return [one["concurrency"] for one in places]


def test_traces_are_an_artifact_of_their_own_that_no_job_fetches():
    steps = [step for path in WORKFLOWS for step in steps_of(path)]
    kept = [step["with"] for step in steps if "traces" in str(step.get("with", {}).get("path"))]
    fetched = [step["with"] for step in steps if "download-artifact@" in step.get("uses", "")]

    assert len(kept) == 3
    for inputs in kept:
        assert inputs["name"].startswith("ci-perf-traces")
        assert (inputs["path"], inputs["retention-days"]) == ("traces/*.pt.trace.json.gz", 14)
    assert fetched
    names = [inputs.get("name") or inputs.get("pattern", "*") for inputs in fetched]
    assert not [name for name in names if "traces" in name or name.startswith("*")]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_no_workflow_cuts_off_a_measurement(path):
    assert not any(one["cancel-in-progress"] for one in concurrency_of(path))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_an_event_that_starts_no_job_pushes_none_out_that_waits(path):
    """A comment that is no order, another label, a new title: most of these are not for us."""
    events = load(path)["on"]
    is_any = "issue_comment" in events or any(one in str(events) for one in ("labeled", "edited"))

    assert ("concurrency" in load(path)) != is_any


@pytest.mark.parametrize("path", [MEASURE, MEASURE_ON_A_CPU], ids=lambda path: path.name)
def test_the_head_is_measured_and_not_its_trial_merge(path):
    """A report and an acceptance are of the commit that a person sees."""
    (checkout,) = [s for s in load(path)["jobs"]["measure"]["steps"] if "checkout@" in str(s)]

    assert "github.event.pull_request.head.sha" in checkout["with"]["ref"]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_each_pull_request_and_each_run_waits_only_for_itself(path):
    groups = [one["group"] for one in concurrency_of(path)]
    event = next(iter(load(path)[True] if True in load(path) else load(path)["on"]))

    assert all(("github.event." in group) == (event != "schedule") for group in groups)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_the_examples_use_inputs_that_exist(path):
    given = [step.get("with", {}) for step in steps_of(path) if "ci_perf@" in step.get("uses", "")]

    assert given
    assert all(one.keys() <= load(ACTION)["inputs"].keys() for one in given)


def test_no_push_starts_code_of_a_fork():
    """A push after the label is measured only after another label."""
    gated = load(ROOT / "examples/workflows/label-gated.yml")

    assert gated["on"]["pull_request"]["types"] == ["labeled"]
    checkout = gated["jobs"]["measure"]["steps"][0]
    assert checkout["with"]["ref"] == "${{ github.event.pull_request.head.sha }}"


def test_the_workflow_for_cpus_differs_from_the_one_for_gpus_only_where_it_must():
    lines, lines_for_cpus = (path.read_text().splitlines() for path in (MEASURE, MEASURE_ON_A_CPU))
    changed = [line for line in lines_for_cpus if line not in lines]

    assert len(changed) == 6
    assert all(re.search(r"CPU|smoke|cpu", line) for line in changed)


# --- what is installed beside a token


def test_everything_that_is_locked_has_a_hash_and_is_what_we_test_with():
    locked = dict(re.findall(r"^([\w.-]+)==([\w.]+)", LOCK.read_text(), re.MULTILINE))
    entries = re.split(r"^(?=[\w.-]+==)", LOCK.read_text(), flags=re.MULTILINE)[1:]
    constraints = (ROOT / "constraints.txt").read_text().lower()
    tested = dict(re.findall(r"^([\w.-]+)==([\w.]+)$", constraints, re.MULTILINE))

    assert all("--hash=sha256:" in entry for entry in entries)
    assert {name: tested[name] for name in locked if name in tested} == {
        name: version for name, version in locked.items() if name in tested
    }


def test_the_lock_has_all_that_reporting_needs_and_nothing_that_measures():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    needed = [
        *project["project"]["dependencies"],
        *project["project"]["optional-dependencies"]["report"],
        *project["build-system"]["requires"],
    ]
    names = {re.split(r"[^\w.-]", one)[0].lower() for one in needed}
    locked = set(re.findall(r"^([\w.-]+)==", LOCK.read_text(), re.MULTILINE))

    assert names <= locked
    assert not {"torch", "numpy", "transformers", "pandas"} & locked


def test_node_packages_are_locked_by_hash():
    lock = json.loads((node.HERE / "package-lock.json").read_text())
    packages = [one for name, one in lock["packages"].items() if name]

    assert packages
    assert all(one["integrity"].startswith("sha512-") for one in packages)
    assert not [one for one in packages if "resolved" in one and "npmjs.org" not in one["resolved"]]


def test_node_may_be_missing_only_where_nobody_asked_for_it():
    done = subprocess.run(
        [sys.executable, "-c", "from tests.actions import node; node.require()"],
        capture_output=True,
        check=False,
        cwd=ROOT,
        env={**os.environ, "PATH": "/nowhere", "REQUIRE_NODE": "1"},
        text=True,
    )

    assert "REQUIRE_NODE is set, but no `node` on PATH" in done.stderr
