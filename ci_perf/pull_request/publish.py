"""The steps of `ci-perf publish`: what is read, and every place where it is shown."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from ci_perf.baselines import layout
from ci_perf.cli import output
from ci_perf.errors import ExitCode, InvalidFileError, UsageError
from ci_perf.github import actions
from ci_perf.github.actions import Event, EventKind
from ci_perf.github.comment import CommentOutcome, PostedComment
from ci_perf.model.comparison import Comparison, worst
from ci_perf.pull_request import posting
from ci_perf.pull_request.posting import Job, Report, Wishes
from ci_perf.report import escape, markdown, publication
from ci_perf.system import files

_UNKNOWN_MACHINE = "unknown"
_KNOWN_CODES = {ExitCode.OK, ExitCode.REGRESSED, ExitCode.NO_ANSWER}
# A thousand workloads with every metric; more is no suite, and takes minutes to show.
_MAX_ROWS = 20_000
_MAX_PROBLEM_CHARS = 1_000


def read(paths: Sequence[Path], key: str | None) -> list[Report]:
    """Read what is to be published, as if a stranger had written it.

    Raises InvalidFileError and UsageError.
    """
    found = [(str(path), report_on(files.read(path, Comparison), str(path))) for path in paths]
    check_apart(found, key)
    return [one for _, one in found]


def report_on(comparison: Comparison, name: str) -> Report:
    """Make a report of a comparison that can be shown; `name` begins every error message."""
    _check(comparison, name)
    of_machine = comparison.head.machine
    return Report(
        comparison=comparison,
        machine=layout.machine_key(of_machine) if of_machine else _UNKNOWN_MACHINE,
    )


def check_apart(found: Sequence[tuple[str, Report]], key: str | None) -> None:
    """Refuse two reports that would stand in the same place, by their names. Raises UsageError."""
    places: set[tuple[str, str]] = set()
    for name, one in found:
        place = (one.comparison.suite, one.machine)
        if place in places:
            raise UsageError(
                f"{name}: a second comparison of suite {place[0]!r} on {place[1]}; "
                "publish it with another --key"
            )
        places.add(place)
    if key is not None and len({suite for suite, _ in places}) > 1:
        raise UsageError("--key: expected comparisons of one suite; call once per suite")


def exit_code(reports: Sequence[Report]) -> int:
    """Return that of the comparisons: a regression wins, then what has no answer."""
    codes = {one.comparison.exit_code for one in reports}
    return ExitCode.REGRESSED if ExitCode.REGRESSED in codes else max(codes)


def publish(
    reports: Sequence[Report], wishes: Wishes, *, measured_by: Event | None = None
) -> list[str]:
    """Report wherever it is wished and allowed; return what went wrong.

    ``measured_by`` is what has measured, where it is known better than by the event of this job:
    then the verdicts are ours, by the baselines of the base branch.
    """
    environment, problems = dict(os.environ), list[str]()
    # Some event of GitHub's, until it is known which: that alone allows only the job summary.
    found = Event(kind=EventKind.OTHER, run=actions.RunReference(number=0, attempt=1, url=""))
    with posting.noting(problems, environment):
        found = measured_by or _event(environment)
    job = Job(
        reports=reports,
        wishes=wishes,
        environment=environment,
        event=found,
        problems=problems,
        is_judged_by_base=measured_by is not None,
    )
    _print(job)
    posted = PostedComment(outcome=CommentOutcome.SKIPPED)
    with job.noting():
        _summarise(job)
    with job.noting():
        posted = posting.post(job)
    with job.noting():
        _hand_on(job, posted)
    _warn(job)
    return problems


def _check(comparison: Comparison, path: str) -> None:
    """Refuse what the types allow and no judge would write. Raises InvalidFileError."""
    if comparison.exit_code not in _KNOWN_CODES:
        raise InvalidFileError(
            f"{path}: $.exit_code: expected 0, 1 or 3, found {comparison.exit_code}"
        )
    if len(comparison.rows) > _MAX_ROWS:
        raise InvalidFileError(
            f"{path}: $.rows: expected at most {_MAX_ROWS:,}, found {len(comparison.rows):,}"
        )
    try:
        markdown.render(comparison, max_bytes=files.MAX_BYTES)
        publication.file_notes(comparison)
    except Exception as error:  # noqa: BLE001  numbers that no judge makes break any arithmetic
        raise InvalidFileError(
            f"{path}: expected a comparison that can be shown, found numbers that cannot be "
            f"({type(error).__name__}); was it written by ci-perf?"
        ) from None


def _event(environment: Mapping[str, str]) -> Event:
    path = environment.get("GITHUB_EVENT_PATH", "")
    is_expected = actions.is_github_actions(environment) and path
    return actions.read_event(environment, files.read_text(Path(path)) if is_expected else "")


def _print(job: Job) -> None:
    """Show everything where there is no page of a run to show it, else the headlines."""
    is_alone = job.event.kind is EventKind.NONE
    for one in job.reports:
        title = f"{one.name}: {publication.title(one.comparison)}"
        output.emit(markdown.render(one.comparison) if is_alone else title, output=None)


def _summarise(job: Job) -> None:
    """Put the whole report on the page of the run."""
    target = job.environment.get("GITHUB_STEP_SUMMARY")
    if not target or not job.wishes.summary:
        return
    origin = job.origin(None)
    room = actions.free_summary_bytes(Path(target)) // len(job.reports)
    for one in job.reports:
        beside, size = posting.doubted(one), room - len("\n")
        text = publication.whole(one.comparison, origin, max_bytes=size, extras=beside)
        actions.add_to_summary(Path(target), text)


def _hand_on(job: Job, posted: PostedComment) -> None:
    """Tell later steps of the job how it came out."""
    target = job.environment.get("GITHUB_OUTPUT")
    if not target:
        return
    verdict = worst(report.comparison.verdict for report in job.reports)
    values = {
        "verdict": verdict.value,
        "exit-code": str(exit_code(job.reports)),
        "comment-url": posted.url,
    }
    actions.write_outputs(Path(target), values)


def _warn(job: Job) -> None:
    """Say what went wrong where a person will see it: on the page of the run, if there is one."""
    for problem in job.problems:
        if job.event.kind is EventKind.NONE:
            output.say(f"warning: not reported: {problem}")
        else:
            said = escape.clean(f"not reported: {problem}", limit=_MAX_PROBLEM_CHARS)
            click.echo(actions.warning(said), err=True)
