"""Judge again what a workflow run has measured: the job with the token trusts its numbers only.

Whoever measured may have said anything. Baselines and limits are those of the folders that this
job has checked out.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from ci_perf import suite
from ci_perf.api_types import Notify
from ci_perf.baselines import layout, summaries
from ci_perf.errors import CiPerfError, RefusedError
from ci_perf.gate import compare, own_gate
from ci_perf.github import actions, pulls, report_comment, runs
from ci_perf.github.client import Access, Client
from ci_perf.github.commits import GithubTree
from ci_perf.github.pulls import ChangedFile
from ci_perf.judging import rules
from ci_perf.model.comparison import Comparison
from ci_perf.model.gate_change import BaselineEdit
from ci_perf.model.run import Run
from ci_perf.program.tree_sources import FolderTree
from ci_perf.pull_request import baseline_changes, check_record, fetch, reports, trust
from ci_perf.pull_request.check_record import CheckRecord
from ci_perf.pull_request.reports import Report
from ci_perf.pull_request.trust import MeasuredPull
from ci_perf.report.escape import Phrase, Sentence
from ci_perf.report.sentences import say


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeOptions:
    """How runs are judged: by folders of a checkout of the base branch.

    Runs of another suite than ``suite`` are refused, if it is named. ``notify`` is given what a
    person at the log should know.
    """

    baselines: Path
    workloads: Path
    suite: str | None = None
    paused_until: str = ""
    notify: Notify


def find(
    environment: Mapping[str, str], run_id: int, *, workflow: str, notify: Notify
) -> MeasuredPull | None:
    """Find the pull request that a run measured; `None` where its head is another commit by now.

    Raises GithubError, MissingError, UsageError and RefusedError: not a run of pull requests.
    """
    client = Client(Access.from_job(environment))
    run = runs.find_run(client, run_id)
    runs.check_run(run, workflow=workflow)
    event = actions.event_of_run(environment, run)
    pull = pulls.find(client, event)
    if pull is None:
        return None
    changed: list[ChangedFile] = []
    try:
        changed = pulls.changes(client, pull.number)
    except CiPerfError as error:  # a verdict does not wait for that
        notify(f"what the pull request changes is not known: {error}")
    # An author can change the base of a pull request after it was judged, so this job's counts.
    branch, base = event.branch, environment.get("GITHUB_SHA", "")
    if branch in ("", pull.base.ref):
        branch, base = pull.base.ref, pull.base.sha
    return MeasuredPull(
        client=client, run=run, event=event, pull=pull, files=changed, branch=branch, base=base
    )


def judge(
    measured: MeasuredPull, artifacts: Sequence[str], options: JudgeOptions, *, key: str | None
) -> list[Report]:
    """Judge the run in every artifact by the baselines of the base branch, and by edited ones.

    An artifact that cannot be judged hides nothing of the others: their reports name it. Raises
    GithubError, RefusedError and InvalidFileError where no artifact can be judged.
    """
    changed = baseline_changes.select(measured.files, options.baselines)
    judged: list[tuple[str, Report]] = []
    errors: list[CiPerfError] = []
    for artifact in artifacts:
        try:
            judged.append((artifact, _judge_artifact(measured, artifact, options, changed, key)))
        except CiPerfError as error:
            errors.append(error)
    if not judged:
        raise errors[0]
    reports.check_apart(judged, key)
    return [_add_errors(report, errors) for _, report in judged]


def _add_errors(report: Report, errors: Sequence[CiPerfError]) -> Report:
    """Return a report that names what could not be reported, and is no success then."""
    if not errors:
        return report
    missing = tuple(say("not_reported", reason=Sentence(error)) for error in errors)
    return dataclasses.replace(
        report,
        comparison=rules.deny_success(report.comparison),
        trust_notes=(*report.trust_notes, *missing),
    )


def _judge_artifact(
    measured: MeasuredPull,
    artifact: str,
    options: JudgeOptions,
    changed: list[ChangedFile],
    key: str | None,
) -> Report:
    run = fetch.fetch_run(measured.client, measured.run.id, artifact)
    label = fetch.label(measured.run.id, artifact)
    if options.suite is not None and run.suite != options.suite:
        raise RefusedError(f"{label}: expected suite {options.suite!r}, found {run.suite!r}")
    record = _read_record(measured, key or run.suite, layout.machine_key(run.environment.hard))
    run, refused = trust.trust_run(
        measured,
        run,
        record,
        baselines=options.baselines,
        workloads=options.workloads,
        notify=options.notify,
    )
    comparison = _judge_run(run, options, label)
    comparison, notes = trust.limit_answer(comparison, measured, run, record, refused=refused)
    own, edits, unread = _judge_by_own_baselines(measured, run, options, changed, label)
    comparison, unknown = _add_gate_changes(measured, run, comparison, options, edits)
    comparison = msgspec.structs.replace(comparison, paused_until=options.paused_until)
    return dataclasses.replace(
        reports.make_report(comparison, label),
        artifact=artifact,
        by_own_baselines=own,
        trust_notes=(*notes, *unread, *unknown),
        pairs=check_record.digest_pairs(run),
    )


def _read_record(measured: MeasuredPull, key: str, machine: str) -> CheckRecord | None:
    """Return what our comment remembers of this machine; `None` where it cannot be read."""
    known = report_comment.read(measured.client, measured.pull.number, key)
    records = check_record.decode(known.record) if known else {}
    return None if records is None else records.get(machine, CheckRecord())


def _add_gate_changes(
    measured: MeasuredPull,
    run: Run,
    comparison: Comparison,
    options: JudgeOptions,
    edits: Sequence[BaselineEdit],
) -> tuple[Comparison, tuple[Phrase, ...]]:
    """Add what the head changes about its own gate; or say that nobody knows."""
    inside = baseline_changes.find_in_repository(options.workloads).as_posix()
    base = FolderTree(Path(str(options.workloads.absolute()).removesuffix(f"/{inside}")))
    folder = None if comparison.suite.startswith(suite.BUILTIN) else Path(inside)
    try:
        head = GithubTree(measured.client, measured.pull.head.sha)
        how, files = run.interleaved, own_gate.list_test_files(run)
        # Tests are those of the commit that was launched: the branch may have changed since.
        start = GithubTree(measured.client, how.source.commit) if how and files else base
        project = Path(baseline_changes.find_in_repository(Path()))
        tests = own_gate.find_changed(files, start, head, folder=project)
        noted = own_gate.note(
            comparison, base=base, head=head, folder=folder, edits=edits, test_files=tests
        )
    except CiPerfError as error:
        return comparison, (say("not_reported", reason=Sentence(f"changes of the gate: {error}")),)
    return noted, ()


def _judge_by_own_baselines(
    measured: MeasuredPull, run: Run, options: JudgeOptions, changed: list[ChangedFile], label: str
) -> tuple[Comparison | None, tuple[BaselineEdit, ...], tuple[Phrase, ...]]:
    """Judge by the baselines that the pull request would leave, and say what becomes of each.

    They may be anything at all.
    """
    if not changed:
        return None, (), ()
    try:
        contents = baseline_changes.read_contents(measured.client, changed, options.baselines)
        with baseline_changes.write_temporarily(contents, options.baselines) as root:
            own = _judge_run(run, dataclasses.replace(options, baselines=root), label)
            return own, summaries.edits(options.baselines, root, run.suite), ()
    except Exception as error:  # noqa: BLE001  whatever it brings, the verdict itself stands
        options.notify(f"not judged by the baselines of the pull request itself: {error}")
        return (
            None,
            (),
            (say("not_reported", reason=Sentence("what baselines become; the log says why")),),
        )


def _judge_run(run: Run, options: JudgeOptions, label: str) -> Comparison:
    machine = run.environment.hard
    rules = compare.rules(
        options.workloads, run.suite, options.baselines, machine, notify=options.notify
    )
    rules = dataclasses.replace(rules, known=tuple(rules.limits.workloads))
    with fetch.refuse_odd_numbers(label):
        return compare.against_baselines(run, options.baselines, label=label, rules=rules)
