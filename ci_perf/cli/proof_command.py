"""The command that proves a machine, shows a proof, or compares two: `prove`."""

from pathlib import Path

import click

from ci_perf.cli import console, options, reports
from ci_perf.errors import ExitCode, UsageError
from ci_perf.gate import prove
from ci_perf.gate.prove import ProofOptions
from ci_perf.judging.proof import is_proven
from ci_perf.model import codec
from ci_perf.model.proof import Proof
from ci_perf.report.tables import Page
from ci_perf.system import files

_FILE = click.Path(dir_okay=False, path_type=Path)


@click.command("prove")
@click.argument("steps", nargs=-1, metavar="[STEP]...")
@options.device
@click.option(
    "--minutes",
    type=click.FloatRange(0, 1440, min_open=True),
    default=8.0,
    show_default=True,
    help="How long all steps may take together; what does not fit is not tried, and says so.",
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
    help="Write the proof to this file as JSON, whole or not at all; with --show and --compare "
    "the tables, instead of stdout.",
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
    format: str,  # noqa: A002  the option's name, and that of its environment variable
    output: Path | None,
    page: Path | None,
) -> int:
    """Try everything that measuring relies on, and say what this machine can judge.

    Each step ends in held, did not hold, or could not be tried, with its figures.

    Exit codes: 0 everything that could be tried held, 3 something did not hold, or nothing could be
    tried. With --compare: 3 where something that held in A does not hold in B, else 0.
    """
    _check(steps, show, compare, format=format, output=output, page=page)
    if compare is not None:
        return _compare(*compare, form=format, output=output, page=page)
    if show is not None:
        return _show(files.read(show, Proof), form=format, output=output, page=page)
    document = prove.prove(
        ProofOptions(
            root=files.current_folder(),
            device=device,
            minutes=minutes,
            steps=steps,
            output=output,
            lock_timeout_s=lock_timeout,
        ),
        notify=console.say,
    )
    return _show(document, form=format, output=None, page=page)


def _check(
    steps: tuple[str, ...],
    show: Path | None,
    compare: tuple[Path, Path] | None,
    *,
    format: str,  # noqa: A002  as above
    output: Path | None,
    page: Path | None,
) -> None:
    """Find out before the work what contradicts itself, or has nowhere to go. Raises UsageError."""
    if compare is not None and show is not None:
        raise UsageError("--show and --compare: expected one of them, found both")
    if steps and (show or compare):
        raise UsageError(
            f"step {steps[0]}: expected no step with --show and --compare, which try nothing"
        )
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


def _show(document: Proof, *, form: str, output: Path | None, page: Path | None) -> int:
    from ci_perf.report import proof

    is_good = is_proven(document)
    if form == "json":
        _draw(proof.page(document), page, is_good=is_good)
        console.emit(codec.encode(document), output=output)
    else:
        _emit(proof.page(document), form, output, page, is_good=is_good)
    return ExitCode.OK if is_good else ExitCode.NO_ANSWER


def _compare(
    first: Path, second: Path, *, form: str, output: Path | None, page: Path | None
) -> int:
    from ci_perf.judging.proof_comparison import is_kept
    from ci_perf.report import proof_comparison

    both = files.read(first, Proof), files.read(second, Proof)
    is_good = is_kept(*both)
    _emit(proof_comparison.page(*both), form, output, page, is_good=is_good)
    return ExitCode.OK if is_good else ExitCode.NO_ANSWER


def _emit(
    tables: Page, form: str, output: Path | None, page: Path | None, *, is_good: bool
) -> None:
    _draw(tables, page, is_good=is_good)
    reports.emit_page(tables, form, output)


def _draw(tables: Page, target: Path | None, *, is_good: bool) -> None:
    if target is not None:
        from ci_perf.report.page import tables_page

        console.emit(
            tables_page.render(tables, tone="better" if is_good else "worse"), output=target
        )
        console.say(f"page: {target}")
