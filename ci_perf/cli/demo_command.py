"""`ci-perf demo`: a small project being judged, from baseline to red mark."""

import importlib.util
import os
import shutil
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from ci_perf import demo, suite
from ci_perf.cli import console, measure_options
from ci_perf.cli.main import COMMANDS
from ci_perf.demo import Shell, neutral, result
from ci_perf.errors import ExitCode, UsageError
from ci_perf.gate import runners
from ci_perf.gate.runners import Runner
from ci_perf.system import lock

EXAMPLE = "tiny_vision"


@click.command("demo", help=COMMANDS["demo"])
@click.option(
    "--keep",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Keep the repository in DIR, which must be empty or new.",
)
@measure_options.runner
def demo_command(
    keep: Path | None,
    **runner: Any,  # noqa: ANN401  the options of `runner`
) -> int:
    """Play the demo, print its report, and say whether it came out as planted."""
    chosen = measure_options.chosen_runner(runner)
    _check_image(chosen)
    demo.require(
        which=shutil.which,
        find_module=importlib.util.find_spec,
        in_containers=chosen.kind != "local",
    )
    screen = Console(stderr=True, highlight=False, soft_wrap=True, markup=False)
    with demo.folder(keep) as folder, demo.folder(None) as temporary:
        shell = Shell(
            folder=folder,
            show=lambda line: screen.print(f"$ {line}", style="cyan"),
            # torch leaves a cache beside its temporary files: it goes when the demo goes.
            environment={
                **neutral(os.environ),
                # The folder of the host, and not a scratch one.
                "CI_PERF_LOCK_DIR": str(lock.folder_of_devices()),
                "TMPDIR": str(temporary),
            },
        )
        judged = demo.play(
            suite.shipped("examples") / EXAMPLE,
            shell,
            chapter=lambda title: screen.print(f"\n{title}", style="bold"),
            runner=runners.spelled(chosen),
        )
    console.emit(judged.report, output=None)
    surprises = result.surprises(judged.comparison, judged.exit_code)
    screen.print("\n" + result.spoken(judged.comparison, judged.exit_code, surprises))
    if keep is not None:
        screen.print(f"The repository is kept in {keep}.")
    return ExitCode.NO_ANSWER if surprises else ExitCode.OK


def _check_image(chosen: Runner) -> None:
    """Ask for an image before anything is measured: the demo's suite names none."""
    if chosen.kind != "local" and not chosen.image:
        raise UsageError(
            f"demo: --runner {chosen.kind}: expected an image, found none; say --image REF: "
            "`ci-perf image build` in a checkout of ci-perf makes one and shows its id"
        )
