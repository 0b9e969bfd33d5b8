"""Post reports to a pull request: the comment and the checks that its event allows.

A failure here is noted and told; it changes no verdict.
"""

import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import PurePosixPath

from ci_perf import suite
from ci_perf.errors import CiPerfError, ExitCode
from ci_perf.features.explain.report import list_line_notes
from ci_perf.gate import Notify
from ci_perf.github import checks, pulls, report_comment
from ci_perf.github.actions import Event
from ci_perf.github.answers import PullRequest
from ci_perf.github.checks import Annotation, CheckRun, Conclusion
from ci_perf.github.client import Access, Client
from ci_perf.github.pulls import ChangedFile
from ci_perf.github.report_comment import CommentOutcome, Draft, PostedComment
from ci_perf.model.comparison import Code, Comparison, Verdict
from ci_perf.pull_request import baseline_changes, check_record
from ci_perf.pull_request.check_record import CheckRecord
from ci_perf.pull_request.rejudge import MeasuredPull
from ci_perf.pull_request.reports import PublishOptions, Report
from ci_perf.report import accept_help, publication
from ci_perf.report.accept_help import AcceptHint
from ci_perf.report.escape import Markdown
from ci_perf.report.publication import Extras, Origin

_UNDECIDED = {Verdict.INCONCLUSIVE, Verdict.LIKELY_SLOWER}
# Of a row without an answer, by which a baseline starts afresh if somebody accepts the run.
_STARTS_AFRESH = {Code.NOT_COMPARABLE, Code.HISTORY_ALONE}
# For the sentence that counts the machines that are shown.
_END_BYTES = 40
_NOTHING = PostedComment(outcome=CommentOutcome.SKIPPED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What is reported, where, and what went wrong so far.

    ``measured`` is the run that this job has judged again; then the verdicts are by the baselines
    of the base branch. ``notify`` is given what a person at the log should know.
    """

    reports: Sequence[Report]
    options: PublishOptions
    environment: Mapping[str, str]
    event: Event
    notify: Notify
    problems: list[str] = field(default_factory=list)
    measured: MeasuredPull | None = None

    @contextmanager
    def noting(self) -> Iterator[None]:
        """Note what goes wrong inside, and go on."""
        with noting(self.problems, self.environment, self.notify):
            yield

    def origin(self, pull: PullRequest | None) -> Origin:
        """Say where the comparisons were measured, and for which branch they are judged."""
        return Origin(
            url=self.event.run.url,
            attempt=self.event.run.attempt,
            is_fork=pull.is_fork if pull else self.event.is_fork,
            base=self.base(pull),
            history_url=self.options.history_url,
        )

    def base(self, pull: PullRequest | None) -> str:
        """Name the branch that a pull request is judged for.

        That is the branch of this job where this job judges, else the base when the event happened.
        """
        if pull is None:
            return ""
        known = self.event.branch if self.measured is not None else self.event.base
        return known or pull.base.ref


@dataclass(frozen=True, slots=True, kw_only=True)
class _Target:
    """Where GitHub is told: the pull request, if there is one, and the files that it changes."""

    client: Client
    pull: PullRequest | None = None
    files: Sequence[ChangedFile] = ()
    edits: Sequence[ChangedFile] = ()


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

    Return what became of the comment. A failure of it keeps no check from being posted.
    """
    options, event = job.options, job.event
    if not event.repository or not (options.comment or options.check):
        return _NOTHING
    if event.is_read_only:
        job.notify(
            "nothing posted: the token of a pull request from a fork, or of Dependabot, may only "
            "read; docs/github.md shows the job that may post. The report is in the job summary"
        )
        return _NOTHING
    has_pull = bool(event.pull or event.measured) and not event.is_closed
    if not has_pull and options.comment:
        job.notify("no comment: no open pull request belongs to this event")
    if not has_pull and not (event.sha and options.check):
        return _NOTHING
    posted = _NOTHING
    target = _find_target(job, has_pull=has_pull)
    if has_pull and options.comment:
        with job.noting():
            posted = _comment(job, target)
    if options.check and (sha := _choose_commit(job, target)):
        for report in job.reports:
            with job.noting():
                check = _make_check(job, report, target)
                url = checks.put_check(target.client, sha, check)
                job.notify(f"check {check.conclusion.value}: {url}")
    return posted


def add_extras(job: Job, report: Report, target: _Target | None = None) -> Extras:
    """Say what is not trusted, what the pull request does to baselines, and how to accept."""
    trust = publication.trust_note(report.trust_notes)
    if target is None or target.pull is None:
        return Extras(note=trust, folded=Markdown(""))
    run, pull = job.event.run.number, target.pull
    hint = AcceptHint(
        pull=pull.number,
        run=run,
        artifact=report.artifact,
        baselines=str(baseline_changes.in_repository(job.options.baselines)),
        sha="" if pull.is_fork else pull.head.sha,
    )
    steps = accept_help.folded(hint) if run and _may_be_accepted(report.comparison) else ""
    edits = publication.baseline_note(
        [file.path for file in target.edits],
        report.by_own_baselines,
        is_judged_by_base=job.measured is not None,
    )
    note = "\n\n".join(filter(None, (trust, edits)))
    return Extras(note=Markdown(note), folded=Markdown(steps))


def _may_be_accepted(comparison: Comparison) -> bool:
    """Whether accepting the run would change something."""
    if comparison.validity.is_run_invalid:
        return False
    is_moved = comparison.verdict not in {Verdict.UNCHANGED, Verdict.INCONCLUSIVE}
    return is_moved or any(row.code in _STARTS_AFRESH for row in comparison.rows if row.gate)


def _find_target(job: Job, *, has_pull: bool) -> _Target:
    """Ask GitHub once for the pull request and its files; whoever judged has asked already."""
    measured, files = job.measured, list[ChangedFile]()
    pull: PullRequest | None = None
    client = measured.client if measured is not None else Client(Access.from_job(job.environment))
    if measured is not None:
        pull, files = measured.pull, measured.files
    elif not has_pull or (pull := pulls.find(client, job.event)) is None:
        return _Target(client=client)
    else:
        with job.noting():
            files = pulls.changes(client, pull.number)
    edits = baseline_changes.select(files, job.options.baselines)
    return _Target(client=client, pull=pull, files=files, edits=edits)


def _comment(job: Job, target: _Target) -> PostedComment:
    posted = _NOTHING
    if target.pull is None:
        job.notify(
            "no comment: no open pull request has the measured commit at its head; it was closed, "
            "or a newer commit will be reported"
        )
        return posted
    groups: dict[str, list[Report]] = {}
    for report in sorted(job.reports, key=lambda report: report.machine):
        groups.setdefault(job.options.key or report.comparison.suite, []).append(report)
    for key, reports in groups.items():
        draft = Draft(
            run=job.event.run.number,
            attempt=job.event.run.attempt,
            text=partial(_render, job, reports, target),
            record=partial(_record, reports),
        )
        is_quiet = all(map(_is_quiet, reports)) and not target.edits
        posted = report_comment.put(
            target.client,
            target.pull.number,
            key,
            draft,
            is_skippable=job.options.skip_if_unchanged and is_quiet,
        )
        job.notify(f"comment {posted.outcome.value}" + (f": {posted.url}" if posted.url else ""))
    return posted


def _render(job: Job, reports: Sequence[Report], target: _Target, max_bytes: int) -> str:
    """Render the reports of all machines; each may have an even share of what others leave."""
    text = publication.together([(report.machine, report.comparison) for report in reports])
    for position, report in enumerate(reports):
        left = max_bytes - len(text.encode())
        share = publication.whole(
            report.comparison,
            job.origin(target.pull),
            max_bytes=left // (len(reports) - position) - len("\n"),
            extras=add_extras(job, report, target),
            rendered=report.text,
        )
        if len(share.encode()) > left - _END_BYTES:
            return f"{text}{position} of {len(reports)} machines shown.\n"
        text += f"{share}\n"
    return text


def _record(reports: Sequence[Report], old: str | None) -> str:
    """Return what the comment remembers of checks, these included."""
    records = check_record.decode(old) or {}
    for report in reports:
        record = check_record.added(
            records.get(report.machine, CheckRecord()), report.comparison, pairs=report.pairs
        )
        records |= {report.machine: record} if record.tested else {}
    return check_record.encode(records)


def _is_quiet(report: Report) -> bool:
    comparison = report.comparison
    is_fine = comparison.exit_code == ExitCode.OK and not report.trust_notes
    return is_fine and not comparison.gate_changes and comparison.verdict is Verdict.UNCHANGED


def _choose_commit(job: Job, target: _Target) -> str:
    """Choose the commit that a check hangs on: never one that was not measured."""
    if job.event.sha:
        return job.event.sha
    measured = {report.comparison.head.source.commit for report in job.reports}
    if target.pull is not None and measured == {target.pull.head.sha}:
        return target.pull.head.sha
    job.notify("no check: it is not known which commit of GitHub was measured")
    return ""


def _make_check(job: Job, report: Report, target: _Target) -> CheckRun:
    run, comparison = job.event.run, report.comparison
    return CheckRun(
        name=report.name,
        identity=f"ci-perf/{run.number}/{run.attempt}/{job.options.key or ''}",
        conclusion=_conclude(comparison),
        title=publication.title(comparison, base=job.base(target.pull)),
        summary=publication.whole(
            comparison,
            job.origin(target.pull),
            max_bytes=checks.MAX_CHARS,
            extras=add_extras(job, report, target),
            rendered=report.text,
        ),
        annotations=_annotate(job, comparison, target),
        url=run.url,
    )


def _conclude(comparison: Comparison) -> Conclusion:
    """Translate the exit code; undecided, or with another gate, it neither passes nor blames."""
    if comparison.exit_code != ExitCode.OK:
        return Conclusion.FAILURE
    is_open = comparison.verdict in _UNDECIDED or bool(comparison.gate_changes)
    return Conclusion.NEUTRAL if is_open else Conclusion.SUCCESS


def _annotate(job: Job, comparison: Comparison, target: _Target) -> list[Annotation]:
    """Show findings beside workload files, and causes at their lines: in changed files only."""
    changed = {file.path for file in target.files if not file.is_removed}
    workload_files = _find_files(job, comparison) if changed else {}
    annotations = []
    for note in publication.file_notes(comparison):
        name = workload_files.get(note.workload, f"{note.workload.partition('.')[0]}.py")
        path = str(PurePosixPath(job.options.workloads, name))
        annotations.append(
            Annotation(path=path, level=note.level, title=note.title, message=note.message)
        )
    annotations += [
        Annotation(
            path=note.path, line=note.line, level="warning", title=note.title, message=note.message
        )
        for note in list_line_notes(comparison.rows)
    ]
    return [annotation for annotation in annotations if annotation.path in changed]


def _find_files(job: Job, comparison: Comparison) -> dict[str, str]:
    """Name the file of each workload; none, where suite.toml cannot be read."""
    folder = job.options.workloads
    try:
        plan = suite.plan(folder, comparison.suite, root=folder)
    except CiPerfError:
        return {}
    return {workload.id: PurePosixPath(workload.file).name for workload in plan.workloads}
