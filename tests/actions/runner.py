"""Runs a composite action step by step, as GitHub's runner does. README.md has the rules."""

import json
import os
import signal
import subprocess
import time
import uuid
from dataclasses import dataclass, field
from pathlib import Path

from ruamel.yaml import YAML

from tests.actions import messages
from tests.actions.expressions import InvalidExpressionError

SHELLS = {
    "bash": ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail"],
    "sh": ["sh", "-e"],
    "python": ["python3"],
}
# What of the context `github` a step finds in its environment.
EXPORTED = (
    "action_path",
    "action_ref",
    "action_repository",
    "action",
    "actor",
    "api_url",
    "base_ref",
    "event_name",
    "event_path",
    "graphql_url",
    "head_ref",
    "job",
    "ref_name",
    "ref_protected",
    "ref_type",
    "ref",
    "repository",
    "repository_id",
    "repository_owner",
    "repository_owner_id",
    "retention_days",
    "run_attempt",
    "run_id",
    "run_number",
    "server_url",
    "sha",
    "triggering_actor",
    "workflow",
    "workflow_ref",
    "workflow_sha",
    "workspace",
)
FILES = ("output", "env", "path", "step_summary", "state")
SUMMARY_BYTES = 1024 * 1024
# The default of an input is filled in before there are inputs and steps.
EARLY = ("github", "strategy", "matrix", "job", "runner")
# A cancelled step is asked, told, and killed: after each, so many seconds pass.
PATIENCE_S = ((signal.SIGINT, 7.5), (signal.SIGTERM, 2.5), (signal.SIGKILL, 60.0))


@dataclass(frozen=True)
class Step:
    """How one step ended; `code` is None where it did not run."""

    id: str
    name: str
    outcome: str
    conclusion: str
    outputs: dict[str, str] = field(default_factory=dict)
    code: int | None = None
    log: str = ""
    environment: dict[str, str] = field(default_factory=dict)
    signals: tuple[signal.Signals, ...] = ()
    script: str = ""


@dataclass(frozen=True)
class Finished:
    """How the action ended."""

    conclusion: str
    outputs: dict[str, str]
    steps: list[Step]

    def step(self, name):
        (found,) = [step for step in self.steps if name in {step.id, step.name}]
        return found


class Job:
    """What a job keeps between its steps.

    `machine` is the environment of the runner itself. `slowness` stretches the patience with a
    cancelled step: for tests that ask what a signal does, on a machine that is busy.
    """

    def __init__(
        self, folder, workspace, expressions, *, github, token=None, machine=(), slowness=1
    ):
        self.slowness = slowness
        self.temp = folder / "runner temp"
        self.temp.mkdir()
        self.workspace = workspace
        self.machine = dict(machine)
        self.annotations, self.summaries = [], []
        self.status = "success"
        self._expressions = expressions
        self._masks = [token] if token else []
        self._kept, self._paths = {}, []
        self._github = {"workspace": str(workspace), "token": token or "", "event": {}, **github}

    def run_action(self, folder, *, cancel_when=None, **inputs):
        """Run all steps that GitHub would; `cancel_when` is asked while a step is running."""
        action = YAML(typ="safe").load((folder / "action.yml").read_text())
        assert action["runs"]["using"] == "composite"
        self._github["action_path"] = str(folder)
        given = {name.replace("_", "-"): text for name, text in inputs.items()}
        run = _Action(self, self._inputs(action.get("inputs", {}), given), cancel_when)
        for index, described in enumerate(action["runs"]["steps"]):
            if not run.step(described, index):
                break
        if run.status == "failure" and self.status != "cancelled":
            self.status = "failure"
        declared = action.get("outputs", {})
        outputs = {name: self.fill(one["value"], run.contexts()) for name, one in declared.items()}
        return Finished(run.status, outputs, run.done)

    def _inputs(self, declared, given):
        """Take what is given as text; nothing is required, and what is unknown is a warning."""
        for name in given.keys() - declared.keys():
            self.annotations.append(("warning", f"Unexpected input(s) '{name}'"))
        early = {name: self.contexts({}, {})[name] for name in EARLY}
        return {
            name: self.fill(given.get(name, one.get("default")), {} if name in given else early)
            for name, one in declared.items()
        }

    def contexts(self, inputs, steps):
        return {
            "env": dict(self._kept),
            "github": dict(self._github),
            "inputs": inputs,
            "job": {"status": self.status},
            "matrix": None,
            "runner": {"environment": "self-hosted", "os": "Linux", "temp": str(self.temp)},
            "steps": steps,
            "strategy": None,
        }

    def fill(self, text, contexts, status="success"):
        return self._expressions.filled(text, contexts, status)

    def holds(self, condition, contexts, status):
        return self._expressions.holds(condition, contexts, status)

    def environment(self, mapped, files):
        """Return what a process of a step finds: what GitHub sets wins, INPUT_* is not there."""
        ours = {name: os.environ[name] for name in ("HOME", "LANG") if name in os.environ}
        path = [*reversed(self._paths), self.machine.get("PATH", os.environ["PATH"])]
        exported = {n: self._github[n] for n in EXPORTED if self._github.get(n) is not None}
        return {
            **ours,
            **self.machine,
            **self._kept,
            "PATH": os.pathsep.join(path),
            **mapped,
            **{f"GITHUB_{name.upper()}": str(value) for name, value in exported.items()},
            **{f"GITHUB_{name.upper()}": str(path) for name, path in files.items()},
            "CI": "true",
            "GITHUB_ACTIONS": "true",
            "RUNNER_ENVIRONMENT": "self-hosted",
            "RUNNER_OS": "Linux",
            "RUNNER_TEMP": str(self.temp),
        }

    def listen(self, output):
        """Obey what a step has said; return its log as a person sees it."""
        heard = messages.heard(output)
        self.annotations += heard.annotations
        self._masks += heard.masks
        return self.masked(output)

    def masked(self, text):
        for secret in filter(None, self._masks):
            text = text.replace(secret, "***")
        return text

    def keep(self, files):
        """Take over what a step wrote for those after it, and its summary."""
        new = messages.values(files["env"].read_text())
        self._kept |= {name: value for name, value in new.items() if name != "NODE_OPTIONS"}
        self._paths += filter(None, files["path"].read_text().splitlines())
        summary = files["step_summary"].read_bytes()
        if len(summary) > SUMMARY_BYTES:
            self.annotations.append(("error", "$GITHUB_STEP_SUMMARY upload aborted"))
        elif summary:
            self.summaries.append(self.masked(summary.decode()))


class _Action:
    """One run of one action: its inputs, its steps so far, and how it stands."""

    def __init__(self, job, inputs, cancel_when):
        self.job, self.inputs = job, inputs
        self.done, self.status = [], "success"
        self._cancel_when = cancel_when or (lambda: False)

    def contexts(self):
        steps = {
            s.id: {"outcome": s.outcome, "conclusion": s.conclusion, "outputs": s.outputs}
            for s in self.done
            if s.id
        }
        return self.job.contexts(self.inputs, steps)

    def step(self, described, index):
        """Run one step, or skip it; return whether the action goes on."""
        assert "uses" not in described, "ours uses no other action"
        contexts, status = self.contexts(), self._status()
        try:
            mapped = described.get("env", {}).items()
            mapped = {name: self.job.fill(text, contexts, status) for name, text in mapped}
            contexts["env"] = contexts["env"] | mapped
            is_due = self.job.holds(described.get("if"), contexts, status)
        except InvalidExpressionError as error:
            self.job.annotations.append(("error", str(error)))
            self.status = "failure"
            return False
        self.done.append(self._run(described, index, mapped) if is_due else _skipped(described))
        if self.done[-1].conclusion == "failure":
            self.status = "failure"
        return True

    def _status(self):
        return "cancelled" if self.job.status == "cancelled" else self.status

    def _run(self, described, index, mapped):
        folder = self.job.temp / f"step {index} {uuid.uuid4()}"
        folder.mkdir()
        files = {name: folder / name for name in FILES}
        for path in files.values():
            path.touch()
        script = self._script(described, folder)
        environment = self.job.environment(mapped, files)
        command = [*SHELLS[described["shell"]], script]
        code, output, signals = self._process(command, folder / "log", environment)
        log = self.job.listen(output)
        outputs, problem = self._outputs(files)
        is_good = code == 0 and not problem
        if not is_good:
            said = problem or f"Process completed with exit code {code}."
            self.job.annotations.append(("error", said))
        is_forgiven = str(described.get("continue-on-error", False)).lower() == "true"
        return Step(
            id=described.get("id", ""),
            name=described["name"],
            outcome="success" if is_good else "failure",
            conclusion="success" if is_good or is_forgiven else "failure",
            outputs=outputs,
            code=code,
            log=log,
            environment=environment,
            signals=signals,
            script=script.read_text(),
        )

    def _script(self, described, folder):
        """Write the script; expressions become part of its text, which is why ours has none."""
        script = folder / "script"
        script.write_text(self.job.fill(described["run"], self.contexts(), self._status()))
        return script

    def _outputs(self, files):
        try:
            self.job.keep(files)
            return messages.values(files["output"].read_text()), ""
        except messages.InvalidFileCommandError as error:
            return {}, str(error)

    def _process(self, command, log, environment):
        """Run a process; cancelled, it is signalled as a runner does: it alone, not its group."""
        with log.open("wb") as said:
            process = subprocess.Popen(
                command,
                cwd=self.job.workspace,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=subprocess.STDOUT,
            )
            signals = self._awaited(process)
        return process.returncode, log.read_text(errors="replace"), signals

    def _awaited(self, process):
        while process.poll() is None:
            if self.job.status != "cancelled" and self._cancel_when():
                self.job.status = "cancelled"
                return _cancelled(process, self.job.slowness)
            time.sleep(0.01)
        return ()


def _cancelled(process, slowness):
    sent = []
    for one, patience_s in PATIENCE_S:
        sent.append(one)
        process.send_signal(one)
        try:
            process.wait(patience_s * slowness)
            break
        except subprocess.TimeoutExpired:
            continue
    return tuple(sent)


def _skipped(described):
    return Step(described.get("id", ""), described["name"], "skipped", "skipped")


def event_file(folder, payload):
    """Write the payload of an event where a runner would."""
    path = Path(folder) / "event.json"
    path.write_text(json.dumps(payload))
    return path
