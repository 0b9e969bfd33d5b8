"""`ci-perf report`: judge again what another workflow run has measured, and show it on GitHub."""

import os
from typing import Any

import click

from ci_perf.cli import console, options, publish_command
from ci_perf.errors import ExitCode
from ci_perf.pull_request import rejudge
from ci_perf.pull_request.rejudge import JudgeOptions
from ci_perf.pull_request.reports import PublishOptions


@click.command("report")
@click.option(
    "--run-id",
    type=click.IntRange(min=1),
    required=True,
    metavar="ID",
    help="The workflow run that has measured: github.event.workflow_run.id.",
)
@options.artifacts
@options.workflow
@click.option("--suite", metavar="NAME", help="Refuse a run of any other suite.")
@publish_command.publish_options
def command(
    *,
    run_id: int,
    artifact: tuple[str, ...],
    workflow: str,
    suite: str | None,
    require_report: bool,
    **publishing: Any,  # noqa: ANN401  the fields of PublishOptions
) -> int:
    """Show on GitHub what another workflow run has measured, judged again here.

    The second of two stages, for pull requests from forks: it holds a token (GITHUB_TOKEN), runs
    none of their code, and believes numbers, not verdicts. --baselines and --workloads are folders
    of the base branch. Nothing is posted where the pull request is closed or has moved on.

    The exit code is that of `ci-perf publish`; 2 or 3 where what was uploaded cannot be used.
    """
    shown = PublishOptions(**publishing)
    measured = rejudge.find(os.environ, run_id, workflow=workflow)
    if measured is None:
        console.say("nothing to report: no open pull request has the measured commit at its head")
        return ExitCode.OK
    judged_by = JudgeOptions(
        baselines=shown.baselines, workloads=shown.workloads, suite=suite, notify=console.say
    )
    reports = rejudge.judge(measured, artifact, judged_by, key=shown.key)
    return publish_command.show(
        reports, shown, require_report=require_report, measured_by=measured.event
    )
