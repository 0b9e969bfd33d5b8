"""What the workflows to copy do: their conditions by GitHub's own rules, their scripts for real."""

import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from tests import repositories
from tests.actions.runner import SHELLS
from tests.integration.actions.conftest import executable

ROOT = Path(__file__).parents[3]
REUSABLE = ("check", "baseline")
SAME, FORK = "octo/model", "mallory/model"


def workflow(name):
    folder = ROOT / (".github" if name in REUSABLE else "examples") / "workflows"
    return YAML(typ="safe").load((folder / f"{name}.yml").read_text())


@pytest.fixture
def starts(expressions):
    """Say whether a job of a workflow starts, by GitHub's own evaluation of its condition."""

    def ask(name, job, status="success", needs=None, **event):
        contexts = {
            "github": {"repository": SAME, "event_name": "x", "event": event, "ref_name": "main"},
            "needs": needs or {},
        }
        return expressions.holds(workflow(name)["jobs"][job]["if"], contexts, status)

    return ask


def a_pull(repository):
    return {"head": {"repo": repository and {"full_name": repository}}}


@pytest.mark.parametrize(("repository", "measured"), [(SAME, True), (FORK, False), (None, False)])
def test_only_branches_of_this_repository_are_measured_without_being_asked(
    starts, repository, measured
):
    assert starts("check", "measure", pull_request=a_pull(repository)) is measured


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
    event = {**event, "pull_request": a_pull(SAME)}
    github = {"repository": SAME, "event_name": "pull_request", "event": event}

    assert expressions.holds(job["if"], {"github": github}, "success") is measured
    assert expressions.filled(job["name"], {"github": github}) == name


def test_a_pull_request_that_is_edited_starts_the_workflow():
    types = workflow("perf")["on"]["pull_request"]["types"]

    assert set(types) == {"opened", "synchronize", "reopened", "edited"}


@pytest.mark.parametrize(
    ("result", "status", "reported"),
    [
        ("success", "success", True),
        ("failure", "failure", True),
        ("skipped", "success", False),
        ("cancelled", "failure", False),
        ("failure", "cancelled", False),
    ],
)
def test_a_measurement_that_ended_is_reported_whatever_it_found(starts, result, status, reported):
    found = starts("check", "report", status, needs={"measure": {"result": result}})

    assert found is reported


@pytest.mark.parametrize(
    ("label", "repository", "measured"),
    [("perf", FORK, True), ("bug", FORK, False), ("perf", SAME, False)],
)
def test_a_fork_is_measured_for_the_label_alone(starts, label, repository, measured):
    found = starts("label-gated", "measure", label={"name": label}, pull_request=a_pull(repository))

    assert found is measured


@pytest.mark.parametrize(
    ("event", "path", "conclusion", "reported"),
    [
        ("pull_request", ".github/workflows/label-gated.yml", "success", True),
        ("pull_request", ".github/workflows/label-gated.yml@refs/pull/7/merge", "failure", True),
        ("push", ".github/workflows/label-gated.yml", "success", False),
        ("pull_request", ".github/workflows/other.yml", "success", False),
        ("pull_request", ".github/workflows/label-gated.yml", "cancelled", False),
        ("pull_request", ".github/workflows/label-gated.yml", "skipped", False),
    ],
)
def test_only_what_the_gated_workflow_has_measured_is_reported(
    starts, event, path, conclusion, reported
):
    run = {"event": event, "path": path, "conclusion": conclusion}

    assert starts("report", "report", workflow_run=run) is reported


@pytest.mark.parametrize(
    ("body", "association", "pull", "answered"),
    [
        ("/ci-perf accept 123456789abc", "MEMBER", {}, True),
        ("/ci-perf accept 123456789abc", "CONTRIBUTOR", {}, False),
        ("I would say /ci-perf accept", "OWNER", {}, False),
        ("/ci-perf accept 123456789abc", "OWNER", None, False),
    ],
)
def test_a_comment_starts_a_job_only_when_it_may_be_an_order(
    starts, body, association, pull, answered
):
    comment = {"body": body, "author_association": association}

    assert starts("accept", "accept", comment=comment, issue={"pull_request": pull}) is answered


@pytest.mark.parametrize(
    ("result", "verdict", "status", "proposed"),
    [
        ("success", "unchanged", "success", True),
        ("failure", "new", "failure", True),
        ("failure", "regressed", "failure", False),
        ("failure", "", "failure", False),
        ("cancelled", "new", "cancelled", False),
    ],
)
def test_a_first_measurement_is_proposed_though_it_compares_with_nothing(
    starts, result, verdict, status, proposed
):
    measured = {"result": result, "outputs": {"verdict": verdict}}

    assert starts("baseline", "propose", status, needs={"measure": measured}) is proposed


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

    @property
    def made(self):
        """What `gh pr create` was asked, if it was."""
        return self.folder / "made"

    def propose(self, text, *, opened=0):
        """Run the last step, with this baseline and so many open pull requests of the last one."""
        for name, content in (("baselines/x.json", text), ("measured/run.json", "not for git")):
            path = self.clone.root / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(content)
        (self.folder / "open").write_text(f"{opened}\n")
        script = workflow("baseline")["jobs"]["propose"]["steps"][-1]["run"]
        return subprocess.run(
            [*SHELLS["bash"], "-c", script],
            capture_output=True,
            check=True,
            cwd=self.clone.root,
            env={
                "PATH": f"{self.folder}:/usr/bin:/bin",
                "OPEN": str(self.folder / "open"),
                "MADE": str(self.made),
                "BRANCH": "ci-perf/baseline",
                "BASE": "main",
                "BASELINES": "baselines",
                "GITHUB_WORKFLOW": "perf-baseline",
                "GITHUB_RUN_ID": "42",
                "HOME": str(self.folder),
            },
            text=True,
        )


@pytest.fixture
def night(tmp_path):
    origin = repositories.init(tmp_path / "origin")
    origin.commit()
    executable(tmp_path / "gh", GH)
    return Night(origin, origin.clone(tmp_path / "clone"), tmp_path)


def test_a_night_proposes_its_baselines_and_nothing_else(night):
    night.propose("new")

    changed = night.origin.ask("show", "--name-only", "--format=%an", "ci-perf/baseline")
    assert changed.split() == ["github-actions[bot]", "baselines/x.json"]
    assert "--base\nmain\n" in night.made.read_text()


def test_the_next_night_replaces_what_the_last_one_proposed(night):
    night.propose("new")
    night.made.unlink()
    night.clone.ask("reset", "--quiet", "--hard", "HEAD~1")
    night.propose("newer", opened=1)

    assert night.origin.ask("show", "ci-perf/baseline:baselines/x.json") == "newer"
    assert not night.made.exists()


def test_a_night_without_news_proposes_nothing(night):
    night.propose("new")
    night.made.unlink()

    done = night.propose("new")

    assert done.stdout == "Nothing to propose.\n"
    assert not night.made.exists()


# --- shards


@pytest.mark.parametrize(
    ("measured", "status", "merged"),
    [("success", "success", True), ("failure", "failure", True), ("cancelled", "cancelled", False)],
)
def test_shards_that_failed_are_merged_too(starts, measured, status, merged):
    needs = {"plan": {"result": "success"}, "measure": {"result": measured}}

    assert starts("matrix", "merge", status, needs=needs) is merged


@pytest.mark.parametrize("job", ["measure", "merge"])
def test_nothing_is_measured_nor_merged_that_was_not_planned(starts, job):
    needs = {"plan": {"result": "skipped"}, "measure": {"result": "skipped"}}

    assert starts("matrix", job, "success", needs=needs) is False


@pytest.mark.parametrize(("repository", "planned"), [(SAME, True), (FORK, False), (None, False)])
def test_only_branches_of_this_repository_are_planned(starts, repository, planned):
    assert starts("matrix", "plan", pull_request=a_pull(repository)) is planned
