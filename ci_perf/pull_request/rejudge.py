"""The steps of `ci-perf report`: what a workflow run has measured, judged again by us.

Whoever measured may have said anything of it. Its numbers are all that is taken from there;
baselines and limits are those of the folders that this job has checked out.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ci_perf.cli import output
from ci_perf.errors import CiPerfError, RefusedError
from ci_perf.gate import compare
from ci_perf.github import access, pulls, runs
from ci_perf.github.actions import Event
from ci_perf.github.client import Client
from ci_perf.github.pulls import ChangedFile, OpenPull
from ci_perf.model.comparison import Comparison
from ci_perf.model.run import Run
from ci_perf.pull_request import baseline_changes, fetch, publish, trust
from ci_perf.pull_request.posting import Report
from ci_perf.pull_request.trust import Believed
from ci_perf.report import pull_request_notes
from ci_perf.report.phrases import Phrase


@dataclass(frozen=True, slots=True, kw_only=True)
class Folders:
    """Where baselines and limits are: in a checkout of the base branch."""

    baselines: Path
    workloads: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A workflow run that measured a pull request that is still open with that commit.

    ``branch`` is the one that judges: its checkout holds the baselines, and pairs count against
    what lies in the history of its commit ``base``.
    """

    client: Client
    run: runs.WorkflowRun
    event: Event
    pull: OpenPull
    branch: str
    base: str


def find(environment: Mapping[str, str], run_id: int, *, workflow: str) -> Measured | None:
    """Find out which pull request a run measured; `None` where that has moved on.

    Raises GithubError, MissingError, UsageError and RefusedError: not a run of pull requests.
    """
    repository = access.job_repository(environment)
    client = Client(access.of_job(environment, repository))
    run = runs.find_run(client, run_id)
    runs.check_run(run, workflow=workflow)
    event = run.as_event(repository, environment.get("GITHUB_REF_NAME", ""))
    pull = pulls.find(client, event) if run.head else None
    if pull is None:
        return None
    branch, base = _judging(environment, pull)
    return Measured(client=client, run=run, event=event, pull=pull, branch=branch, base=base)


def _judging(environment: Mapping[str, str], pull: OpenPull) -> tuple[str, str]:
    """Return the branch that judges, and its commit: those of this job, not the author's choice.

    The base of a pull request can be changed after it was judged.
    """
    branch = environment.get("GITHUB_REF_NAME", "")
    if branch in ("", pull.base_branch):
        return pull.base_branch, pull.base
    return branch, environment.get("GITHUB_SHA", "")


def reports(
    found: Measured, names: Sequence[str], folders: Folders, *, suite: str | None, key: str | None
) -> list[Report]:
    """Judge what every artifact holds by the baselines of the base branch, and by the edited ones.

    What one machine has left out hides nothing of the others: they name it. Raises GithubError,
    RefusedError and InvalidFileError where nothing is left.
    """
    changed = _changed(found, folders)
    made: list[tuple[str, Report]] = []
    troubles: list[CiPerfError] = []
    for name in names:
        try:
            made.append((name, _report(found, name, folders, suite, changed)))
        except CiPerfError as error:
            troubles.append(error)
    if not made:
        raise troubles[0]
    publish.check_apart(made, key)
    return [_beside(one, troubles) for _, one in made]


def _beside(one: Report, troubles: Sequence[CiPerfError]) -> Report:
    """Return a report that names what could not be reported, and is no success then."""
    if not troubles:
        return one
    return dataclasses.replace(
        one,
        comparison=trust.without_answer(one.comparison),
        trust_notes=(
            *one.trust_notes,
            *(pull_request_notes.not_reported(str(error)) for error in troubles),
        ),
    )


def _changed(found: Measured, folders: Folders) -> list[ChangedFile]:
    """Name the baselines that the pull request changes; a verdict does not wait for that."""
    try:
        return baseline_changes.changes(found.client, found.pull, folders.baselines)
    except CiPerfError as error:
        output.say(f"not judged by baselines of the pull request itself: {error}")
        return []


def _report(
    found: Measured, name: str, folders: Folders, suite: str | None, changed: list[ChangedFile]
) -> Report:
    run = fetch.measured(found.client, found.run.number, name)
    label = fetch.label(found.run.number, name)
    if suite is not None and run.suite != suite:
        raise RefusedError(f"{label}: expected suite {suite!r}, found {run.suite!r}")
    believed = trust.of(found.client, run, base=found.base)
    comparison, doubted = _doubted(found, run, believed, _judged(believed.run, folders, label))
    return dataclasses.replace(
        publish.report_on(comparison, label),
        artifact=name,
        own=_own(found, believed.run, folders, changed, label) if changed else None,
        trust_notes=doubted,
    )


def _doubted(
    found: Measured, run: Run, believed: Believed, comparison: Comparison
) -> tuple[Comparison, tuple[Phrase, ...]]:
    """Say what is doubtful, and take from the comparison the answer that it cannot give."""
    pull = found.pull
    is_other = pull.base_branch != found.branch
    branch = (pull_request_notes.other_branch(pull.base_branch, found.branch),) if is_other else ()
    source = trust.doubted_source(run, pull.sha)
    unanswered: tuple[Phrase, ...] = ()
    if pull.is_fork or is_other or believed.trust_notes:
        refused = is_other or bool(believed.trust_notes)
        unanswered = trust.unproven(comparison, are_pairs_refused=refused)
    if pull.is_fork and source:
        comparison = trust.of_other_code(comparison)
    if pull.is_fork:
        unanswered = (*unanswered, *trust.incomparable(comparison))
    if unanswered:
        comparison = trust.without_answer(comparison)
    return comparison, (*branch, *source, *believed.trust_notes, *unanswered)


def _own(
    found: Measured, run: Run, folders: Folders, changed: list[ChangedFile], label: str
) -> Comparison | None:
    """Judge by the baselines that the pull request would leave; they may be anything at all."""
    try:
        brought = baseline_changes.contents(found.client, changed, folders.baselines)
        with baseline_changes.written(brought, folders.baselines) as root:
            own = dataclasses.replace(folders, baselines=root)
            return _judged(run, own, label)
    except Exception as error:  # noqa: BLE001  whatever it brings, the verdict itself stands
        output.say(f"not judged by the baselines of the pull request itself: {error}")
        return None


def _judged(run: Run, folders: Folders, label: str) -> Comparison:
    rules = compare.rules(
        folders.workloads, run.suite, folders.baselines, run.environment.hard, notify=output.say
    )
    with fetch.distrusting(label):
        return compare.against_baselines(run, folders.baselines, label=label, rules=rules)
