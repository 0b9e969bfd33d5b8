"""`ci-perf bot`: do what a comment on a pull request asks for."""

import os
from pathlib import Path

import click

from ci_perf.cli import console, options
from ci_perf.errors import UsageError
from ci_perf.github import access, comment_command
from ci_perf.github.client import Client
from ci_perf.github.comment_command import CommandComment
from ci_perf.pull_request import bot
from ci_perf.pull_request.bot import BotOptions
from ci_perf.system import files


@click.command("bot")
@options.workflow
@options.artifacts
@options.baselines
@options.workloads
def command(*, workflow: str, artifact: tuple[str, ...], baselines: Path, workloads: Path) -> None:
    """Do what a comment on a pull request asks for: accept new baselines.

    For a job of the event issue_comment, in a checkout of the default branch, whose limits hold.
    GITHUB_TOKEN needs contents: write, pull-requests: write and actions: read. What is asked for is
    `/ci-perf accept SHA [WORKLOAD…] ["REASON"]`, by somebody who may push, of the commit at the
    head of a branch of this repository. What cannot be done is answered with the reason, and ends
    with exit code 0 as well.
    """
    _check_folder(baselines)
    comment = _comment()
    if comment is None:
        console.say("nothing to do: no new comment on a pull request that asks for something")
        return
    client = Client(access.of_job(os.environ, access.job_repository(os.environ)))
    told = BotOptions(
        workflow=workflow, artifacts=artifact, baselines=baselines, workloads=workloads
    )
    bot.handle_comment(client, comment, told, notify=console.say)


def _comment() -> CommandComment | None:
    path = os.environ.get("GITHUB_EVENT_PATH", "")
    comment = comment_command.read_event(os.environ, files.read_text(Path(path))) if path else None
    return comment if comment and comment_command.is_order(comment.body) else None


def _check_folder(baselines: Path) -> None:
    """Refuse a folder that no commit could hold. Raises UsageError."""
    if baselines.is_absolute() or ".." in baselines.parts or not baselines.parts:
        raise UsageError(
            f"--baselines: expected a folder of the repository, as baselines, found {baselines}"
        )
