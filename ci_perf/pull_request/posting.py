"""Post reports to a pull request: the comment, checks that its event allows.

A failure here is noted and told; it changes no verdict.
"""

import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from ci_perf import suite
from ci_perf.errors import CiPerfError, ExitCode
from ci_perf.gate import Notify
from ci_perf.github import access, checks, pulls, report_comment, sections
from ci_perf.github.access import Client
from ci_perf.github.actions import Event, EventKind
from ci_perf.github.checks import Annotation, CheckRun, Conclusion
from ci_perf.github.pulls import ChangedFile, OpenPull
from ci_perf.github.report_comment import CommentOutcome, PostedComment
from ci_perf.model.comparison import Comparison, Verdict
from ci_perf.pull_request import baseline_changes, check_record
from ci_perf.pull_request.check_record import CheckRecord
from ci_perf.pull_request.reports import PublishOptions, Report
from ci_perf.report import accept_help, explanations, publication
from ci_perf.report.accept_help import AcceptHint
from ci_perf.report.escape import Markdown
from ci_perf.report.publication import Extras, Origin

_UNDECIDED = {Verdict.INCONCLUSIVE, Verdict.LIKELY_SLOWER, Verdict.UNCONFIRMED}
# Verdicts of runs that may be accepted, and that accepting changes something for.
_ACCEPTABLE = set(Verdict) - {Verdict.UNCHANGED, Verdict.INVALID, Verdict.INCONCLUSIVE}
_NOTHING = PostedComment(outcome=CommentOutcome.SKIPPED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What is reported, where, and what went wrong so far.

    ``notify`` is given what a person at the log should know.
    """

    reports: Sequence[Report]
    options: PublishOptions
    environment: Mapping[str, str]
    event: Event
    notify: Notify
    problems: list[str] = field(default_factory=list)
    is_judged_by_base: bool = False

    @contextmanager
    def noting(self) -> Iterator[None]:
        """Note what goes wrong inside, and go on."""
        with noting(self.problems, self.environment, self.notify):
            yield

    def origin(self, pull: OpenPull | None) -> Origin:
        """Say where the comparisons were measured, and for which branch they are judged."""
        return Origin(
            url=self.event.run.url,
            attempt=self.event.run.attempt,
            is_fork=pull.is_fork if pull else self.event.is_fork,
            base=self.base(pull),
            history_url=self.options.history_url,
        )

    def base(self, pull: OpenPull | None) -> str:
        """Name the branch that a pull request is judged for.

        That is the branch of this job where this job judges, else the base when the event happened.
        """
        if pull is None:
            return ""
        known = self.event.branch if self.is_judged_by_base else self.event.base
        return known or pull.base_branch


@dataclass(frozen=True, slots=True, kw_only=True)
class _Target:
    """The pull request that is reported on, and what it does to baselines."""

    pull: OpenPull
    edits: Sequence[ChangedFile]


@contextmanager
def noting(problems: list[str], environment: Mapping[str, str], notify: Notify) -> Iterator[None]:
    """Note what goes wrong inside, and go on: a report that fails is no verdict."""
    try:
        yield
    except CiPerfError as error:
        problems.append(str(error))
    except Exception as error:  # noqa: BLE001  a bug of ours must not change the verdict either
        token = environment.get("GITHUB_TOKEN") or "\0"
        notify(traceback.format_exc().replace(token, "***"))
        problems.append(f"this is a bug in ci-perf, please report it ({type(error).__name__})")


def post(job: Job) -> PostedComment:
    """Write to GitHub what the options ask for and the event allows.

    Return what became of the comment.
    """
    options, event = job.options, job.event
    if event.kind is EventKind.NONE or not (options.comment or options.check):
        return _NOTHING
    if event.is_read_only:
        job.notify(
            "nothing posted: the token of a pull request from a fork, or of Dependabot, may only "
            "read; docs/github.md shows the job that may post. The report is in the job summary"
        )
        return _NOTHING
    has_pull = bool(event.pull or event.head) and not event.is_closed
    if not has_pull and options.comment:
        job.notify("no comment: no open pull request belongs to this event")
    if not has_pull and not (event.sha and options.check):
        return _NOTHING
    client = Client(access.of_job(job.environment, job.event.repository))
    return _post(job, client, has_pull=has_pull)


def _post(job: Job, client: Client, *, has_pull: bool) -> PostedComment:
    """Post the comment and checks; a failure of one keeps no other from being posted."""
    posted, target, options = _NOTHING, None, job.options
    with job.noting():
        target = _target(job, client) if has_pull else None
        if has_pull and options.comment:
            posted = _comment(job, client, target)
    if options.check and (sha := _sha(job, target)):
        with job.noting():
            _put_checks(job, client, target, sha)
    return posted


def _target(job: Job, client: Client) -> _Target | None:
    pull = pulls.find(client, job.event)
    if pull is None:
        return None
    edits: list[ChangedFile] = []
    with job.noting():
        edits = baseline_changes.list_changes(client, pull, job.options.baselines)
    return _Target(pull=pull, edits=edits)


def _comment(job: Job, client: Client, target: _Target | None) -> PostedComment:
    posted = _NOTHING
    if target is None:
        job.notify(
            "no comment: no open pull request has the measured commit at its head; it was closed, "
            "or a newer commit will be reported"
        )
        return posted
    for key, reports in _by_key(job).items():
        posted = report_comment.put(
            client,
            target.pull.number,
            key,
            [_draft(job, report, target) for report in reports],
            is_skippable=_is_skippable(job, target, reports),
        )
        job.notify(f"comment {posted.outcome.value}" + (f": {posted.url}" if posted.url else ""))
    return posted


def _by_key(job: Job) -> dict[str, list[Report]]:
    """Group reports by the comment that they stand in."""
    groups: dict[str, list[Report]] = {}
    for report in job.reports:
        groups.setdefault(job.options.key or report.comparison.suite, []).append(report)
    return groups


def _draft(job: Job, report: Report, target: _Target) -> sections.Draft:
    origin = job.origin(target.pull)
    extras = _extras(job, report, target)
    return sections.Draft(
        name=sections.name(report.machine),
        run=job.event.run.number,
        attempt=job.event.run.attempt,
        brief=publication.brief(report.comparison, origin, extras),
        rest=lambda size: publication.rest(
            report.comparison, origin, max_bytes=size, extras=extras
        ),
        record=lambda old: _record(report, old),
    )


def _record(report: Report, old: str) -> str:
    """Return what the comment remembers of checks, this one included."""
    record = check_record.decode(old) or CheckRecord()
    record = check_record.added(record, report.comparison, pairs=report.pairs)
    return check_record.encode(record) if record.tested else ""


def _extras(job: Job, report: Report, target: _Target) -> Extras:
    """Say what the pull request does to baselines, and how its numbers become baselines."""
    run, pull = job.event.run.number, target.pull
    hint = AcceptHint(
        pull=pull.number,
        run=run,
        artifact=report.artifact,
        baselines=str(baseline_changes.in_repository(job.options.baselines)),
        sha="" if pull.is_fork else pull.sha,
    )
    steps = accept_help.folded(hint) if run and report.comparison.verdict in _ACCEPTABLE else ""
    edits = publication.baseline_note(
        [file.path for file in target.edits],
        report.by_own_baselines,
        is_judged_by_base=job.is_judged_by_base,
    )
    return Extras(
        note=Markdown(
            "\n\n".join(filter(None, (publication.trust_note(report.trust_notes), edits)))
        ),
        folded=Markdown(steps),
    )


def extras_without_pull(report: Report) -> Extras:
    """Say what is not trusted, where nothing is known of a pull request."""
    return Extras(note=publication.trust_note(report.trust_notes), folded=Markdown(""))


def _is_skippable(job: Job, target: _Target, reports: Sequence[Report]) -> bool:
    is_quiet = all(map(_is_quiet, reports)) and not target.edits
    return job.options.skip_if_unchanged and is_quiet


def _is_quiet(report: Report) -> bool:
    is_fine = report.comparison.exit_code == ExitCode.OK and not report.trust_notes
    is_same_gate = not report.comparison.gate_changes
    return is_fine and is_same_gate and report.comparison.verdict is Verdict.UNCHANGED


def _sha(job: Job, target: _Target | None) -> str:
    """Choose the commit that a check hangs on: never one that was not measured."""
    if job.event.sha:
        return job.event.sha
    measured = {report.comparison.head.source.commit for report in job.reports}
    if target is not None and measured == {target.pull.sha}:
        return target.pull.sha
    job.notify("no check: it is not known which commit of GitHub was measured")
    return ""


def _put_checks(job: Job, client: Client, target: _Target | None, sha: str) -> None:
    changed: frozenset[str] = frozenset()
    if target is not None:
        with job.noting():
            changed = pulls.changed_files(client, target.pull.number)
    for report in job.reports:
        with job.noting():
            made = _check(job, report, changed, target)
            job.notify(f"check {made.conclusion.value}: {checks.put_check(client, sha, made)}")


def _check(job: Job, report: Report, changed: frozenset[str], target: _Target | None) -> CheckRun:
    run, pull = job.event.run, target.pull if target else None
    origin = job.origin(pull)
    extras = _extras(job, report, target) if target else extras_without_pull(report)
    return CheckRun(
        name=report.name,
        identity=f"ci-perf/{run.number}/{run.attempt}/{job.options.key or ''}",
        conclusion=_conclusion(report.comparison),
        title=publication.title(report.comparison, base=job.base(pull)),
        summary=publication.whole(
            report.comparison, origin, max_bytes=checks.MAX_CHARS, extras=extras
        ),
        annotations=_annotations(job, report.comparison, changed),
        url=run.url,
    )


def _conclusion(comparison: Comparison) -> Conclusion:
    """Translate the exit code; undecided, or with another gate, it neither passes nor blames."""
    if comparison.exit_code != ExitCode.OK:
        return Conclusion.FAILURE
    is_open = comparison.verdict in _UNDECIDED or bool(comparison.gate_changes)
    return Conclusion.NEUTRAL if is_open else Conclusion.SUCCESS


def _annotations(job: Job, comparison: Comparison, changed: frozenset[str]) -> list[Annotation]:
    """Show findings beside workload files, and causes at their lines: in changed files only."""
    files = _files(job, comparison) if changed else {}
    annotations = []
    for note in publication.file_notes(comparison):
        name = files.get(note.workload, f"{note.workload.partition('.')[0]}.py")
        path = str(PurePosixPath(job.options.workloads, name))
        if path in changed:
            annotations.append(
                Annotation(path=path, level=note.level, title=note.title, message=note.message)
            )
    annotations += [
        Annotation(
            path=note.path, line=note.line, level="warning", title=note.title, message=note.message
        )
        for note in explanations.line_notes(comparison.rows)
        if note.path in changed
    ]
    return annotations


def _files(job: Job, comparison: Comparison) -> dict[str, str]:
    """Name the file of each workload; none, where suite.toml cannot be read."""
    folder = job.options.workloads
    try:
        plan = suite.plan(folder, comparison.suite, root=folder)
    except CiPerfError:
        return {}
    return {workload.id: PurePosixPath(workload.file).name for workload in plan.workloads}
