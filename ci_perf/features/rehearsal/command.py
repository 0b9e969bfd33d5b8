"""The command that a newcomer runs first: `try`."""

from pathlib import Path
from typing import Any

import click

from ci_perf.cli import console, measure_options, options, reports
from ci_perf.cli.measuring_commands import CommandAtEnd, add_sources
from ci_perf.errors import ExitCode
from ci_perf.features.rehearsal import trial
from ci_perf.model.comparison import Verdict


@click.command("try", cls=CommandAtEnd, options_metavar="[OPTIONS]")
@measure_options.add_measure_options("wait_s", "threads", "budget_s")
@add_sources
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Keep the run in this file. It names its plant, and is refused as a baseline.",
)
@options.report
def try_command(
    *,
    measuring: dict[str, Any],
    output: Path | None,
    report: Path | None,
    **asked: Any,  # noqa: ANN401  one for each source
) -> int:
    """Slow down your own program on purpose, and show the report that becomes red.

    `ci-perf try -- python train.py` runs a command, `--pytest PATH` the first benchmark there, and
    NAME a workload of your suite. Base and head are your files as they are: your files stay
    untouched, and need no git. Only ci_perf adds work to the launches of the head.

    Exit codes: 0 the report is red, as it should be. 3 no answer: the program failed, or the noise
    of the machine hides the added work.
    """
    reports.check_target(report, inputs=filter(None, [output]))
    tried = trial.measure_trial(
        {**measuring, **asked, "output": output},
        command=click.get_current_context().meta.get("command", ()),
        notify=console.say,
        listener=measure_options.open_listener(),
    )
    is_red = tried.comparison.verdict is Verdict.REGRESSED
    shown = reports.COMPARISON_FORMS[reports.report_format(None, report)](tried.comparison)
    end = trial.describe_end(is_red=is_red)
    console.emit(f"{tried.scope}.\n\n{shown.rstrip()}\n\n{end}\n", output=report)
    if tried.trouble is not None:
        raise tried.trouble
    return ExitCode.OK if is_red else ExitCode.NO_ANSWER
