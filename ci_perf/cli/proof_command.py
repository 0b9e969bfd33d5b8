"""The command that proves a machine, shows a proof, or compares two: `prove`."""

from pathlib import Path

import click
from click.core import ParameterSource

from ci_perf.cli import console, options, reports
from ci_perf.errors import ExitCode, UsageError
from ci_perf.gate import prove
from ci_perf.gate.prove import ProofOptions
from ci_perf.judging.proof import is_proven, rejudged
from ci_perf.model import codec
from ci_perf.model.proof import MOST_MINUTES, Proof
from ci_perf.progress import PlainListener
from ci_perf.report.tables import Page
from ci_perf.system import files

_FILE = click.Path(dir_okay=False, path_type=Path)
# What says how to try steps, and means nothing where none is tried.
_OF_TRYING = ("device", "minutes", "lock_timeout")


@click.command("prove")
@click.argument("steps", nargs=-1, metavar="[STEP]...")
@options.device
@click.option(
    "--minutes",
    type=click.FloatRange(0, MOST_MINUTES, min_open=True),
    default=8.0,
    show_default=True,
    help="How long all steps may take together, less what another run holds the device for; what "
    "does not fit is not tried, and says so.",
)
@options.lock_timeout
@click.option(
    "--show", type=_FILE, metavar="PROOF.json", help="Try nothing: show a proof that was written."
)
@click.option(
    "--compare",
    nargs=2,
    type=_FILE,
    metavar="A.json B.json",
    help="Try nothing: compare the proofs of two machines, or of one before and after an update.",
)
@options.table_format
@click.option(
    "-o",
    "--output",
    type=_FILE,
    help="Write the proof to this file as JSON after each step, whole or not at all; with --show "
    "and --compare the tables, instead of stdout.",
)
@click.option("--page", type=_FILE, help="Write the tables to this file as a page of HTML, too.")
def prove_command(
    *,
    steps: tuple[str, ...],
    device: str,
    minutes: float,
    lock_timeout: float,
    show: Path | None,
    compare: tuple[Path, Path] | None,
    format: str | None,  # noqa: A002  the option's name, and that of its environment variable
    output: Path | None,
    page: Path | None,
) -> int:
    """Try everything that measuring relies on, and say what this machine can judge.

    Each step ends in held, did not hold, or could not be tried, with its figures.

    \b
    Exit codes:
      0    at least one step held, and each that could be tried.
           --compare: what held in A holds in B, or B had no time for it (but not for all)
      2    wrong use (also a STEP that this device cannot try), or a file that is no proof
      3    a step did not hold, none could be tried, there is no torch or no such device, a file
           could not be written, or a bug of ci-perf.
           --compare: a step that held in A does not hold in B, or could not be tried or is missing
           there for any reason but time
      130  interrupted: what was tried is written and shown first
    It never ends with 1, which is what a regression ends with.
    """  # noqa: D301  the \b is click's
    _check(steps, show, compare, format=format, output=output, page=page)
    if compare is not None:
        return _compare(*compare, form=format, output=output, page=page)
    if show is not None:
        return _show(_read(show), form=format, output=output, page=page)
    done = prove.prove(
        ProofOptions(
            root=files.current_folder(),
            device=device,
            minutes=minutes,
            steps=steps,
            output=output,
            lock_timeout_s=lock_timeout,
        ),
        notify=console.say,
        listener=PlainListener(console.say),
    )
    code = _show(done.proof, form=format, output=None, page=page)
    if done.is_interrupted:
        raise KeyboardInterrupt
    return code if done.is_written else ExitCode.NO_ANSWER


def _check(
    steps: tuple[str, ...],
    show: Path | None,
    compare: tuple[Path, Path] | None,
    *,
    format: str | None,  # noqa: A002  as above
    output: Path | None,
    page: Path | None,
) -> None:
    """Find out before the work what contradicts itself, or has nowhere to go. Raises UsageError."""
    if compare is not None and show is not None:
        raise UsageError("--show and --compare: expected one of them, found both")
    if show or compare:
        _check_nothing_to_try(steps)
    if compare is not None and format == "json":
        raise UsageError(
            "--format json: expected terminal or markdown with --compare; the two files are the "
            "documents"
        )
    inputs = [*([show] if show else []), *(compare or ())]
    files.check_apart("--output", output, *inputs)
    files.check_apart("--page", page, output, *inputs)
    for target in (output, page):
        if target is not None:
            files.check_target(target)


def _check_nothing_to_try(steps: tuple[str, ...]) -> None:
    """Refuse what would silently be left alone. Raises UsageError."""
    context = click.get_current_context()
    typed = [f"step {name}" for name in steps] + [
        f"--{name.replace('_', '-')}"
        for name in _OF_TRYING
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE
    ]
    if typed:
        raise UsageError(
            f"{typed[0]}: expected neither a step nor an option of trying with --show and "
            "--compare, which try nothing; leave it out"
        )


def _read(path: Path) -> Proof:
    """Read a proof, and judge it again: nobody need believe what a file says of itself."""
    return rejudged(files.read(path, Proof))


def _show(document: Proof, *, form: str | None, output: Path | None, page: Path | None) -> int:
    from ci_perf.report import proof

    is_good = is_proven(document)
    if form == "json":
        console.emit(codec.encode(document), output=output)
        _draw(proof.page(document), page, is_good=is_good)
    else:
        _emit(proof.page(document), form, output, page, is_good=is_good)
    return ExitCode.OK if is_good else ExitCode.NO_ANSWER


def _compare(
    first: Path, second: Path, *, form: str | None, output: Path | None, page: Path | None
) -> int:
    from ci_perf.judging.proof_comparison import is_kept
    from ci_perf.report import proof_comparison

    both = _read(first), _read(second)
    is_good = is_kept(*both)
    _emit(proof_comparison.page(*both), form, output, page, is_good=is_good)
    return ExitCode.OK if is_good else ExitCode.NO_ANSWER


def _emit(
    tables: Page, form: str | None, output: Path | None, page: Path | None, *, is_good: bool
) -> None:
    reports.emit_page(tables, form, output)
    _draw(tables, page, is_good=is_good)  # last: where it cannot be written, the tables are there


def _draw(tables: Page, target: Path | None, *, is_good: bool) -> None:
    if target is not None:
        from ci_perf.report.page import tables_page

        console.emit(
            tables_page.render(tables, tone="better" if is_good else "worse"), output=target
        )
        console.say(f"page: {target}")
