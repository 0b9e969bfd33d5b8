"""`ci-perf accept`: turn a run into the baseline files that are then committed."""

from pathlib import Path

import click

from ci_perf import files
from ci_perf.baselines import accept, lock
from ci_perf.baselines.accept import Acceptance, Action, Mode
from ci_perf.cli import judging, options, output
from ci_perf.errors import UsageError
from ci_perf.model.run import Run


@click.command("accept")
@click.argument("run_file", type=click.Path(path_type=Path), metavar="RUN")
@click.option("--workload", multiple=True, help="Only this workload; may be repeated.")
@click.option("--reason", default="", help="Why a number may get worse; kept in the baseline.")
@options.baselines
@options.workloads
@click.option("--append", is_flag=True, help="Add this session also where nothing changed.")
@click.option("--replace", is_flag=True, help="Forget the history and begin anew.")
def command(
    run_file: Path,
    workload: tuple[str, ...],
    reason: str,
    baselines: Path,
    workloads: Path,
    *,
    append: bool,
    replace: bool,
) -> None:
    """Make a run the new baseline: writes the files that you then commit.

    A metric that has changed begins a new epoch: later runs are compared with this session and
    those that follow, and the older ones still say how noisy the machine is. New workloads get a
    baseline, the others keep theirs to the byte. Refused: an invalid run, a failed workload, a
    number that gets worse, or numerics that change and gate, without a reason.
    """
    if append and replace:
        raise UsageError("--append and --replace exclude each other: choose one")
    if replace and not reason.strip():
        # Small losses, each within its limit, would otherwise be forgotten one by one.
        raise UsageError('--replace forgets the history: say why with --reason "…"')
    run = files.read(run_file, Run)
    mode = Mode.APPEND if append else Mode.REPLACE if replace else Mode.KEEP
    rules = judging.rules(workloads, run.suite, baselines, run.environment.hard)
    with lock.held(baselines):  # from what is read to what is written, nobody else adds a session
        comparison = judging.against_baselines(run, baselines, label=str(run_file), rules=rules)
        accepted = accept.prepare(
            baselines, run, comparison, workloads=workload, reason=reason, mode=mode
        )
        accept.write(baselines, accepted)
    if run.source.dirty:
        output.say("note: the run was measured with uncommitted changes, and the baseline says so")
    if run.validity.reasons:
        codes = ", ".join(sorted({reason.code for reason in run.validity.reasons}))
        output.say(
            f"note: the machine was not at its best ({codes}); every later check will be compared "
            "with these numbers"
        )
    output.emit(_summary(accepted), output=None)
    if any(acceptance.action is not Action.KEPT for acceptance in accepted):
        output.say(f"next: git add {baselines} && git commit")


def _summary(accepted: tuple[Acceptance, ...]) -> str:
    from ci_perf.report import acceptance

    return acceptance.render(
        acceptance.Accepted(
            action=one.action.value,
            path=str(one.path),
            before=one.before,
            after=one.after,
            began=one.began,
            changed_numerics=one.changed_numerics,
        )
        for one in accepted
    )
