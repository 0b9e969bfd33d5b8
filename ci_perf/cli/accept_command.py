"""`ci-perf accept`: turn a run into the baseline files that are then committed."""

import contextlib
import os
from pathlib import Path

import click

from ci_perf.baselines import accept
from ci_perf.baselines.accept import Acceptance, Action, Mode
from ci_perf.cli import options, output, patches
from ci_perf.errors import UsageError
from ci_perf.gate import accept as accepting
from ci_perf.gate import compare
from ci_perf.model.run import Run
from ci_perf.pull_request import fetch
from ci_perf.system import files, git, lock


@click.command("accept")
@click.argument("run_file", required=False, type=click.Path(path_type=Path), metavar="[RUN]")
@click.option(
    "--run",
    type=click.IntRange(min=1),
    metavar="ID",
    help="Instead of RUN, what this workflow run on GitHub has uploaded. Needs GH_TOKEN.",
)
@options.artifact
@click.option("--workload", multiple=True, help="Only this workload; may be repeated.")
@click.option("--reason", default="", help="Why a number may get worse; kept in the baseline.")
@options.baselines
@options.workloads
@click.option("--append", is_flag=True, help="Add this session also where nothing changed.")
@click.option("--replace", is_flag=True, help="Forget the history and begin anew.")
@click.option("--force", is_flag=True, help="Accept also what was measured under heavy pressure.")
@click.option(
    "--patch",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Leave --baselines alone and write a patch for `git apply`.",
)
@click.option(
    "--into",
    type=click.Path(file_okay=False, path_type=Path),
    help="Leave --baselines alone and write the files that change below this folder.",
)
def command(
    run_file: Path | None,
    run: int | None,
    artifact: str,
    workload: tuple[str, ...],
    reason: str,
    baselines: Path,
    workloads: Path,
    *,
    append: bool,
    replace: bool,
    force: bool,
    patch: Path | None,
    into: Path | None,
) -> None:
    """Make a run the new baseline: writes the files that you then commit.

    A metric that has changed begins a new epoch: later runs are compared with this session and
    those that follow, and the older ones still say how noisy the machine is. New workloads get a
    baseline, the others keep theirs to the byte. Refused: an invalid run, a failed workload, a
    machine under heavy pressure without --force; without a reason, a number that gets worse, or
    numerics that change and gate.

    Exit codes: 0 written, or nothing to write; 3 refused.
    """
    mode = _mode(append=append, replace=replace, reason=reason)
    if (run_file is None) == (run is None):
        raise click.UsageError("expected RUN, the file that `ci-perf run` wrote, or --run ID")
    found, label = _read(run_file, run, artifact)
    rules = compare.rules(
        workloads, found.suite, baselines, found.environment.hard, notify=output.say
    )
    is_elsewhere = patch is not None or into is not None
    # From what is read to what is written, nobody else adds a session.
    with contextlib.nullcontext() if is_elsewhere else lock.hold_folder(baselines):
        comparison = compare.against_baselines(found, baselines, label=label, rules=rules)
        accepted = accept.prepare(
            baselines,
            found,
            comparison,
            workloads=workload,
            reason=reason,
            mode=mode,
            force=force,
        )
        next_step = _write(accepted, baselines, patch=patch, into=into)
    _caution(found)
    output.emit(_summary(accepted), output=None)
    if any(acceptance.action is not Action.KEPT for acceptance in accepted):
        output.say(f"next: {next_step}")


def _mode(*, append: bool, replace: bool, reason: str) -> Mode:
    if append and replace:
        raise UsageError("--append and --replace exclude each other: choose one")
    if replace and not reason.strip():
        # Small losses, each within its limit, would otherwise be forgotten one by one.
        raise UsageError('--replace forgets the history: say why with --reason "…"')
    return Mode.APPEND if append else Mode.REPLACE if replace else Mode.KEEP


def _read(file: Path | None, run_id: int | None, artifact: str) -> tuple[Run, str]:
    """Read the run, and say what it is called."""
    if file is not None:
        return files.read(file, Run), str(file)
    assert run_id is not None
    return _fetch(run_id, artifact), fetch.label(run_id, artifact)


def _fetch(run_id: int, artifact: str) -> Run:
    from ci_perf.github import access, runs
    from ci_perf.github.client import Client

    here = options.root()
    remote = git.run(here, "remote", "get-url", "origin")
    client = Client(access.of_clone(os.environ, remote.out if remote.code == 0 else ""))
    found = runs.find_run(client, run_id)
    output.say(f"{runs.describe(run_id)} measured commit {found.sha[:12]}, branch {found.branch}")
    if found.is_fork:
        output.say("note: it was measured by code from a fork, which could make up any number")
    return fetch.fetch_run(client, run_id, artifact)


def _write(
    accepted: tuple[Acceptance, ...], baselines: Path, *, patch: Path | None, into: Path | None
) -> str:
    """Write what changes to where it is wanted; return what a person does next."""
    if into is not None:
        accept.write(into, accepted)
    if patch is not None:
        patches.write(patch, accepted, root=options.root())
        return f"git apply {patch}, at the top of the repository"
    if into is not None:
        return f"copy what is below {into} to {baselines}"
    accept.write(baselines, accepted)
    return f"git add {baselines} && git commit"


def _caution(run: Run) -> None:
    """Say what is kept in the baseline from now on and might be regretted."""
    if run.source.dirty:
        output.say("note: the run was measured with uncommitted changes, and the baseline says so")
    if run.validity.reasons:
        codes = ", ".join(sorted({reason.code for reason in run.validity.reasons}))
        output.say(
            f"note: the machine was not at its best ({codes}); every later check will be compared "
            "with these numbers"
        )


def _summary(accepted: tuple[Acceptance, ...]) -> str:
    from ci_perf.report import accept_help

    return accept_help.result(map(accepting.described, accepted))
