"""The commands that plant: `try`, which a newcomer runs first, and `rehearse`."""

from pathlib import Path
from typing import Any

import click

from ci_perf.baselines import layout
from ci_perf.cli import console, measure_options, options, reports
from ci_perf.cli.measuring_commands import CommandAtEnd, add_sources
from ci_perf.errors import ExitCode, UsageError
from ci_perf.features.rehearsal import findings, plants, rehearsal_report, rehearse, trial
from ci_perf.model.comparison import Verdict
from ci_perf.system import files


@click.command("try", cls=CommandAtEnd, options_metavar="[OPTIONS]")
@measure_options.add_measure_options(
    "wait_s",
    "threads",
    "budget_s",
    budget_s={"help": "The time for pairs of base and head: 90s, 20m, 1h."},
)
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


@click.command("rehearse", cls=CommandAtEnd, options_metavar="[OPTIONS]")
@measure_options.add_measure_options(
    "wait_s",
    "processes",
    "threads",
    "budget_s",
    budget_s={"default": 1800.0, "help": "How long it may take."},
)
@add_sources
@click.option(
    "--plant",
    multiple=True,
    metavar="PLANT",
    help="What to plant into the head: a share of a step (5%), memory=64MiB, operator, or wait "
    "(for the GPU); may be repeated.  [default: 1.5 and 3 times the limit of the step time]",
)
@click.option(
    "--setup",
    default="",
    metavar="COMMAND",
    help="With -- COMMAND or --pytest: a shell command that prepares a checkout.",
)
@click.option("--against", hidden=True)
@click.option(
    "--picture",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE.svg",
    help="Draw what was planted against what was found.",
)
@click.option(
    "--keep",
    is_flag=True,
    help="Write BASELINES/MACHINE/rehearsed.json, which later reports mention.",
)
@options.report
@options.table_format
def rehearse_command(
    *,
    measuring: dict[str, Any],
    plant: tuple[str, ...],
    setup: str,
    against: str | None,
    picture: Path | None,
    keep: bool,
    report: Path | None,
    format: str | None,  # noqa: A002  the option's name, and that of its environment variable
    **asked: Any,  # noqa: ANN401  one for each source
) -> int:
    """Prove that your gate can fail: plant slowdowns, and see what it finds.

    Plants go into launches of your own code. Base and head are the commit that is checked out.
    First nothing is planted: a red is the fault of the machine. Then each workload is measured with
    each plant. All are judged as `ci-perf check` judges. Says of a gate that cannot fail, why.

    Exit codes: 0 all that was planted is found, and nothing else. 1 red without a plant, or a gate
    that cannot fail. 3 something has no answer.
    """
    if against is not None:
        raise UsageError(
            "rehearse: expected no --against, for base and head are the same commit; leave it out"
        )
    wanted = [plants.read_plant(text) for text in plant]
    command = click.get_current_context().meta.get("command", ())
    if keep and (command or any(asked.values())):
        raise UsageError(
            "--keep: expected workloads of a suite, whose baselines are committed, found a command "
            "or tests; write them into suite.toml"
        )
    reports.check_target(report, inputs=filter(None, [picture]))
    if picture is not None:
        files.check_target(picture)
    shown = rehearse.rehearse(
        {**measuring, **asked},
        wanted=wanted,
        command=command,
        setup=setup,
        notify=console.say,
        listener=measure_options.open_listener(),
    )
    if picture is not None:
        files.write_text(picture, rehearsal_report.draw(shown.suite))
    if keep:
        file = layout.write_rehearsed(measuring["baselines"], shown.machine, shown.suite)
        console.say(f"written: {file}\nnext: git add {file} && git commit")
    page = rehearsal_report.page(shown.suite, is_interrupted=shown.is_interrupted)
    reports.emit_page(page, format, report, document=shown.suite)
    if shown.is_interrupted:
        return ExitCode.INTERRUPTED
    return findings.choose_exit_code(shown.suite)
