"""A job on a GitHub: what happens, what it publishes, and how that ends."""

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ci_perf.cli.main import cli
from ci_perf.github.client import Access, Client
from ci_perf.model.comparison import Verdict
from ci_perf.system import files
from tests.comparisons import a_change, a_comparison, a_head
from tests.fakes.github import events
from tests.fakes.github.fake import FakeGitHub
from tests.projects import Done
from tests.runs import GPU

PULL = 7


@dataclass
class Stage:
    """A folder, the environment of a job, and a GitHub."""

    github: FakeGitHub
    folder: Path
    monkeypatch: pytest.MonkeyPatch
    capfd: pytest.CaptureFixture[str]

    def happens(
        self, name, action=None, *, run=100, attempt=1, sha="c" * 40, actor="octocat", **of
    ):
        """Let a job begin because of an event; its payload is one that GitHub could send."""
        payload = self.github.event(name, action, **of)
        assert events.problems(name, payload, self.github.flavour) == []
        path = self.folder / "event.json"
        path.write_text(json.dumps(payload))
        self.environment(
            **self.github.environment(),
            GITHUB_EVENT_NAME=name,
            GITHUB_EVENT_PATH=path,
            GITHUB_RUN_ID=run,
            GITHUB_RUN_ATTEMPT=attempt,
            GITHUB_SHA=sha,
            GITHUB_ACTOR=actor,
            GITHUB_STEP_SUMMARY=self.folder / "summary.md",
            GITHUB_OUTPUT=self.folder / "output.txt",
        )
        return self

    def environment(self, **variables: Any):
        """Set variables of the job."""
        for name, value in variables.items():
            self.monkeypatch.setenv(name, str(value))

    def on_pull(self, action="synchronize", **more):
        """Let the usual thing happen."""
        return self.happens("pull_request", action, number=PULL, **more)

    def publish(self, *arguments, of=(None,)):
        """Publish these comparisons; by default one that is fine."""
        paths = []
        for index, comparison in enumerate(of):
            paths.append(self.folder / f"comparison{index}.json")
            files.write(paths[-1], comparison or fine())
        return self.call(*paths, *arguments)

    def call(self, *arguments):
        """Call `ci-perf github publish` in this process: only the clock is not real."""
        words = ["github", "publish", *map(str, arguments)]
        code = cli(words, prog_name="ci-perf", standalone_mode=False)
        out, err = self.capfd.readouterr()
        return Done(int(code or 0), out, err)

    @property
    def summary(self):
        """The job summary."""
        path = self.folder / "summary.md"
        return path.read_text(encoding="utf-8") if path.exists() else ""

    @property
    def outputs(self):
        """What later steps of the job are told, unread."""
        path = self.folder / "output.txt"
        return path.read_text(encoding="utf-8") if path.exists() else ""

    def bodies(self, number=PULL):
        """The texts of all comments."""
        return [one.body for one in self.github.comments(number)]


@pytest.fixture
def stage(github, tmp_path, monkeypatch, capfd):
    """A pull request, a job, and no waiting."""
    for name in [n for n in os.environ if n.startswith(("GITHUB_", "CI_PERF_"))]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    # The commands make their own client, which waits between two tries.
    monkeypatch.setattr("time.sleep", lambda _seconds: None)
    return Stage(github, tmp_path, monkeypatch, capfd)


def a_client(github, **more):
    """Return a client as a job makes it."""
    access = Access(repository=github.repository, token=github.token, api_url=github.url)
    return Client(access, **more)


def fine(*, machine=GPU, **more):
    """A comparison without news."""
    return a_comparison(a_change(), head=a_head(machine=machine), **more)


def worse(*, machine=GPU, workload="mlp", **more):
    """A comparison with a regression."""
    row = a_change(workload, Verdict.REGRESSED, ratio=1.1)
    return a_comparison(row, a_change("other"), head=a_head(machine=machine), **more)
