"""Publish reports: on stdout, on the page of the run, to later steps of the job, and on GitHub."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from ci_perf.gate import Notify
from ci_perf.github import actions
from ci_perf.github.actions import Event
from ci_perf.github.report_comment import CommentOutcome, PostedComment
from ci_perf.model.comparison import worst
from ci_perf.pull_request import posting, reports
from ci_perf.pull_request.posting import Job
from ci_perf.pull_request.reports import PublishOptions, Report
from ci_perf.pull_request.trust import MeasuredPull
from ci_perf.report import markdown, publication
from ci_perf.system import files


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
    problems: list[str] = []
    # Until the event is known, one that allows nothing but the job summary.
    event = Event(run=actions.RunReference(number=0, attempt=1, url=""))
    with posting.noting(problems, environment, notify):
        event = measured.event if measured else _read_event(environment, event)
    job = Job(
        reports=published,
        options=options,
        environment=environment,
        event=event,
        notify=notify,
        problems=problems,
        measured=measured,
    )
    for text in _results(job):
        show(text)
    posted = PostedComment(outcome=CommentOutcome.SKIPPED)
    with job.noting():
        _write_summary(job)
    with job.noting():
        posted = posting.post(job)
    with job.noting():
        _write_outputs(job, posted)
    return problems


def _read_event(environment: Mapping[str, str], unknown: Event) -> Event:
    if not actions.is_github_actions(environment):
        return unknown
    path = environment.get("GITHUB_EVENT_PATH", "")
    return actions.read_event(environment, files.read_text(Path(path)) if path else "")


def _results(job: Job) -> list[str]:
    """Return whole reports where there is no page of a run to show them, else headlines."""
    if job.measured is not None or actions.is_github_actions(job.environment):
        return [
            f"{report.name}: {publication.write_title(report.comparison)}" for report in job.reports
        ]
    return [markdown.render(report.comparison) for report in job.reports]


def _write_summary(job: Job) -> None:
    """Put the whole report on the page of the run."""
    target = job.environment.get("GITHUB_STEP_SUMMARY")
    if not target or not job.options.summary:
        return
    origin = job.origin(None)
    share = actions.free_summary_bytes(Path(target)) // len(job.reports)
    for report in job.reports:
        text = publication.render_whole(
            report.comparison,
            origin,
            max_bytes=share - len("\n"),
            extras=posting.add_extras(job, report),
            body=report.body,
        )
        actions.add_to_summary(Path(target), text)


def _write_outputs(job: Job, posted: PostedComment) -> None:
    """Tell later steps of the job the verdict, the exit code and where the comment is."""
    target = job.environment.get("GITHUB_OUTPUT")
    if not target:
        return
    values = {
        "verdict": worst(report.comparison.verdict for report in job.reports).value,
        "exit-code": str(reports.exit_code(job.reports)),
        "comment-url": posted.url,
    }
    actions.write_outputs(Path(target), values)
