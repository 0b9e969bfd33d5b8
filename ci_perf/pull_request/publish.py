"""Publish reports: on stdout, on the page of the run, to later steps of the job, and on GitHub.

A failure here is noted and told; it changes no verdict.
"""

import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from ci_perf import hooks
from ci_perf.api_types import Notify
from ci_perf.errors import CiPerfError, ExitCode
from ci_perf.github import actions, checks, pulls, report_comment
from ci_perf.github.actions import Event
from ci_perf.github.answers import PullRequest
from ci_perf.github.checks import Annotation, CheckRun, Conclusion
from ci_perf.github.client import Access, Client
from ci_perf.github.pulls import ChangedFile
from ci_perf.github.report_comment import CommentOutcome, Draft, PostedComment
from ci_perf.model.comparison import Code, Comparison, Verdict, worst
from ci_perf.pull_request import baseline_changes, check_record, reports
from ci_perf.pull_request.check_record import CheckRecord
from ci_perf.pull_request.reports import PublishOptions, Report
from ci_perf.pull_request.trust import MeasuredPull
from ci_perf.report import accept_help, headline, markdown, publication
from ci_perf.report.accept_help import AcceptHint
from ci_perf.report.escape import Sentence, Words
from ci_perf.report.sentences import say
from ci_perf.report.sheet import make_sheet
from ci_perf.report.tables import Block, Paragraph
from ci_perf.system import files

_UNDECIDED = {Verdict.INCONCLUSIVE, Verdict.LIKELY_SLOWER}
# Of a row without an answer, by which a baseline starts afresh if somebody accepts the run.
_STARTS_AFRESH = {Code.NOT_COMPARABLE, Code.HISTORY_ALONE}
# For the sentence that counts the machines that are shown.
_END_BYTES = 40
_NOTHING = PostedComment(outcome=CommentOutcome.SKIPPED)
# Until the event is known, one that allows nothing but the job summary.
_UNKNOWN_EVENT = Event(run=actions.RunReference(number=0, attempt=1, url=""))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Target:
    """Where GitHub is told: the pull request, if there is one, and the files that it changes."""

    client: Client
    pull: PullRequest | None = None
    files: Sequence[ChangedFile] = ()
    edits: Sequence[ChangedFile] = ()


@dataclass(slots=True, kw_only=True)
class _Job:
    """What is reported, where, and what went wrong so far.

    ``measured`` is the run that this job has judged again; then the verdicts are by the baselines
    of the base branch. ``notify`` is given what a person at the log should know.
    """

    reports: Sequence[Report]
    options: PublishOptions
    environment: Mapping[str, str]
    notify: Notify
    measured: MeasuredPull | None
    event: Event = _UNKNOWN_EVENT
    target: _Target | None = None
    problems: list[str] = field(default_factory=list)

    @contextmanager
    def noting(self) -> Iterator[None]:
        """Note what goes wrong inside, and go on: a report that fails is no verdict."""
        try:
            yield
        except CiPerfError as error:
            self.problems.append(str(error))
        except Exception as error:  # noqa: BLE001  a bug of ours must not change the verdict either
            token = self.environment.get("GITHUB_TOKEN") or "\0"
            self.notify(traceback.format_exc().replace(token, "***"))
            bug = f"this is a bug in ci-perf, please report it ({type(error).__name__})"
            self.problems.append(bug)

    @property
    def pull(self) -> PullRequest | None:
        """The pull request, where one is known."""
        return self.target.pull if self.target is not None else None

    @property
    def base(self) -> str:
        """The branch that the pull request is judged for.

        That is the branch of this job where this job judges, else the base when the event happened.
        """
        if self.pull is None:
            return ""
        known = self.event.branch if self.measured is not None else self.event.base
        return known or self.pull.base.ref


def publish(
    published: Sequence[Report],
    options: PublishOptions,
    *,
    environment: Mapping[str, str],
    show: Callable[[str], None],
    notify: Notify,
    measured: MeasuredPull | None = None,
) -> list[str]:
    """Show reports wherever the options ask for it and the event allows it; return what failed.

    ``measured`` is the run that this job has judged again. `show` is given the results, `notify`
    what a person should know.
    """
    job = _Job(
        reports=published,
        options=options,
        environment=environment,
        notify=notify,
        measured=measured,
    )
    is_on_github = measured is not None or actions.is_github_actions(environment)
    with job.noting():
        job.event = measured.event if measured else _read_event(environment)
    for report in published:
        # The page of a run shows whole reports.
        title = f"{report.name}: {publication.write_title(report.comparison)}"
        show(title if is_on_github else markdown.render(report.comparison))
    # GitHub may be slow to answer: the summary does not wait for it.
    with job.noting():
        _write_summary(job)
    with job.noting():
        job.target = _find_target(job)
    posted = _NOTHING
    if job.target is not None and job.pull is not None and options.comment:
        with job.noting():
            posted = _put_comments(job, job.target, job.pull)
    if job.target is not None and options.check:
        for report in published:
            with job.noting():
                check = _make_check(job, report, job.target)
                url = checks.put_check(job.target.client, job.event.sha, check)
                notify(f"check {check.conclusion.value}: {url}")
    with job.noting():
        _write_outputs(job, posted)
    return job.problems


def _read_event(environment: Mapping[str, str]) -> Event:
    if not actions.is_github_actions(environment):
        return _UNKNOWN_EVENT
    path = environment.get("GITHUB_EVENT_PATH", "")
    return actions.read_event(environment, files.read_text(Path(path)) if path else "")


def _find_target(job: _Job) -> _Target | None:
    """Find where to post, as far as the options ask for it and the event allows it.

    GitHub is asked once for the pull request and its files; whoever judged has asked already.
    """
    options, event, measured = job.options, job.event, job.measured
    if not event.repository or not (options.comment or options.check):
        return None
    if event.is_read_only:
        job.notify(
            "nothing posted: the token of a pull request from a fork, or of Dependabot, may only "
            "read; docs/github.md shows the job that may post. The report is in the job summary"
        )
        return None
    has_pull = bool(event.pull or event.measured) and not event.is_closed
    if not has_pull and options.comment:
        job.notify("no comment: no open pull request belongs to this event")
    if not has_pull and not (event.sha and options.check):
        return None
    pull: PullRequest | None
    changed: Sequence[ChangedFile] = ()
    if measured is not None:
        client, pull, changed = measured.client, measured.pull, measured.files
    else:
        client = Client(Access.from_job(job.environment))
        if not has_pull or (pull := pulls.find(client, event)) is None:
            if has_pull and options.comment:
                job.notify(
                    "no comment: no open pull request has the measured commit at its head; it was "
                    "closed, or a newer commit will be reported"
                )
            return _Target(client=client)
        with job.noting():
            changed = pulls.changes(client, pull.number)
    edits = baseline_changes.select(changed, options.baselines)
    return _Target(client=client, pull=pull, files=changed, edits=edits)


# --- the text of a report


def _render(job: _Job, report: Report, max_bytes: int) -> str:
    """Render a report with where it is from, what is not trusted of it, and how to accept it."""
    run, pull, edits = job.event.run, job.pull, job.target.edits if job.target else ()
    is_fork = pull.is_fork if pull else job.event.is_fork
    notes = [say("fork")] if is_fork else []
    notes += [say("trust_note", note=note) for note in report.trust_notes]
    if edits:
        own = report.by_own_baselines
        notes.append(
            say(
                "edited_baselines",
                paths=[(Sentence(file.path),) for file in edits],
                is_judged_by_base=job.measured is not None,
                own=headline.summarise(make_sheet(own)) if own else (),
            )
        )
    where = say(
        "origin",
        base=job.base,
        url=Words(run.url),
        attempt=run.attempt,
        history_url=Words(job.options.history_url),
    )
    end: list[Block] = []
    if run.number and pull is not None and _may_be_accepted(report.comparison):
        hint = AcceptHint(
            pull=pull.number,
            run=run.number,
            artifact=report.artifact,
            baselines=str(baseline_changes.find_in_repository(job.options.baselines)),
            sha="" if pull.is_fork else pull.head.sha,
        )
        end.append(accept_help.fold(hint))
    return markdown.render(
        report.comparison,
        max_bytes=max_bytes,
        notes=[*notes, *([Paragraph(where, "small")] if where else ())],
        end=end,
        body=report.body,
        url=run.url,
    )


def _may_be_accepted(comparison: Comparison) -> bool:
    """Whether accepting the run would change something."""
    if comparison.validity.is_run_invalid:
        return False
    is_moved = comparison.verdict not in {Verdict.UNCHANGED, Verdict.INCONCLUSIVE}
    return is_moved or any(row.code in _STARTS_AFRESH for row in comparison.rows if row.gate)


# --- where it is shown


def _write_summary(job: _Job) -> None:
    """Put the whole report on the page of the run."""
    target = job.environment.get("GITHUB_STEP_SUMMARY")
    if target:
        share = actions.free_summary_bytes(Path(target)) // len(job.reports)
        for report in job.reports:
            actions.add_to_summary(Path(target), _render(job, report, share - len("\n")))


def _write_outputs(job: _Job, posted: PostedComment) -> None:
    """Tell later steps of the job the verdict, the exit code and where the comment is."""
    if target := job.environment.get("GITHUB_OUTPUT"):
        values = {
            "verdict": worst(report.comparison.verdict for report in job.reports).value,
            "exit-code": str(reports.worst_code(each.comparison.exit_code for each in job.reports)),
            "comment-url": posted.url,
        }
        actions.write_outputs(Path(target), values)


def _put_comments(job: _Job, target: _Target, pull: PullRequest) -> PostedComment:
    """Write one comment for each suite; return what became of the last one."""
    posted = _NOTHING
    groups: dict[str, list[Report]] = {}
    for report in sorted(job.reports, key=lambda report: report.machine):
        groups.setdefault(job.options.key or report.comparison.suite, []).append(report)
    for key, of_suite in groups.items():
        draft = Draft(
            run=job.event.run.number,
            attempt=job.event.run.attempt,
            text=partial(_render_together, job, of_suite),
            record=partial(_update_record, of_suite),
        )
        is_quiet = all(map(_is_quiet, of_suite)) and not target.edits
        is_skippable = job.options.skip_if_unchanged and is_quiet
        posted = report_comment.put(
            target.client, pull.number, key, draft, is_skippable=is_skippable
        )
        job.notify(f"comment {posted.outcome.value}" + (f": {posted.url}" if posted.url else ""))
    return posted


def _render_together(job: _Job, of_suite: Sequence[Report], max_bytes: int) -> str:
    """Render the reports of all machines; each may have an even share of what others leave."""
    text = publication.summarise_machines([(each.machine, each.comparison) for each in of_suite])
    for position, report in enumerate(of_suite):
        left = max_bytes - len(text.encode())
        share = _render(job, report, left // (len(of_suite) - position) - len("\n"))
        if len(share.encode()) > left - _END_BYTES:
            return f"{text}{position} of {len(of_suite)} machines shown.\n"
        text += f"{share}\n"
    return text


def _update_record(of_suite: Sequence[Report], old: str | None) -> str:
    """Return what the comment remembers of checks, these included."""
    records = check_record.decode(old) or {}
    for report in of_suite:
        record = check_record.add_check(
            records.get(report.machine, CheckRecord()), report.comparison, pairs=report.pairs
        )
        records |= {report.machine: record} if record.tested else {}
    return check_record.encode(records)


def _is_quiet(report: Report) -> bool:
    comparison = report.comparison
    is_unchanged = comparison.verdict is Verdict.UNCHANGED and not report.trust_notes
    return is_unchanged and headline.is_calm(comparison)


def _make_check(job: _Job, report: Report, target: _Target) -> CheckRun:
    run, comparison = job.event.run, report.comparison
    # Undecided, paused, with other numerics or another gate, a check neither passes nor blames.
    is_open = (
        comparison.verdict in _UNDECIDED
        or bool(comparison.paused_until)
        or not headline.is_calm(comparison)
    )
    conclusion = Conclusion.NEUTRAL if is_open else Conclusion.SUCCESS
    return CheckRun(
        name=report.name,
        identity=f"ci-perf/{run.number}/{run.attempt}/{job.options.key or ''}",
        conclusion=Conclusion.FAILURE if comparison.job_exit_code != ExitCode.OK else conclusion,
        title=publication.write_title(comparison, base=job.base),
        summary=_render(job, report, checks.MAX_CHARS),
        annotations=_annotate(comparison, target),
        url=run.url,
    )


def _annotate(comparison: Comparison, target: _Target) -> list[Annotation]:
    """Show causes at their lines, in changed files only."""
    changed = {file.path for file in target.files if not file.is_removed}
    rows = [finding.row for finding in make_sheet(comparison).findings]
    return [
        Annotation(path=note.path, line=note.line, title=note.title, message=note.message)
        for list_notes in map(hooks.load, hooks.find_targets("line_notes"))
        for note in list_notes(rows)
        if note.path in changed
    ]
