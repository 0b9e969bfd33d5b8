"""examples/workflows/matrix.yml, job by job: real launches on two shards, one report."""

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from ci_perf.model.comparison import Comparison, Verdict
from ci_perf.model.run import Run
from ci_perf.system import files
from tests.integration.actions.stage import PULL, ROOT, Stage
from tests.integration.github.stage import fine, worse
from tests.projects import NAP, NAP_SETTINGS, SLOW, Project
from tests.runs import CPU, GPU

WORKFLOW = ROOT / "examples/workflows/matrix.yml"
# What only lengthens this test: profiles and records of programs.
QUICK = {"CI_PERF_RUN_EXPLAIN": "false", "CI_PERF_RUN_RECORD": "false"}


@dataclass
class Matrix:
    """The workflow as a user has edited it, whose jobs run on a stage."""

    stage: Stage
    expressions: Any
    event: dict[str, Any]
    artifacts: Path

    def __post_init__(self):
        text = WORKFLOW.read_text()
        for written, edited in (
            ("suite: standard", "suite: smoke"),
            ("device: cuda", "device: cpu"),
            ("machine-class: | # EDIT: a label of each class of runners\n", "machine-class: ''\n"),
            ("            h100\n            l4\n", ""),
            ("          install: --requirement=requirements.txt", "          #"),
        ):
            assert written in text
            text = text.replace(written, edited)
        self.jobs = YAML(typ="safe").load(text)["jobs"]

    def run(self, name, *, token=None, workspace=None, **contexts):
        """Run the steps of a job that are ours; return them by their id or mode."""
        ended = {}
        for step in self.jobs[name]["steps"]:
            if not step.get("uses", "").startswith("OWNER/ci_perf@"):
                continue
            known = {"github": {"event": self.event, "run_attempt": "1"}, **contexts}
            known["runner"] = {"temp": str(self.artifacts)}
            inputs = {
                key.replace("-", "_"): self.expressions.filled(str(value), known)
                for key, value in step["with"].items()
            }
            job = self.stage.job(self.event, token=token, workspace=workspace, **QUICK)
            ended[inputs.get("mode", "measure")] = job.run_action(ROOT, **inputs)
        return ended

    def measured(self, jobs):
        """Run the job of each entry of the matrix, and keep what it uploads."""
        for entry in jobs:
            needs = {"plan": {"outputs": {"checks-before": "0"}}}
            ended = self.run("measure", matrix=entry, needs=needs)["measure"]
            assert ended.conclusion == "success", ended.step("measure").log
            kept = self.artifacts / "shards" / f"ci-perf-shard-{entry['unit']}"
            kept.mkdir(parents=True)
            shutil.move(self.stage.git.root / "run.json", kept / "run.json")


@pytest.fixture
def matrix(stage, expressions, tmp_path):
    """A pull request with a slower product and a second workload, planned for two shards."""
    project = Project(stage.git.root)
    project.workload("other", NAP).suite("nap", "other", settings=NAP_SETTINGS, device="cpu")
    stage.git.commit(product_py=SLOW)
    return Matrix(stage, expressions, stage.pull_request(), tmp_path / "artifacts")


def planned(matrix):
    """Run the job `plan`; return the jobs of the matrix, by GitHub's own fromJSON."""
    ended = matrix.run("plan", token=matrix.stage.github.token)
    assert ended["plan"].conclusion == "success", ended["plan"].step("plan").log
    (matrix.artifacts / "plan").mkdir(parents=True)
    shutil.copy(matrix.stage.git.root / "plan.json", matrix.artifacts / "plan")
    outputs = {"matrix": ended["plan"].outputs["matrix"]}
    strategy = matrix.jobs["measure"]["strategy"]["matrix"]
    text = f"${{{{ toJSON({strategy.removeprefix('${{').removesuffix('}}')}) }}}}"
    said = matrix.expressions.filled(text, {"needs": {"plan": {"outputs": outputs}}})
    return json.loads(said)["include"]


def merged(matrix):
    """Run the jobs `merge` and `report`; return both, and the hosted folder of the former."""
    root = matrix.stage.git.root
    if (matrix.artifacts / "shards").exists():
        shutil.copytree(matrix.artifacts / "shards", root / "shards")
    ended = matrix.run("merge")["merge"]
    hosted = matrix.artifacts / "hosted"
    (hosted / "ci-perf").mkdir(parents=True)
    for name in ("runs", "comparisons"):
        shutil.copy(root / name, hosted / "ci-perf" / name)
    reported = matrix.run("report", token=matrix.stage.github.token, workspace=hosted)["report"]
    return ended, reported


def test_shards_are_measured_apart_and_reported_once(matrix):
    jobs = planned(matrix)
    matrix.measured(jobs)
    ended, reported = merged(matrix)

    assert [job["unit"] for job in jobs] == ["1-of-2", "2-of-2"]
    root = matrix.stage.git.root
    run = files.read(root / "runs", Run)
    assert [session.unit for session in run.sessions] == ["1-of-2", "2-of-2"]
    comparison = files.read(root / "comparisons", Comparison)
    verdicts = {row.workload: row.verdict for row in comparison.rows if row.gate}
    assert comparison.verdict is Verdict.REGRESSED
    assert set(verdicts) == {"nap", "other"}
    assert ended.step("merge").code == reported.step("report").code == 1
    (comment,) = matrix.stage.github.comments(PULL)
    assert "`nap`" in comment.body
    assert comment.body.count("### ") == 1

    shutil.rmtree(root / "shards/ci-perf-shard-1-of-2")  # as if that node were lost
    log = matrix.run("merge")["merge"].step("merge").log
    assert f"failed: {jobs[0]['workloads']}: no node has measured it" in log
    lost = {row.workload: row.verdict for row in files.read(root / "comparisons", Comparison).rows}
    assert lost[jobs[0]["workloads"]] is Verdict.FAILED


def test_where_no_shard_brings_anything_that_is_reported_too(matrix):
    planned(matrix)
    ended, reported = merged(matrix)

    assert ended.step("merge").code == reported.step("report").code == 3
    (comment,) = matrix.stage.github.comments(PULL)
    assert "❌ Act: failed: `nap`, `other`" in comment.body


def test_several_classes_have_one_comment_a_section_each_and_one_headline(matrix):
    hosted = matrix.artifacts / "hosted"
    folder = hosted / "ci-perf/comparisons"
    folder.mkdir(parents=True)
    files.write(folder / "h100.json", worse(machine=GPU))
    files.write(folder / "cpu.json", fine(machine=CPU))

    ended = matrix.run("report", token=matrix.stage.github.token, workspace=hosted)["report"]

    assert ended.step("report").code == 1
    (comment,) = matrix.stage.github.comments(PULL)
    lines = comment.body.splitlines()
    assert lines[1] == "## ❌ Act on 1 of 2 machines: `nvidia-h200`"
    assert len([line for line in lines if line.startswith("### ")]) == 2
