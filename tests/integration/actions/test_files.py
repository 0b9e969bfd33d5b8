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
ACTION_FILES = [
    ACTION,
    *(ROOT / n / "action.yml" for n in ("report", "baseline", "count-checks", "screen")),
]
INSTALL = ROOT / "action/install.sh"
EXAMPLES = sorted((ROOT / "examples/workflows").glob("*.yml"))
OURS = ROOT / ".github/workflows"
WORKFLOWS = [*sorted(OURS.glob("*.yml")), *EXAMPLES]
REUSABLE = [OURS / "check.yml", OURS / "baseline.yml"]
LOCK = ROOT / "requirements/report.txt"
# Of another repository by its commit; our own ($/) is of the commit of the workflow itself.
PINNED = re.compile(r"[\w-]+/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+\b.*|\$/[\w./-]*")
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
    return [step for job in document["jobs"].values() for step in job.get("steps", ())]


def jobs_of(*paths):
    return [job for path in paths for job in load(path)["jobs"].values()]


def test_the_screen_is_told_what_the_job_that_measures_is_told():
    """An input that it lacks would answer for another machine, suite or folder."""
    told = {step.get("uses"): step.get("with") for step in steps_of(OURS / "check.yml")}
    known = load(ROOT / "screen/action.yml")["inputs"].keys()

    screen, alone = told["$/screen"], {"machine", "variables"}
    assert screen.keys() == known - {"python"}
    assert {name: told["$/"].get(name) for name in screen.keys() - alone} == {
        name: value for name, value in screen.items() if name not in alone
    }


# --- other people's linters


@pytest.mark.parametrize(
    ("schema", "paths"),
    [
        ("vendor.github-actions", ACTION_FILES),
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
        [*command, *ACTION_FILES, *WORKFLOWS], capture_output=True, check=False, text=True
    )

    assert done.returncode == 0, done.stdout + done.stderr


def test_everything_that_zizmor_is_told_to_overlook_is_explained():
    ignored = [
        re.findall(r"# zizmor: ignore(.*)", path.read_text())
        for path in [*ACTION_FILES, *WORKFLOWS]
    ]

    assert all(re.fullmatch(r"\[[\w-]+\] \S.{5,}", one) for found in ignored for one in found)


def validated(*paths):
    command = ["node", node.HERE / "validate.mjs", *paths]
    return json.loads(subprocess.run(command, capture_output=True, check=True, text=True).stdout)


def test_githubs_language_service_finds_nothing():
    node.require()

    assert validated(*ACTION_FILES, *WORKFLOWS) == []


# --- scripts


@pytest.mark.parametrize("path", [*ACTION_FILES, *WORKFLOWS], ids=str)
def test_no_script_is_put_together_from_expressions(path):
    scripts = [step["run"] for step in steps_of(path) if "run" in step]

    assert not [script for script in scripts if "${{" in script]


@pytest.mark.parametrize("path", ACTION_FILES, ids=str)
def test_an_action_uses_no_other_and_each_of_its_inputs(path):
    used = set(re.findall(r"inputs\.([\w-]+)", path.read_text()))

    assert not [step for step in steps_of(path) if "uses" in step]
    assert used == set(load(path)["inputs"])


@pytest.mark.parametrize("path", ACTION_FILES, ids=str)
def test_each_variable_of_a_step_is_used_and_each_used_one_is_given(path):
    for step in steps_of(path):
        script = step["run"] + (INSTALL.read_text() if step["id"] == "install" else "")
        used = set(re.findall(r"\b(?:INPUT_\w+|CI_PERF)\b", script))
        given = {name for name in step["env"] if name != "GITHUB_TOKEN"}

        assert given <= used, step["name"]
        assert step["id"] == "install" or given == used, step["name"]


def test_a_script_that_starts_ci_perf_becomes_it_and_hands_nothing_to_a_pipe():
    steps = [step for path in ACTION_FILES for step in steps_of(path)]
    scripts = [step["run"] for step in steps if '"$CI_PERF"' in step["run"]]

    assert scripts
    for script in scripts:
        calls = re.findall(r"^.*\"\$CI_PERF\".*$", script, re.MULTILINE)
        assert all(call.strip().startswith('exec "$CI_PERF"') for call in calls)
        assert script.rpartition("\nexec ")[1] or script.startswith("exec ")
        assert not re.search(r"[^|]\|[^|]", script)


def test_no_python_of_an_action_looks_for_modules_in_the_workspace():
    started = re.findall(r"/bin/python\" (.*)|\$python\" (.*)", INSTALL.read_text())

    assert started
    assert all((one or other).startswith(("-P ", "-c 'import sys;")) for one, other in started)


def test_no_workflow_makes_an_environment_by_a_file_of_the_checkout(tmp_path):
    """A pull request may have a `venv.py`, and the jobs that plan and judge run nothing of it."""
    scripts = [step["run"] for path in WORKFLOWS for step in steps_of(path) if "run" in step]
    lines = {
        line.strip() for script in scripts for line in script.splitlines() if "-m venv" in line
    }
    (tmp_path / "venv.py").write_text("raise SystemExit('of the pull request')\n")
    (tmp_path / "python3").symlink_to(sys.executable)

    assert lines
    for line in lines:
        done = subprocess.run(
            ["bash", "-c", f"{line} --without-pip"],
            capture_output=True,
            check=False,
            cwd=tmp_path,
            env={"PATH": f"{tmp_path}:{os.environ['PATH']}", "RUNNER_TEMP": str(tmp_path)},
            text=True,
        )
        assert (done.returncode, done.stderr) == (0, "")


GUIDES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def test_the_steps_that_our_guides_show_leave_no_token_on_the_disk():
    """They run code of a pull request; people copy them."""
    text = "\n".join(path.read_text("utf-8") for path in GUIDES)
    shown = [
        (YAML(typ="safe").load(snippet), snippet)
        for snippet in re.findall(r"```ya?ml\n(.*?)```", text, re.DOTALL)
        if "checkout@" in snippet
    ]

    assert shown
    for (job,), snippet in ((list(document.values()), snippet) for document, snippet in shown):
        assert job["permissions"] == {"contents": "read"}, snippet
        checkouts = [step for step in job["steps"] if "checkout@" in step.get("uses", "")]
        assert [step["with"]["persist-credentials"] for step in checkouts] == [False], snippet


# --- releases


def test_owners_review_every_file_that_a_token_trusts():
    rules = [line.split() for line in (ROOT / ".github/CODEOWNERS").read_text().splitlines()]
    owned = {rule[0].strip("/") for rule in rules if rule[0] != "#"}
    trusted = {str(path.relative_to(ROOT)) for path in ACTION_FILES} | {"action/install.sh"}

    assert [name for name in sorted(owned) if not (ROOT / name).exists()] == []
    assert {name for name in trusted if not {name, name.partition("/")[0]} & owned} == set()
    assert {".github", "requirements", "baselines", "ci_perf/pull_request"} <= owned


def test_only_the_job_that_uploads_a_release_has_an_identity():
    """And runs no script; the job that may write to the repository uses nothing that was built."""
    jobs = load(OURS / "release.yml")["jobs"]

    assert jobs["build"]["permissions"] == {"contents": "read"}
    assert jobs["publish"]["permissions"] == {"id-token": "write", "attestations": "write"}
    assert not [step for step in jobs["publish"]["steps"] if "run" in step]
    assert jobs["announce"]["permissions"] == {"contents": "write"}
    assert not [step for step in jobs["announce"]["steps"] if "checkout@" in step.get("uses", "")]
    assert [step["run"] for step in jobs["build"]["steps"] if "run" in step][1:3] == [
        "make test-all",
        "make dist",
    ]


# --- workflows


@by_name
def test_every_action_is_pinned_by_commit_with_its_version(path):
    uses = re.findall(r"^ +(?:- )?uses: (.+)", path.read_text(), re.MULTILINE)

    assert uses
    assert all(PINNED.fullmatch(use) for use in uses)


@by_name
def test_a_workflow_may_do_nothing_but_what_a_job_says_with_a_reason(path):
    document = load(path)
    permissions = re.findall(
        r"^ +[\w-]+: (?:\{.*\}|read\b|write\b)(.*)$", path.read_text(), re.MULTILINE
    )

    assert document["permissions"] in ({}, {"contents": "read"})
    assert all(re.fullmatch(r" +# \S.+", reason) for reason in permissions)


def test_whoever_runs_measured_code_may_only_read_and_keeps_no_token():
    own = ("self-hosted", "inputs.runs-on")
    jobs = [job for job in jobs_of(*WORKFLOWS) if "steps" in job]
    measuring = [job for job in jobs if any(word in str(job["runs-on"]) for word in own)]

    assert measuring
    for job in measuring:
        assert job["permissions"] == {"contents": "read"}
        checkouts = [step for step in job["steps"] if "checkout@" in step.get("uses", "")]
        assert [step["with"]["persist-credentials"] for step in checkouts] == [False]
        assert "github.token" not in str(job)
        assert "secrets." not in str(job)


def test_whoever_may_write_runs_on_a_hosted_runner_and_checks_out_no_pull_request():
    jobs = [job for job in jobs_of(*REUSABLE, *EXAMPLES) if "steps" in job]
    writing = [job for job in jobs if WRITES & set(job["permissions"].values())]

    assert writing
    for job in writing:
        assert job["runs-on"] == "ubuntu-latest"
        checkouts = [step for step in job["steps"] if "checkout@" in step.get("uses", "")]
        assert not [step for step in checkouts if {"ref", "repository"} & step["with"].keys()]
    assert "checkout@" not in str(load(REUSABLE[0])["jobs"]["report"])


@pytest.mark.parametrize("name", ["perf", "perf-baseline"])
def test_a_team_s_own_workflow_is_short_and_grants_what_the_reusable_one_asks_for(name):
    path = ROOT / f"examples/workflows/{name}.yml"
    (job,) = load(path)["jobs"].values()
    called = load(OURS / Path(job["uses"].partition("@")[0]).name)
    asked = {pair for one in called["jobs"].values() for pair in one["permissions"].items()}
    given = job["permissions"].items()

    assert len(path.read_text().splitlines()) <= 12
    assert all(pair in given or (pair[0], "write") in given for pair in asked)
    assert job["with"].keys() <= called["on"]["workflow_call"]["inputs"].keys()


def test_traces_are_an_artifact_of_their_own_that_no_job_fetches():
    """An artifact with a run.json may have 50 MiB, to be reported or accepted."""
    steps = [step for path in WORKFLOWS for step in steps_of(path)]
    kept = [step["with"] for step in steps if "traces" in str(step.get("with", {}).get("path"))]
    fetched = [step["with"] for step in steps if "download-artifact@" in step.get("uses", "")]

    assert [inputs["name"].endswith("-traces") for inputs in kept] == [True]
    assert fetched
    assert not [inputs for inputs in fetched if "traces" in str(inputs)]


@pytest.mark.parametrize("path", REUSABLE, ids=lambda path: path.name)
def test_each_input_of_a_reusable_workflow_is_used_and_declared(path):
    used = set(re.findall(r"\$\{\{[^}]*inputs\.([\w-]+)", path.read_text()))

    assert used == set(load(path)["on"]["workflow_call"]["inputs"])


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


LONG = [*REUSABLE, *(path for path in EXAMPLES if not path.name.startswith("perf"))]


@pytest.mark.parametrize("path", LONG, ids=lambda path: path.name)
def test_no_workflow_cuts_off_a_measurement(path):
    assert not any(one["cancel-in-progress"] for one in concurrency_of(path))


@pytest.mark.parametrize("path", LONG, ids=lambda path: path.name)
def test_an_event_that_starts_no_job_pushes_none_out_that_waits(path):
    """A comment that is no order, another label, a new title: most of these are not for us."""
    events = str(load(path)["on"])
    is_any = "issue_comment" in events or any(one in events for one in ("labeled", "edited"))

    assert ("concurrency" in load(path)) != (is_any or path.name == "check.yml")


def test_the_head_is_measured_and_not_its_trial_merge():
    """A report and an acceptance are of the commit that a person sees."""
    (checkout,) = [
        s for s in load(REUSABLE[0])["jobs"]["measure"]["steps"] if "checkout@" in str(s)
    ]

    assert "github.event.pull_request.head.sha" in checkout["with"]["ref"]


def test_workflows_use_inputs_that_exist():
    own = re.compile(r"(?:OWNER/ci_perf|\$)(?:/([\w-]*))?(?:@.*)?")
    steps = [step for path in WORKFLOWS for step in steps_of(path)]
    used = [(own.fullmatch(step.get("uses", "")), step.get("with", {})) for step in steps]
    given = [(found[1] or "", inputs) for found, inputs in used if found]

    assert given
    for folder, inputs in given:
        assert inputs.keys() <= load(ROOT / folder / "action.yml")["inputs"].keys(), folder


def test_a_comment_starts_the_workflow_with_the_inputs_that_it_declares():
    """Orders are answered by the job with a token, and done by the one without."""
    asked = load(ROOT / "examples/workflows/asked.yml")
    source = (ROOT / "ci_perf/pull_request/orders.py").read_text()
    written = source.partition("inputs = {")[2].partition("}\n")[0]
    sent = re.findall(r'^ +"(\w+)": ', written, re.MULTILINE)
    answer, measure = asked["jobs"]["answer"], asked["jobs"]["measure"]

    assert set(sent) == set(asked["on"]["workflow_dispatch"]["inputs"])
    assert measure["steps"][0]["with"]["ref"] == "${{ inputs.sha }}"
    assert answer["permissions"]["contents"] == "read"
    assert "event_name == 'issue_comment'" in answer["if"]
    assert measure["if"] == "github.event_name == 'workflow_dispatch'"


STRANGERS = ("comment.body", ".title", "head.ref", "head_ref", "head.label", "head_branch", ".body")


@pytest.mark.parametrize("path", [*ACTION_FILES, *WORKFLOWS], ids=str)
def test_no_text_of_a_stranger_reaches_a_script_or_its_environment(path):
    """It is compared in conditions alone; commands read the event from its file."""
    for step in steps_of(path):
        said = str([step.get("run"), step.get("env"), step.get("with")])

        assert not [text for text in STRANGERS if text in said], step


def test_no_push_starts_code_of_a_fork():
    """A push after the label is measured only after another label."""
    gated = load(ROOT / "examples/workflows/label-gated.yml")

    assert gated["on"]["pull_request"]["types"] == ["labeled"]
    checkout = gated["jobs"]["measure"]["steps"][0]
    assert checkout["with"]["ref"] == "${{ github.event.pull_request.head.sha }}"


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
