"""`ci-perf publish`: show on GitHub what was found."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from ci_perf.cli import options
from ci_perf.errors import ExitCode
from ci_perf.pull_request import posting, publish

_Command = TypeVar("_Command", bound=Callable[..., Any])

_WISHES = (
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


def wishes(command: _Command) -> _Command:
    """Add the options that say where a report is shown, and how: `ci-perf report` has them, too."""
    for option in reversed(_WISHES):
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
@wishes
def command(
    *,
    comparisons: tuple[Path, ...],
    comment: bool,
    check: bool,
    status: bool,
    summary: bool,
    skip_if_unchanged: bool,
    require_report: bool,
    key: str | None,
    workloads: Path,
    baselines: Path,
) -> int:
    """Show on GitHub what was found: a comment, the job summary, a check.

    COMPARISON is what `ci-perf compare --format json` wrote: one file per machine. What is posted
    depends on the event of the job (docs/github.md); outside of GitHub Actions the report goes to
    stdout. GITHUB_TOKEN is the token to post with.

    The exit code is that of the comparisons, whether or not GitHub could be told.
    """
    reports = publish.read(comparisons, key)
    wishes = posting.Wishes(
        comment=comment,
        check=check,
        status=status,
        summary=summary,
        skip_if_unchanged=skip_if_unchanged,
        key=key,
        workloads=workloads,
        baselines=baselines,
    )
    problems = publish.publish(reports, wishes)
    if problems and require_report:
        return ExitCode.NO_ANSWER
    return publish.exit_code(reports)
