"""The command of a job before the one that measures: `screen`."""

import os
from datetime import UTC, datetime
from pathlib import Path

import click

from ci_perf.cli import console, options, reports
from ci_perf.errors import UsageError
from ci_perf.features.screen import answers
from ci_perf.features.screen.answers import ScreenOptions
from ci_perf.github import actions
from ci_perf.report import same_program
from ci_perf.system import files


@click.command("screen")
@click.option("--against", required=True, metavar="REF", help="A commit, tag or branch: the base.")
@click.option(
    "--suite", default="", metavar="NAME", help="The suite.  [default: smoke, or the only one]"
)
@options.workloads
@options.baselines
@click.option(
    "--machine",
    default="",
    metavar="FOLDER",
    help="The folder of the machine in --baselines, where several have this suite.",
)
@click.option(
    "--device",
    default="auto",
    show_default=True,
    help="Where the job that follows measures: as of check.",
)
@click.option(
    "--env",
    multiple=True,
    metavar="NAME=VALUE",
    help="A variable that your workflow gives to each launch, or NAME= for none; one a line, and "
    "may be repeated.",
)
@click.option(
    "--comparison",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write the comparison to this file where the answer is `same`.",
)
@options.table_format
def screen_command(
    *,
    against: str,
    suite: str,
    workloads: Path,
    baselines: Path,
    machine: str,
    device: str,
    env: tuple[str, ...],
    comparison: Path | None,
    format: str | None,  # noqa: A002  the option's name, and that of its environment variable
) -> None:
    """Say without torch or a GPU whether a change needs a measurement.

    By the records that the base has committed. The answer is `same` or `launch`: also an output of
    the step, `answer`, in GitHub Actions. Driver, packages and machine are not looked at.

    Exit codes: 0 answered, 2 wrong use.
    """
    told = [line for text in env for line in text.splitlines() if line]
    for line in told:
        if not line.partition("=")[0] or "=" not in line:
            raise UsageError(f"--env: expected NAME=VALUE, found {line!r}")
    root = files.current_folder()
    asked = ScreenOptions(
        root=root,
        workloads=workloads,
        baselines=baselines,
        against=against,
        suite=suite,
        machine=machine,
        device=device,
        variables=dict(line.split("=", 1) for line in told),
    )
    screened = answers.screen(asked, now=datetime.now(UTC), notify=console.say)
    page = same_program.build_touched_page(screened.workloads)
    reports.emit_page(page, format, None, document=screened.workloads)
    console.say(f"answer: {screened.word}")
    if summary := os.environ.get("GITHUB_STEP_SUMMARY"):
        actions.add_to_summary(Path(summary), reports.PAGE_FORMS["markdown"](page))
    if comparison is not None and screened.comparison is not None:
        files.write(comparison, screened.comparison)
    # The last step: whoever dies before has not answered.
    if outputs := os.environ.get("GITHUB_OUTPUT"):
        actions.write_outputs(Path(outputs), {"answer": screened.word})
