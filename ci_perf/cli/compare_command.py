"""`ci-perf compare`: judge what has been measured."""

from pathlib import Path

import click

from ci_perf import files
from ci_perf.cli import judging, options
from ci_perf.model.run import Run
from ci_perf.model.suite import FailOn

_FILE = click.Path(path_type=Path)


@click.command("compare")
@click.argument("runs", nargs=-1, required=True, type=_FILE, metavar="[BASE] HEAD")
@click.option(
    "--baselines",
    type=click.Path(file_okay=False, path_type=Path),
    default="baselines",
    show_default=True,
    help="Judge HEAD against this folder when no BASE is given.",
)
@options.workloads
@options.fail_on(default=None)
@options.report_format
@options.output
def command(
    runs: tuple[Path, ...],
    baselines: Path,
    workloads: Path,
    fail_on: FailOn | None,
    format: str,  # noqa: A002  the option's name, and that of its environment variable
    output: Path | None,
) -> int:
    """Judge one run against another, or against the committed baselines.

    BASE and HEAD are files that `ci-perf run` wrote. The limits are those of the suite.toml in
    --workloads.
    """
    judging.check_target(format, output, inputs=[*runs, baselines])
    if len(runs) > 2:
        raise click.UsageError(f"expected one or two runs, found {len(runs)}")
    if len(runs) == 2:
        comparison = judging.against_run(runs[0], runs[1], workloads, fail_on=fail_on)
    else:
        run = files.read(runs[0], Run)
        rules = judging.rules(workloads, run.suite, baselines, run.environment.hard).of(fail_on)
        comparison = judging.against_baselines(run, baselines, label=str(runs[0]), rules=rules)
    judging.emit(comparison, format, output)
    return comparison.exit_code
