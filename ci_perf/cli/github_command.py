"""`ci-perf github`: the commands of a job with a token, which launch nothing."""

import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from ci_perf.cli import console, options
from ci_perf.errors import ExitCode, UsageError
from ci_perf.github import actions
from ci_perf.github.client import Access, Client
from ci_perf.model.watch import Watched
from ci_perf.pull_request import bot, check_record, loss_issues, publish, rejudge, reports
from ci_perf.pull_request.bot import BotOptions
from ci_perf.pull_request.rejudge import JudgeOptions
from ci_perf.pull_request.reports import PublishOptions, Report
from ci_perf.pull_request.trust import MeasuredPull
from ci_perf.report import escape
from ci_perf.system import files

_Command = TypeVar("_Command", bound=Callable[..., Any])
_MAX_PROBLEM_CHARS = 1_000

# What GitHub's Markdown keeps as one link, and nothing that ends it.
_ADDRESS = re.compile(r"https://[\w.~:/?#@!$&*+,;=%-]+", re.ASCII)


def _https(_context: click.Context, _parameter: click.Parameter, value: str) -> str:
    """Refuse what is no address to link to."""
    if value and not _ADDRESS.fullmatch(value):
        raise click.BadParameter(f"expected an address that begins with https://, found {value!r}")
    return value


_OPTIONS = (
    click.option(
        "--comment/--no-comment",
        default=True,
        show_default=True,
        help="Keep one comment on the pull request up to date.",
    ),
    click.option("--check", is_flag=True, help="Make a check run on the commit, too."),
    click.option(
        "--skip-if-unchanged",
        is_flag=True,
        help="Write the first comment only if a row has changed. An existing comment is updated.",
    ),
    click.option(
        "--require-report",
        is_flag=True,
        help="End with exit code 3 if GitHub refuses the report.",
    ),
    click.option(
        "--key",
        metavar="NAME",
        help="Names this comment, if a pull request has several. By default the suite.",
    ),
    click.option(
        "--history-url",
        metavar="URL",
        default="",
        callback=_https,
        help="Link to this page of `ci-perf history`.",
    ),
    options.baselines,
)


def publish_options(command: _Command) -> _Command:
    """Give a command the options that say where and how a report is shown: see PublishOptions."""
    return options.give_options(command, _OPTIONS)


@click.group("github")
def github_command() -> None:
    """Report to a pull request, and answer its comments: for jobs of GitHub Actions."""


@github_command.command("count-checks")
@click.option(
    "--key",
    metavar="NAME",
    show_default="that of the only one",
    help="The --key of `publish`. By default the name of the suite.",
)
def count_checks_command(*, key: str | None) -> int:
    """Count the earlier checks of a pull request that tested pairs.

    Run it in a job before the job that measures. GITHUB_TOKEN needs pull-requests: read. Prints the
    number from our comment, or unknown, and sets the output `checks-before`.
    """
    known = check_record.count_checks(os.environ, key, notify=console.say)
    text = "unknown" if known is None else str(known)
    console.emit(text, output=None)
    if target := os.environ.get("GITHUB_OUTPUT"):
        actions.write_outputs(Path(target), {"checks-before": text})
    return ExitCode.OK


@github_command.command("publish")
@click.argument(
    "comparisons",
    nargs=-1,
    required=True,
    type=click.Path(path_type=Path),
    metavar="COMPARISON...",
)
@publish_options
def publish_command(
    *,
    comparisons: tuple[Path, ...],
    require_report: bool,
    **options_given: Any,  # noqa: ANN401  the fields of PublishOptions
) -> int:
    """Show comparisons on GitHub: a comment, the job summary, a check.

    COMPARISON is a file of `ci-perf compare --format json`, one per machine. The event of the job
    decides what is posted (docs/github.md). Outside of GitHub Actions the report goes to stdout.
    GITHUB_TOKEN is the token to post with.

    The exit code is that of the comparisons, even if GitHub refuses the report.
    """
    options = PublishOptions(**options_given)
    return show(reports.read(comparisons, options.key), options, require_report=require_report)


def show(
    published: Sequence[Report],
    options: PublishOptions,
    *,
    require_report: bool,
    measured: MeasuredPull | None = None,
) -> int:
    """Publish reports, and return the exit code of the command. See `publish.publish`."""
    problems = publish.publish(
        published,
        options,
        environment=os.environ,
        show=lambda text: console.emit(text, output=None),
        notify=console.say,
        measured=measured,
    )
    is_on_github = measured is not None or actions.is_github_actions(os.environ)
    for problem in problems:
        _warn(f"not reported: {problem}", is_on_github=is_on_github)
    if problems and require_report:
        return ExitCode.NO_ANSWER
    return reports.worst_code(each.comparison.job_exit_code for each in published)


def _warn(text: str, *, is_on_github: bool) -> None:
    """Show a warning where a person sees it: on the page of the run, if there is one."""
    if is_on_github:
        click.echo(actions.spell_warning(escape.clean(text, limit=_MAX_PROBLEM_CHARS)), err=True)
    else:
        console.say(f"warning: {text}")


@github_command.command("rejudge")
@click.option(
    "--run-id",
    type=click.IntRange(min=1),
    required=True,
    metavar="ID",
    help="The id of the workflow run that measured: github.event.workflow_run.id.",
)
@options.artifacts
@options.workflow
@click.option("--suite", metavar="NAME", help="Refuse a run of any other suite.")
@options.workloads
@options.paused_until
@publish_options
def rejudge_command(
    *,
    run_id: int,
    artifact: tuple[str, ...],
    workflow: str,
    suite: str | None,
    workloads: Path,
    paused_until: str,
    require_report: bool,
    **options_given: Any,  # noqa: ANN401  the fields of PublishOptions
) -> int:
    """Judge the run of another workflow again, and show it on GitHub.

    The second of two stages, for pull requests from forks. It holds a token (GITHUB_TOKEN), runs no
    code of the fork, and uses only the numbers of the run. --baselines and --workloads are folders
    of the base branch. If the pull request is closed or has a newer commit, nothing is posted.

    The exit code is that of `github publish`. 2 or 3: the artifact cannot be used.
    """
    shown = PublishOptions(**options_given)
    measured = rejudge.find(os.environ, run_id, workflow=workflow, notify=console.say)
    if measured is None:
        console.say("nothing to report: no open pull request has the measured commit at its head")
        return ExitCode.OK
    judged_by = JudgeOptions(
        baselines=shown.baselines,
        workloads=workloads,
        suite=suite,
        paused_until=paused_until,
        notify=console.say,
    )
    judged = rejudge.judge(measured, artifact, judged_by, key=shown.key)
    return show(judged, shown, require_report=require_report, measured=measured)


@github_command.command("answer-comment")
@options.workflow
@click.option(
    "--asked",
    default="",
    metavar="FILE",
    help="The workflow that run, explain and bisect start. Without it, a comment can only accept.",
)
@options.artifacts
@options.baselines
@options.workloads
def answer_comment_command(
    *, workflow: str, asked: str, artifact: tuple[str, ...], baselines: Path, workloads: Path
) -> None:
    """Do what a comment on a pull request asks for, or say why not.

    For a job of the event issue_comment, in a checkout of the default branch. GITHUB_TOKEN needs
    contents: write, pull-requests: write and actions: read. The comment is `/ci-perf accept SHA
    [WORKLOAD…] ["REASON"]`. With --asked (actions: write), it may also be `run SHA [WORKLOAD…]`,
    `more SHA`, `explain SHA WORKLOAD…` or `bisect SHA GOOD WORKLOAD`. Its author must be allowed to
    push, and SHA must be the head. A refusal is answered with its reason: exit code 0.
    """
    _check_folder(baselines)
    path = os.environ.get("GITHUB_EVENT_PATH", "")
    order = bot.read_order(os.environ, files.read_text(Path(path))) if path else None
    if order is None:
        console.say("nothing to do: no new comment on a pull request that asks for something")
        return
    told = BotOptions(
        workflow=workflow,
        asked=asked,
        artifacts=artifact,
        baselines=baselines,
        workloads=workloads,
    )
    bot.answer(Client(Access.from_job(os.environ)), order, told, notify=console.say)


@github_command.command("issue")
@click.argument(
    "watches", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="WATCH..."
)
def issue_command(*, watches: tuple[Path, ...]) -> int:
    """Keep one issue for each commit that `ci-perf watch` has found.

    WATCH is a file of `ci-perf watch`, one per machine and suite: name all of them. An issue is
    opened, updated, closed when the loss is repaired or accepted, and opened again after the day of
    `accept --until`. GITHUB_TOKEN needs issues: write, contents: read and pull-requests: read.

    Exit codes: 0 done, 2 a watch of another repository, 3 GitHub refused.
    """
    client = Client(Access.from_job(os.environ))
    read = [files.read(file, Watched) for file in watches]
    for file, watched in zip(watches, read, strict=True):
        loss_issues.check_repository(client, watched, str(file))
    is_done = loss_issues.follow(client, read, os.environ, notify=console.say)
    return ExitCode.OK if is_done else ExitCode.NO_ANSWER


def _check_folder(baselines: Path) -> None:
    """Refuse a folder that no commit could hold. Raises UsageError."""
    if baselines.is_absolute() or ".." in baselines.parts or not baselines.parts:
        raise UsageError(
            f"--baselines: expected a folder of the repository, as baselines, found {baselines}"
        )
