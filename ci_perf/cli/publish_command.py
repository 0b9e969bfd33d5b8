"""`ci-perf publish`: show comparisons on GitHub."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from ci_perf.cli import console, options
from ci_perf.errors import ExitCode
from ci_perf.github import actions
from ci_perf.github.actions import Event
from ci_perf.pull_request import publish, reports
from ci_perf.pull_request.reports import PublishOptions, Report
from ci_perf.report import escape

_Command = TypeVar("_Command", bound=Callable[..., Any])
_MAX_PROBLEM_CHARS = 1_000

_OPTIONS = (
    click.option(
        "--comment/--no-comment",
        default=True,
        show_default=True,
        help="Keep one comment on the pull request up to date.",
    ),
    click.option("--check", is_flag=True, help="Report a check run on the commit, too."),
    click.option(
        "--status", is_flag=True, help="Report a commit status: for tokens without checks."
    ),
    click.option(
        "--summary/--no-summary",
        default=True,
        show_default=True,
        help="Put the whole report on the page of the run.",
    ),
    click.option(
        "--skip-if-unchanged",
        is_flag=True,
        help="Begin no comment while nothing has changed; one that is there is kept up to date.",
    ),
    click.option(
        "--require-report",
        is_flag=True,
        help="End with exit code 3 when the report could not be shown.",
    ),
    click.option(
        "--key",
        metavar="NAME",
        help="Tells this comment from another one of ours; by default the name of the suite.",
    ),
    options.workloads,
    options.baselines,
)


def publish_options(command: _Command) -> _Command:
    """Give a command the options that say where and how a report is shown: see PublishOptions."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


@click.command("publish")
@click.argument(
    "comparisons",
    nargs=-1,
    required=True,
    type=click.Path(path_type=Path),
    metavar="COMPARISON...",
)
@publish_options
def command(*, comparisons: tuple[Path, ...], require_report: bool, **publishing: Any) -> int:  # noqa: ANN401  the fields of PublishOptions
    """Show on GitHub what was found: a comment, the job summary, a check.

    COMPARISON is what `ci-perf compare --format json` wrote: one file per machine. What is posted
    depends on the event of the job (docs/github.md); outside of GitHub Actions the report goes to
    stdout. GITHUB_TOKEN is the token to post with.

    The exit code is that of the comparisons, whether or not GitHub could be told.
    """
    options = PublishOptions(**publishing)
    return show(reports.read(comparisons, options.key), options, require_report=require_report)


def show(
    published: Sequence[Report],
    options: PublishOptions,
    *,
    require_report: bool,
    measured_by: Event | None = None,
) -> int:
    """Publish reports, and return the exit code of the command. See `publish.publish`."""
    problems = publish.publish(
        published,
        options,
        environment=os.environ,
        show=lambda text: console.emit(text, output=None),
        notify=console.say,
        measured_by=measured_by,
    )
    is_on_github = measured_by is not None or actions.is_github_actions(os.environ)
    for problem in problems:
        _warn(f"not reported: {problem}", is_on_github=is_on_github)
    if problems and require_report:
        return ExitCode.NO_ANSWER
    return reports.exit_code(published)


def _warn(text: str, *, is_on_github: bool) -> None:
    """Show a warning where a person sees it: on the page of the run, if there is one."""
    if is_on_github:
        click.echo(actions.warning(escape.clean(text, limit=_MAX_PROBLEM_CHARS)), err=True)
    else:
        console.say(f"warning: {text}")
