"""`ci-perf before`: what `ci-perf check --checks-before` has to be told."""

import os
from pathlib import Path

import click

from ci_perf.cli import console
from ci_perf.errors import ExitCode
from ci_perf.github import actions
from ci_perf.pull_request import before


@click.command("before")
@click.option(
    "--key",
    default="smoke",
    show_default=True,
    metavar="NAME",
    help="The key of our comment: the name of the suite, unless `publish --key` says otherwise.",
)
def command(*, key: str) -> int:
    """Count the earlier checks of a pull request that tested pairs, by our comment.

    For a job of a pull request whose GITHUB_TOKEN may read pull requests, before the job that
    measures. Prints a number, or unknown, and tells it to later steps as `checks-before`.
    """
    known = before.checks_before(os.environ, key, notify=console.say)
    text = "unknown" if known is None else str(known)
    console.emit(text, output=None)
    if target := os.environ.get("GITHUB_OUTPUT"):
        actions.write_outputs(Path(target), {"checks-before": text})
    return ExitCode.OK
