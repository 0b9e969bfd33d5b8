"""A repository with a pull request, a GitHub that knows it, and jobs that run for it."""

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests import repositories
from tests.actions.runner import Finished, Job
from tests.fakes.github import events
from tests.projects import FAST, NAP, NAP_SETTINGS, Project

ROOT = Path(__file__).parents[3]
PULL = 7
RESULTS = ("run.json", "report.md", "comparison.json", "baseline.patch")
REPORT, BASELINE = ROOT / "report", ROOT / "baseline"


@dataclass
class Stage:
    """What jobs find: the checkout of a branch, and a GitHub."""

    git: repositories.Repository
    github: Any
    make_job: Any
    runs: int = 0
    results: Path = Path()

    def __post_init__(self):
        self.results = self.git.root

    def pull_request(self, action="opened"):
        """Let GitHub know of what is checked out as the head of a pull request."""
        base = self.git.ask("rev-parse", "main")
        head = self.git.ask("rev-parse", "HEAD")
        self.github.add_pull(PULL, head_sha=head, base_sha=base)
        return self.github.event("pull_request", action, number=PULL)

    def job(self, payload, *, name="pull_request", workspace=None, token=None, **machine):
        """Make a job that this event has started."""
        assert events.problems(name, payload, self.github.flavour) == []
        self.runs += 1
        path = self.git.root.parent / f"event {self.runs}.json"
        path.write_text(json.dumps(payload))
        given = self.github.environment()
        context = {
            key.removeprefix("GITHUB_").lower(): value
            for key, value in given.items()
            if key.startswith("GITHUB_") and key not in {"GITHUB_TOKEN", "GITHUB_ACTIONS"}
        }
        context |= {"event": payload, "event_name": name, "event_path": str(path)}
        context |= {"run_id": str(100 + self.runs), "run_attempt": "1", "sha": "c" * 40}
        machine |= Project(self.git.root).locks
        machine |= {key: value for key, value in given.items() if "PROXY" in key.upper()}
        return self.make_job(
            github=context, workspace=workspace or self.git.root, token=token, **machine
        )

    def measured(self, payload, **inputs) -> tuple[Job, Finished]:
        """Measure what is checked out; whatever token a runner has, its steps need none."""
        job = self.job(payload, token=self.github.token)
        done = job.run_action(ROOT, **inputs)
        self.results = Path(done.outputs["results"])
        return job, done

    def reported(self, payload, **inputs) -> tuple[Job, Finished]:
        """Report what lies in the checkout from another, empty workspace, as a second job does."""
        folder = self.git.root.parent / f"hosted {self.runs}"
        folder.mkdir()
        for name in RESULTS:
            if (self.results / name).exists():
                shutil.copy(self.results / name, folder / name)
        job = self.job(payload, workspace=folder, token=self.github.token)
        return job, job.run_action(REPORT, **inputs)


def a_project(folder):
    """Make a repository with a suite, a fast product, a baseline on main, and results."""
    git = repositories.init(folder)
    project = Project(git.root)
    project.workload("nap", NAP).suite("nap", settings=NAP_SETTINGS, device="cpu")
    (git.root / ".gitignore").write_text("\n".join(RESULTS) + "\n__pycache__\n")
    git.commit(product_py=FAST)
    for command in (
        ("run",),
        ("accept", "run.json", "--reason", "First baseline"),
        ("compare", "run.json", "--format", "json", "--output", "comparison.json"),
    ):
        done = project.run(*command)
        assert done.code == 0, done.err
    git.commit()
    git.ask("switch", "--quiet", "--create", "feature")
    return git
