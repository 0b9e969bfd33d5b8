"""What a job that measured has left: a run of a pull request, its artifact, and a base branch."""

import shutil
from dataclasses import dataclass
from pathlib import Path

from ci_perf.baselines import layout
from ci_perf.cli.main import cli
from ci_perf.errors import CiPerfError
from ci_perf.model import codec
from ci_perf.model import run as runs
from tests.accepting import accepted
from tests.comparisons import an_interleaved
from tests.histories import beside
from tests.integration.github.stage import PULL, Stage
from tests.projects import Done
from tests.runs import CPU, SLOW, STEADY, a_measured, a_run

HEAD, BASE, RUN = "a" * 40, "b" * 40, 42
ACCEPT = f'/ci-perf accept {HEAD[:12]} mlp "it does more"'
WORKFLOW = ".github/workflows/perf.yml"
TOGETHER = f"baselines/{layout.folder(Path(), CPU, 'smoke')}"


def of_head(*measured, commit=HEAD, **more):
    """A run of the commit at the head of the pull request."""
    return a_run(*measured, commit=commit, **more)


def paired(ratio, *, commit=BASE, dirty=False):
    """Pairs of a commit of the base branch, unless told, and of the head."""
    source = runs.Source(commit=commit, branch="main", dirty=dirty)
    return beside(ratio, workload="mlp") | {"interleaved": an_interleaved(source=source)}


def steady(*names, **more):
    """A run in which nothing is new."""
    return of_head(*(a_measured(name, *STEADY) for name in names or ("mlp",)), id="steady", **more)


def slower(**more):
    """A run of which pairs have proven that it takes twice as long."""
    return of_head(a_measured("mlp", *SLOW), id="slower", **paired(2.0), **more)


def broken(**more):
    """A run whose graph breaks where that of the base did not: exact, without any pairs."""
    return of_head(a_measured("mlp", *STEADY, graphs=4, breaks=3), id="broken", **more)


def artifact_of(run):
    """The files of an artifact with this run."""
    return {"run.json": codec.encode(run), "report.md": "# not ours"}


def committed(folder, *runs):
    """Accept runs below `folder`, and return the files as a repository has them."""
    for run in runs:
        accepted(folder / "baselines", run, reason="because")
    return {
        str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("baselines/*/*/*")
    }


@dataclass
class SecondStage:
    """A pull request that was measured, and the checkout of its base branch."""

    stage: Stage

    @property
    def github(self):
        return self.stage.github

    @property
    def folder(self):
        return self.stage.folder

    def measured(self, run=None, *, fork=False, artifact=None, **of_run):
        """Let a run of the pull request have measured this."""
        if PULL not in self.github.state.pulls:
            self.opened(fork=fork)
        self.github.add_run(RUN, head_sha=HEAD, fork=fork, **of_run)
        if artifact is not False:
            self.github.add_artifact(RUN, "ci-perf", artifact or artifact_of(run or slower()))
        return self

    def opened(self, *, fork=False, files=None, base=None, **more):
        """Open the pull request, on a base with these baselines, in a checkout of the base."""
        base = committed(self.folder / "seed", steady()) if base is None else base
        shutil.rmtree(self.folder / "seed", ignore_errors=True)
        for path, content in base.items():
            (self.folder / path).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / path).write_bytes(content)
        self.github.add_pull(
            PULL, head_sha=HEAD, base_sha=BASE, fork=fork, base_files=base, files=files, **more
        )
        return self

    def types(self, *words):
        """Call `ci-perf` in this process; an error is told as the front door tells it."""
        try:
            code = cli([*map(str, words)], prog_name="ci-perf", standalone_mode=False)
            error = ""
        except CiPerfError as failure:
            code, error = failure.exit_code, f"error: {failure}"
        out, err = self.stage.capfd.readouterr()
        return Done(int(code or 0), out, err + error)

    def report(self, *words, run=RUN, meanwhile=lambda: None):
        """Let the second stage report, as a job that the first one has started."""
        self.stage.happens("workflow_run", "completed", run_id=RUN, run=900)
        meanwhile()
        return self.types("github", "rejudge", "--run-id", run, *words)

    def writes(self, body, *, login="octo", level="admin"):
        """Let a person write a comment; return it."""
        self.github.set_permission(login, level)
        comment = self.github.add_comment(PULL, body, author=login)
        self.stage.happens("issue_comment", "created", run=901, comment_id=comment.id)
        return comment

    def bot(self, body, *words, **of):
        """Let a person write a comment, and the bot read it."""
        comment = self.writes(body, **of)
        self.github.permissions = {**self.github.permissions, "contents": "write"}
        return comment, self.types("github", "answer-comment", *words)

    @property
    def body(self):
        """The text of the only comment."""
        (only,) = self.stage.bodies()
        return only


def answer(second):
    """What the bot has said, without its marker."""
    said = [one for one in second.github.comments(PULL) if one.author == "github-actions[bot]"]
    assert len(said) == 1
    marker, _, text = said[0].body.partition("\n")
    assert marker.startswith("<!-- ci-perf:v1 key=answer/")
    return text
