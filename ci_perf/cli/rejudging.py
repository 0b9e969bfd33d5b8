"""The steps of `ci-perf report`: what a workflow run has measured, judged again by us.

Whoever measured may have said anything of it. Its numbers are all that is taken from there;
baselines and limits are those of the folders that this job has checked out.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ci_perf.cli import edited, fetching, judging, posting, publishing
from ci_perf.cli.posting import Report
from ci_perf.errors import CiPerfError, RefusedError
from ci_perf.github import home, pulls, runs
from ci_perf.github.client import Client
from ci_perf.github.pulls import Changed, Found
from ci_perf.model.comparison import Comparison
from ci_perf.model.run import Run


@dataclass(frozen=True, slots=True, kw_only=True)
class Folders:
    """Where baselines and limits are: in a checkout of the base branch."""

    baselines: Path
    workloads: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A workflow run that measured a pull request that is still open with that commit."""

    repository: str
    client: Client
    run: runs.Found
    pull: Found


def find(environment: Mapping[str, str], run_id: int, *, workflow: str) -> Measured | None:
    """Find out which pull request a run measured; `None` where that has moved on.

    Raises GithubError, MissingError, UsageError and RefusedError: not a run of pull requests.
    """
    repository = home.repository(environment)
    client = posting.client_of(environment, repository)
    run = runs.get(client, run_id)
    runs.check(run, workflow=workflow)
    pull = pulls.find(client, run.as_event(repository)) if run.head else None
    if pull is None:
        return None
    return Measured(repository=repository, client=client, run=run, pull=pull)


def reports(
    found: Measured, names: Sequence[str], folders: Folders, *, suite: str | None, key: str | None
) -> list[Report]:
    """Judge what every artifact holds by the baselines of the base branch, and by the edited ones.

    Raises GithubError, RefusedError and InvalidFileError.
    """
    changed = edited.changes(found.client, found.pull, folders.baselines)
    made = [(name, _report(found, name, folders, suite, changed)) for name in names]
    publishing.check_apart(made, key)
    return [one for _, one in made]


def _report(
    found: Measured, name: str, folders: Folders, suite: str | None, changed: list[Changed]
) -> Report:
    run = fetching.measured(found.client, found.run.number, name)
    label = fetching.label(found.run.number, name)
    if suite is not None and run.suite != suite:
        raise RefusedError(f"{label}: expected suite {suite!r}, found {run.suite!r}")
    comparison = _judged(run, folders, label)
    return dataclasses.replace(
        publishing.report_on(comparison, label),
        artifact=name,
        own=_own(found, run, folders, changed, label) if changed else None,
    )


def _own(
    found: Measured, run: Run, folders: Folders, changed: list[Changed], label: str
) -> Comparison | None:
    """Judge by the baselines that the pull request would leave; they may be none at all."""
    try:
        brought = edited.contents(found.client, changed, folders.baselines)
        with edited.written(brought, folders.baselines) as root:
            own = dataclasses.replace(folders, baselines=root)
            return _judged(run, own, label)
    except CiPerfError:
        return None


def _judged(run: Run, folders: Folders, label: str) -> Comparison:
    rules = judging.rules(folders.workloads, run.suite, folders.baselines, run.environment.hard)
    with fetching.distrusting(label):
        return judging.against_baselines(run, folders.baselines, label=label, rules=rules)
