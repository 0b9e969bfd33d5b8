"""What the workflows to copy do: their conditions by GitHub's own rules, their scripts for real."""

import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from tests import repositories
from tests.actions.expressions import Expressions
from tests.actions.runner import SHELLS
from tests.integration.actions.conftest import executable

ROOT = Path(__file__).parents[3]
REUSABLE = ("check", "baseline")
SAME, FORK = "octo/model", "mallory/model"


def workflow(name):
    folder = ROOT / (".github" if name in REUSABLE else "examples") / "workflows"
    return YAML(typ="safe").load((folder / f"{name}.yml").read_text())


def a_pull(repository, **more):
    head = {"repo": repository and {"full_name": repository}}
    return {"pull_request": {"head": head}, **more}


def a_label(name, repository):
    return a_pull(repository, label={"name": name})


GATED = ".github/workflows/label-gated.yml"


def a_run(event="pull_request", path=GATED, conclusion="success"):
    return {"workflow_run": {"event": event, "path": path, "conclusion": conclusion}}


def an_order(body, association, pull=()):
    comment = {"body": body, "author_association": association}
    return {"comment": comment, "issue": {"pull_request": None if pull is None else dict(pull)}}


def ended(result, verdict="", job="measure"):
    return {job: {"result": result, "outputs": {"verdict": verdict}}}


PLANNED, UNPLANNED = ended("success", job="plan"), ended("skipped", job="plan")
UNSCREENED = ended("skipped", job="screen")
# The job of a workflow, what has happened, how its jobs stand, and whether it starts.
CONDITIONS = {
    "only branches of this repository are measured without being asked": [
        ("check", "measure", a_pull(SAME), UNSCREENED, "success", True),
        ("check", "measure", a_pull(FORK), UNSCREENED, "success", False),
        ("check", "measure", a_pull(None), UNSCREENED, "success", False),
        ("matrix", "plan", a_pull(SAME), {}, "success", True),
        ("matrix", "plan", a_pull(FORK), {}, "success", False),
        ("matrix", "plan", a_pull(None), {}, "success", False),
    ],
    "a measurement that ended is reported whatever it found": [
        ("check", "report", {}, UNSCREENED | ended("success"), "success", True),
        ("check", "report", {}, UNSCREENED | ended("failure"), "failure", True),
        ("check", "report", {}, UNSCREENED | ended("skipped"), "success", False),
        ("check", "report", {}, UNSCREENED | ended("cancelled"), "failure", False),
        ("check", "report", {}, UNSCREENED | ended("failure"), "cancelled", False),
    ],
    "a fork is measured for the label alone": [
        ("label-gated", "measure", a_label("perf", FORK), {}, "success", True),
        ("label-gated", "measure", a_label("bug", FORK), {}, "success", False),
        ("label-gated", "measure", a_label("perf", SAME), {}, "success", False),
    ],
    "only what the gated workflow has measured is reported": [
        ("report", "report", a_run(), {}, "success", True),
        (
            *("report", "report", a_run(path=f"{GATED}@refs/pull/7/merge", conclusion="failure")),
            *({}, "success", True),
        ),
        ("report", "report", a_run(event="push"), {}, "success", False),
        ("report", "report", a_run(path=".github/workflows/other.yml"), {}, "success", False),
        ("report", "report", a_run(conclusion="cancelled"), {}, "success", False),
        ("report", "report", a_run(conclusion="skipped"), {}, "success", False),
    ],
    "a comment starts a job only when it may be an order": [
        ("accept", "accept", an_order("/ci-perf accept 12", "MEMBER"), {}, "success", True),
        ("accept", "accept", an_order("/ci-perf accept 12", "CONTRIBUTOR"), {}, "success", False),
        ("accept", "accept", an_order("say /ci-perf accept", "OWNER"), {}, "success", False),
        ("accept", "accept", an_order("/ci-perf accept", "OWNER", None), {}, "success", False),
        ("asked", "answer", an_order("/ci-perf run 12", "MEMBER"), {}, "success", True),
        ("asked", "answer", an_order("/ci-perf run 12", "CONTRIBUTOR"), {}, "success", False),
        ("asked", "answer", an_order("/ci-perf run 12", "MEMBER", None), {}, "success", False),
        ("asked", "answer", an_order("/ci-perf accept 12", "MEMBER"), {}, "success", False),
        ("asked", "answer", an_order("/ci-perf  accept 12", "MEMBER"), {}, "success", False),
    ],
    "a first measurement is proposed though it compares with nothing": [
        ("baseline", "propose", {}, ended("success", "unchanged"), "success", True),
        ("baseline", "propose", {}, ended("failure", "new"), "failure", True),
        ("baseline", "propose", {}, ended("failure", "regressed"), "failure", False),
        ("baseline", "propose", {}, ended("failure"), "failure", False),
        ("baseline", "propose", {}, ended("cancelled", "new"), "cancelled", False),
    ],
    "shards that failed are merged too, and nothing that was not planned": [
        ("matrix", "merge", {}, PLANNED | ended("success"), "success", True),
        ("matrix", "merge", {}, PLANNED | ended("failure"), "failure", True),
        ("matrix", "merge", {}, PLANNED | ended("cancelled"), "cancelled", False),
        ("matrix", "merge", {}, UNPLANNED | ended("skipped"), "success", False),
        ("matrix", "measure", {}, UNPLANNED | ended("skipped"), "success", False),
    ],
}


@pytest.mark.parametrize("rows", CONDITIONS.values(), ids=CONDITIONS)
def test_a_job_starts_by_its_condition_alone(expressions, rows):
    """By GitHub's own evaluation of conditions."""
    for name, job, event, needs, status, starts in rows:
        contexts = {
            "github": {"repository": SAME, "event_name": "issue_comment", "event": event},
            "needs": needs,
        }
        condition = workflow(name)["jobs"][job]["if"]
        assert expressions.holds(condition, contexts, status) is starts, (name, job, event, needs)


@pytest.mark.parametrize(
    ("event", "measured", "name"),
    [
        ({"action": "opened"}, True, "measure"),
        ({"action": "edited", "changes": {"base": {"ref": {"from": "old"}}}}, True, "measure"),
        ({"action": "edited", "changes": {"title": {"from": "old"}}}, False, "measure (same base)"),
    ],
)
def test_a_new_base_branch_is_measured_and_a_new_title_cannot_pass_for_a_measurement(
    expressions, event, measured, name
):
    """GitHub takes a required job that is skipped for one that has passed."""
    job = workflow("check")["jobs"]["measure"]
    types = workflow("perf")["on"]["pull_request"]["types"]
    github = {"repository": SAME, "event_name": "pull_request", "event": a_pull(SAME, **event)}
    contexts = {"github": github, "needs": UNSCREENED}

    assert set(types) == {"opened", "synchronize", "reopened", "edited"}
    assert expressions.holds(job["if"], contexts, "success") is measured
    assert expressions.filled(job["name"], {"github": github}) == name


def test_a_merge_queue_is_measured_each_group_for_itself(expressions):
    """What is about to be merged; groups are tested at once, and none may push out another one."""

    def fill(text, sha):
        group = {"head_sha": sha, "base_sha": "b"}
        event = {"action": "checks_requested", "merge_group": group}
        github = {"repository": SAME, "event_name": "merge_group", "event": event}
        contexts = {"github": github, "inputs": {"artifact": "ci-perf"}, "needs": UNSCREENED}
        assert expressions.holds(jobs["measure"]["if"], contexts, "success")
        assert not expressions.holds(jobs["count-checks"]["if"], contexts, "success")
        return expressions.filled(text, contexts)

    jobs = workflow("check")["jobs"]
    measure = jobs["measure"]
    assert "merge_group" in workflow("perf")["on"]
    assert fill(measure["name"], "a") == "measure"
    assert fill(measure["steps"][0]["with"]["ref"], "a") == "a"
    for job in (measure, jobs["report"], jobs["screen"]):
        groups = {fill(job["concurrency"]["group"], sha) for sha in "abc"}
        assert len(groups) == 3


# --- the script that proposes baselines

# Knows how many pull requests are open, and notes those that are made.
GH = """\
#!/bin/sh
case "$1 $2" in
  "pr list") cat "$OPEN" ;;
  "pr create") printf '%s\\n' "$@" > "$MADE" ;;
esac
"""


@dataclass
class Night:
    """A clone on a hosted runner, in which `baseline.yml` has accepted a run."""

    origin: repositories.Repository
    clone: repositories.Repository
    folder: Path
    expressions: Expressions

    @property
    def made(self):
        """What `gh pr create` was asked, if it was."""
        return self.folder / "made"

    def propose(self, text, *, opened=0, artifact="ci-perf"):
        """Run the last step, with this baseline and so many open pull requests of the last one."""
        file = f"baselines/{artifact}.json"
        for name, content in ((file, text), ("measured/run.json", "not for git")):
            path = self.clone.root / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(content)
        (self.folder / "open").write_text(f"{opened}\n")
        step = workflow("baseline")["jobs"]["propose"]["steps"][-1]
        branch = self.expressions.filled(step["env"]["BRANCH"], {"inputs": {"artifact": artifact}})
        return subprocess.run(
            [*SHELLS["bash"], "-c", step["run"]],
            capture_output=True,
            check=True,
            cwd=self.clone.root,
            env={
                "PATH": f"{self.folder}:/usr/bin:/bin",
                "OPEN": str(self.folder / "open"),
                "MADE": str(self.made),
                "ARTIFACT": artifact,
                "BRANCH": branch,
                "BASE": "main",
                "BASELINES": "baselines",
                "GITHUB_WORKFLOW": "perf-baseline",
                "GITHUB_RUN_ID": "42",
                "HOME": str(self.folder),
            },
            text=True,
        )


@pytest.fixture
def night(tmp_path, expressions):
    origin = repositories.init(tmp_path / "origin")
    origin.commit()
    executable(tmp_path / "gh", GH)
    return Night(origin, origin.clone(tmp_path / "clone"), tmp_path, expressions)


def test_a_night_proposes_its_baselines_and_nothing_else(night):
    night.propose("new")

    changed = night.origin.ask("show", "--name-only", "--format=%an", "ci-perf/baseline")
    assert changed.split() == ["github-actions[bot]", "baselines/ci-perf.json"]
    assert "--base\nmain\n" in night.made.read_text()


def test_the_next_night_replaces_what_the_last_one_proposed(night):
    night.propose("new")
    night.made.unlink()
    night.clone.ask("reset", "--quiet", "--hard", "HEAD~1")
    night.propose("newer", opened=1)

    assert night.origin.ask("show", "ci-perf/baseline:baselines/ci-perf.json") == "newer"
    assert not night.made.exists()


def test_a_night_without_news_proposes_nothing(night):
    night.propose("new")
    night.made.unlink()

    done = night.propose("new")

    assert done.stdout == "Nothing to propose.\n"
    assert not night.made.exists()


def test_each_of_three_machines_proposes_its_own_baselines(night):
    artifacts = ("ci-perf", "ci-perf-h100", "ci-perf-l4")
    for artifact in artifacts:
        night.propose(artifact, artifact=artifact)
        assert f"({artifact})" in night.made.read_text()
        night.clone.ask("reset", "--quiet", "--hard", "HEAD~1")

    branches = ("ci-perf/baseline", "ci-perf/baseline-ci-perf-h100", "ci-perf/baseline-ci-perf-l4")
    for branch, artifact in zip(branches, artifacts, strict=True):
        changed = night.origin.ask("diff", "--name-only", "main", branch)
        assert changed == f"baselines/{artifact}.json"


def test_two_calls_of_baseline_yml_share_no_artifact_and_push_out_none(expressions):
    document = workflow("baseline")
    steps = [step for job in document["jobs"].values() for step in job["steps"]]
    names = [step["with"]["name"] for step in steps if "-artifact@" in step.get("uses", "")]
    keys = [each for step in steps for name, each in step.get("with", {}).items() if "key" in name]
    places = [*names, *keys, document["concurrency"]["group"]]
    run = {"run_id": 1, "run_attempt": 1}

    assert (len(names), len(keys)) == (4, 3)
    for place in places:
        filled = [
            expressions.filled(place, {"inputs": {"artifact": each}, "github": run})
            for each in ("gpu", "gpu-2", "cpu")
        ]
        assert len({*filled}) == 3
        # A cache is taken by the beginning of its key.
        assert place not in keys or not filled[1].startswith(filled[0].removesuffix("1-1"))
