"""The commands for committed baselines: `accept` makes them, `baseline` merges them."""

import os
from pathlib import Path
from typing import Any

import click

import ci_perf
from ci_perf.baselines import layout, merge
from ci_perf.baselines.accept import Action
from ci_perf.cli import console, options
from ci_perf.model.run import Run
from ci_perf.pull_request import fetch
from ci_perf.report import accept_help
from ci_perf.system import files


@click.command("accept")
@click.argument("run_file", required=False, type=click.Path(path_type=Path), metavar="[RUN]")
@click.option(
    "--run",
    type=click.IntRange(min=1),
    metavar="ID",
    help="Instead of RUN: the artifact of this workflow run on GitHub. Needs GH_TOKEN.",
)
@options.artifact
@click.option("--workload", multiple=True, help="Only this workload; may be repeated.")
@click.option("--reason", default="", help="Why a number may get worse. The baseline keeps it.")
@click.option(
    "--until",
    default="",
    metavar="DAY",
    help="Accept it up to this day, as 2027-01-31. After it, `ci-perf watch` reports it again.",
)
@options.baselines
@options.workloads
@click.option("--append", is_flag=True, help="Add this session even if nothing changed.")
@click.option("--replace", is_flag=True, help="Delete the history and begin a new one.")
@click.option("--force", is_flag=True, help="Accept numbers of a very busy machine.")
@click.option(
    "--patch",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write a patch for `git apply` instead of the files.",
)
def accept_command(
    run_file: Path | None,
    run: int | None,
    artifact: str,
    workload: tuple[str, ...],
    baselines: Path,
    patch: Path | None,
    **asked: Any,  # noqa: ANN401  the keywords of `ci_perf.accept`
) -> None:
    """Make a run the new baseline, in files that you then commit.

    A changed metric begins a new epoch: later runs are compared with this session and later ones.
    New workloads get a file. Unchanged workloads keep their file. Files of workloads that the suite
    no longer has are removed. Refused: an invalid run, a failed workload, and a very busy machine
    (without --force).

    Exit codes: 0 written, or nothing to write, 2 a worse number or changed numerics without
    --reason, 3 refused.
    """
    if (run_file is None) == (run is None):
        raise click.UsageError("expected RUN, the file that `ci-perf run` wrote, or --run ID")
    source: Run | Path = run_file or Path()
    label = str(run_file)
    if run is not None:
        clone, label = files.current_folder(), fetch.label(run, artifact)
        source = fetch.fetch_for_person(os.environ, clone, run, artifact, notify=console.say)
    accepted = ci_perf.accept(
        source,
        label=label,
        select=workload,
        baselines=baselines,
        patch=patch,
        **asked,
        notify=console.say,
    )
    console.emit(accept_help.result({str(each.path): each for each in accepted}), output=None)
    if any(acceptance.action is not Action.KEPT for acceptance in accepted):
        step = f"git apply {patch}, at the top of the repository"
        console.say(f"next: {step if patch else f'git add {baselines} && git commit'}")


_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.group("baseline")
def baseline_command() -> None:
    """Let git merge committed baselines by their sessions."""


@baseline_command.command("merge")
@click.argument("base", type=_FILE)
@click.argument("ours", type=_FILE)
@click.argument("theirs", type=_FILE)
@click.option("--path", default="", help="The name of the file in the repository.")
def merge_files(base: Path, ours: Path, theirs: Path, path: str) -> None:
    """Unite two histories of a workload.

    What both sides added to BASE goes into OURS, as git asks of a merge driver. Exit code 3 is a
    conflict, and leaves OURS as it was: both sides accepted a change of the same metric, measured
    different things, or one began anew while the other went on.
    """
    merged = merge.merge(
        layout.read_anywhere(base) if base.stat().st_size else None,
        layout.read_anywhere(ours),
        layout.read_anywhere(theirs),
        name=path or str(ours),
    )
    layout.write_anywhere(ours, merged)


@baseline_command.command("install")
@options.baselines
def install(baselines: Path) -> None:
    """Let git merge baselines with ci-perf.

    Writes .gitattributes, which is committed, and the configuration of this clone, which is not.
    """
    attributes = merge.install_driver(baselines)
    console.say(f"this clone merges {baselines} with ci-perf from now on; every clone needs this")
    console.say(f"next: git add {attributes} && git commit")
