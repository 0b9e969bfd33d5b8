"""`ci-perf report`: show on GitHub what another workflow run has measured, judged again here."""

import os
from pathlib import Path

import click

from ci_perf.cli import output, publish_command
from ci_perf.errors import ExitCode
from ci_perf.pull_request import fetch, posting, publish, rejudge
from ci_perf.pull_request.rejudge import Folders


@click.command("report")
@click.option(
    "--run-id",
    type=click.IntRange(min=1),
    required=True,
    metavar="ID",
    help="The workflow run that has measured: github.event.workflow_run.id.",
)
@fetch.some_artifacts
@fetch.workflow
@click.option("--suite", metavar="NAME", help="Refuse a run of any other suite.")
@publish_command.wishes
def command(
    *,
    run_id: int,
    artifact: tuple[str, ...],
    workflow: str,
    suite: str | None,
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
    """Show on GitHub what another workflow run has measured, judged again here.

    The second of two stages, for pull requests from forks: it holds a token (GITHUB_TOKEN), runs
    none of their code, and believes numbers, not verdicts. --baselines and --workloads are folders
    of the base branch. Nothing is posted where the pull request is closed or has moved on.

    The exit code is that of `ci-perf publish`; 2 or 3 where what was uploaded cannot be used.
    """
    found = rejudge.find(os.environ, run_id, workflow=workflow)
    if found is None:
        output.say("nothing to report: no open pull request has the measured commit at its head")
        return ExitCode.OK
    folders = Folders(baselines=baselines, workloads=workloads)
    reports = rejudge.reports(found, artifact, folders, suite=suite, key=key)
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
    problems = publish.publish(reports, wishes, measured_by=found.event)
    if problems and require_report:
        return ExitCode.NO_ANSWER
    return publish.exit_code(reports)
