"""action.yml and the workflows: valid, safe by construction, and their scripts really run."""

import os
import re
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest
from ruamel.yaml import YAML

ROOT = Path(__file__).parents[2]
ACTION = ROOT / "action.yml"
WORKFLOWS = [
    *sorted((ROOT / ".github/workflows").glob("*.yml")),
    ROOT / "ci_perf/cli/templates/perf.yml",
]
# The shell of a composite action's `shell: bash`.
BASH = ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail"]

# Writes down how it was called, writes the report and ends as it is told.
FAKE_CI_PERF = """\
#!/usr/bin/env bash
printf '%s\\n' "$@" > "$RECORD"
for argument in "$@"; do
  case "$argument" in --output=*) report="${argument#--output=}" ;; esac
done
[ -z "$WITH_REPORT" ] || echo "# slower" > "$report"
exit "$ENDS_WITH"
"""
FAKE_CI_PERF_LINE = "#!/bin/false"  # ends with 1, whatever it is asked


def executable(path, text):
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def load(path):
    return YAML(typ="safe").load(path.read_text())


def steps_of(path):
    document = load(path)
    if "runs" in document:
        return document["runs"]["steps"]
    return [step for job in document["jobs"].values() for step in job["steps"]]


def check_schema(schema, path):
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, str(path)]
    return subprocess.run(command, capture_output=True, check=False, text=True)


@pytest.mark.parametrize(
    ("schema", "path"),
    [
        ("vendor.github-actions", ACTION),
        *(("vendor.github-workflows", path) for path in WORKFLOWS),
        *(
            ("vendor.github-issue-forms", path)
            for path in sorted((ROOT / ".github/ISSUE_TEMPLATE").glob("*.yml"))
        ),
    ],
    ids=lambda value: value.name if isinstance(value, Path) else "",
)
def test_the_file_follows_githubs_schema(schema, path):
    done = check_schema(schema, path)

    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("path", [ACTION, *WORKFLOWS], ids=lambda path: path.name)
def test_no_script_is_put_together_from_expressions(path):
    scripts = [step["run"] for step in steps_of(path) if "run" in step]

    assert scripts
    assert not [script for script in scripts if "${{" in script]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_every_action_is_pinned_by_commit_with_its_version(path):
    uses = re.findall(r"uses: (.+)", path.read_text())

    assert uses
    assert all(re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", use) for use in uses)


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_may_only_read(path):
    assert load(path)["permissions"] == {"contents": "read"}
    assert "permissions" not in str(load(path)["jobs"])


def test_the_action_uses_no_other_action():
    assert not [step for step in steps_of(ACTION) if "uses" in step]


def test_each_input_is_used_and_each_used_input_is_declared():
    used = set(re.findall(r"inputs\.([\w-]+)", ACTION.read_text()))

    assert used == set(load(ACTION)["inputs"])


def test_a_script_that_starts_ci_perf_becomes_it():
    scripts = [step["run"] for step in steps_of(ACTION) if '"$CI_PERF"' in step["run"]]

    assert scripts
    assert all(script.rstrip().splitlines()[-1].startswith('exec "$CI_PERF"') for script in scripts)


def test_the_users_workflow_lets_a_running_measurement_end():
    workflow = load(ROOT / "ci_perf/cli/templates/perf.yml")

    assert workflow["concurrency"]["cancel-in-progress"] is False
    assert "exec " in str(workflow["jobs"]["measure"]["steps"])


class Job:
    """Runs the steps of action.yml as a runner does, as far as ours need it."""

    def __init__(self, workspace, temp, **environment):
        self.workspace, self.temp = workspace, temp
        self.environment = environment
        self.summary = temp / "summary"
        self.summary.touch()
        self.contexts = {}
        self.codes = []

    def run(self, **given):
        action = load(ACTION)
        for name, described in action["inputs"].items():
            default = self._value(described["default"])
            self.contexts[f"inputs.{name}"] = given.get(name, default)
        for index, step in enumerate(action["runs"]["steps"]):
            if any(self.codes) and step.get("if") != "always()":
                continue
            self._step(step, self.temp / f"step{index}")
        return {name: self._value(o["value"]) for name, o in action["outputs"].items()}

    def _step(self, step, scratch):
        output = scratch.with_suffix(".output")
        output.touch()
        script = scratch.with_suffix(".sh")
        script.write_text(step["run"])
        mapped = {name: self._value(text) for name, text in step.get("env", {}).items()}
        files = {"GITHUB_OUTPUT": str(output), "GITHUB_STEP_SUMMARY": str(self.summary)}
        done = subprocess.run(
            [*BASH, str(script)],
            check=False,
            cwd=self.workspace,
            env={**os.environ, **self.environment, **mapped, **files},
        )
        self.codes.append(done.returncode)
        if "id" in step:
            self._remember(step["id"], output, done.returncode)

    def _remember(self, step, output, code):
        self.contexts[f"steps.{step}.outcome"] = "failure" if code else "success"
        for line in output.read_text().splitlines():
            name, _, value = line.partition("=")
            self.contexts[f"steps.{step}.outputs.{name}"] = value

    def _value(self, text):
        return re.sub(r"\$\{\{ (.+?) \}\}", lambda found: self.contexts.get(found[1], ""), text)


@pytest.fixture
def job(tmp_path):
    """Make a job on a runner where a ci-perf is installed that ends as told."""

    def make(*, ends_with=0, with_report=True):
        for name in ("bin", "temp", "a workspace"):
            (tmp_path / name).mkdir()
        executable(tmp_path / "bin/ci-perf", FAKE_CI_PERF)
        return Job(
            tmp_path / "a workspace",
            tmp_path / "temp",
            PATH=f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}",
            RECORD=str(tmp_path / "record"),
            RUNNER_TEMP=str(tmp_path / "temp"),
            ENDS_WITH=str(ends_with),
            WITH_REPORT="yes" if with_report else "",
        )

    return make


def arguments(job):
    return Path(job.environment["RECORD"]).read_text().splitlines()


@pytest.mark.parametrize("code", [0, 1, 2, 3, 130])
def test_the_exit_code_of_ci_perf_is_that_of_the_step_and_the_report_is_shown(job, code):
    job = job(ends_with=code)

    outputs = job.run()

    assert job.codes == [0, code, 0]
    assert job.summary.read_text() == "# slower\n"
    assert outputs == {
        "outcome": "failure" if code else "success",
        "report": "report.md",
        "run": "run.json",
    }


def test_without_inputs_the_defaults_of_check_are_asked_for(job):
    job = job()
    job.run()

    assert arguments(job) == [
        "check",
        "--suite=smoke",
        "--workloads=workloads",
        "--baselines=baselines",
        "--device=auto",
        "--run-output=run.json",
        "--format=markdown",
        "--output=report.md",
    ]


def test_on_a_pull_request_base_and_head_are_launched_in_turns(job):
    job = job()
    job.contexts["github.event.pull_request.base.sha"] = "a1b2c3d4"
    job.run()

    assert arguments(job)[-2:] == ["--against=a1b2c3d4", "--budget=20m"]


def test_nobody_has_to_launch_the_base(job):
    job = job()
    job.contexts["github.event.pull_request.base.sha"] = "a1b2c3d4"
    job.run(against="none", **{"fail-on": "unconfirmed"})

    assert arguments(job)[-1] == "--fail-on=unconfirmed"


def test_the_options_are_those_that_check_knows(job):
    job = job()
    job.run(processes="3", against="main", **{"fail-on": "never"})
    help_text = subprocess.run(
        [sys.executable, "-m", "ci_perf", "check", "--help"],
        capture_output=True,
        check=True,
        cwd=ROOT,
        text=True,
    ).stdout

    asked = [argument.partition("=")[0] for argument in arguments(job)[1:]]
    assert [option for option in asked if not re.search(rf"{option}\b", help_text)] == []


def test_inputs_stay_data_whatever_they_hold(job):
    hostile = '$(touch pwned) `touch pwned` "; touch pwned; #'
    job = job()
    job.run(suite=hostile, device="--help", processes="3", report="the report.md")

    assert f"--suite={hostile}" in arguments(job)
    assert "--device=--help" in arguments(job)
    assert "--processes=3" in arguments(job)
    assert sorted(path.name for path in job.workspace.iterdir()) == ["the report.md"]


def test_a_line_break_in_an_input_makes_no_second_output(job):
    job = job()
    outputs = job.run(report="a.md\noutcome=success")

    assert outputs["report"] == "a.md outcome=success"


def test_the_report_of_an_earlier_job_is_not_shown(job):
    job = job(ends_with=3, with_report=False)
    (job.workspace / "report.md").write_text("all is well\n")

    job.run()

    assert "wrote no report" in job.summary.read_text()


def test_a_cancelled_job_reaches_ci_perf_itself(tmp_path):
    """A runner signals the process of the step and nothing else."""
    started = tmp_path / "started"
    (tmp_path / "patient.py").write_text(
        "import pathlib, sys, time\n"
        "try:\n"
        f"    pathlib.Path({str(started)!r}).touch()\n"
        "    time.sleep(60)\n"
        "except KeyboardInterrupt:\n"
        "    sys.exit(130)\n"
    )
    patient = executable(
        tmp_path / "ci-perf", f'#!/bin/sh\nexec "{sys.executable}" "{tmp_path}/patient.py"\n'
    )
    script = next(step["run"] for step in steps_of(ACTION) if step.get("id") == "check")
    inputs = dict.fromkeys(re.findall(r"\$\{?(INPUT_\w+)", script), "x")
    environment = {"CI_PERF": str(patient), "GITHUB_OUTPUT": str(tmp_path / "output")}

    with subprocess.Popen(
        [*BASH, "-c", script], cwd=tmp_path, env={**os.environ, **inputs, **environment}
    ) as step:
        while not started.exists():
            assert step.poll() is None
            time.sleep(0.01)
        step.send_signal(signal.SIGINT)

        assert step.wait(timeout=10) == 130


def test_where_no_ci_perf_is_installed_the_action_installs_itself(tmp_path):
    """The Python that is given makes the environment; its pip installs this very checkout."""
    record = tmp_path / "record"
    python = executable(
        tmp_path / "python",
        "#!/bin/sh\n"
        f'echo "$@" >> "{record}"\n'
        'for folder in "$@"; do :; done\n'  # the last argument
        '[ "$2" = venv ] || exit 0\n'
        'mkdir -p "$folder/bin" && cp "$0" "$folder/bin/python"\n'
        f'printf "%s\\n" "{FAKE_CI_PERF_LINE}" > "$folder/bin/ci-perf"\n'
        'chmod +x "$folder/bin/ci-perf"\n',
    )
    (tmp_path / "the temp").mkdir()
    job = Job(
        tmp_path,
        tmp_path / "the temp",
        PATH="/usr/bin:/bin",
        RUNNER_TEMP=str(tmp_path / "the temp"),
        GITHUB_ACTION_PATH="/actions/ci perf",
    )

    outputs = job.run(python=str(python))

    folder = tmp_path / "the temp/ci-perf"
    assert record.read_text().splitlines() == [
        f"-m venv --clear --system-site-packages {folder}",
        "-m pip install --quiet --disable-pip-version-check /actions/ci perf[measure]",
    ]
    assert job.codes == [0, 1, 0]
    assert outputs["outcome"] == "failure"


def test_an_installation_that_fails_fails_the_job_and_measures_nothing(tmp_path):
    job = Job(tmp_path, tmp_path, PATH="/usr/bin:/bin", RUNNER_TEMP=str(tmp_path))

    job.run(python="/no/such/python")

    assert job.codes == [127, 0]
    assert "wrote no report" in job.summary.read_text()
