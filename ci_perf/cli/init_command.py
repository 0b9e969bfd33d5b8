"""`ci-perf init`: the first files in a user's repository. Never touches one that is there."""

from pathlib import Path

import click

from ci_perf.cli import console
from ci_perf.gate import first_files
from ci_perf.gate.first_files import FirstFiles

NEXT_STEPS = """\
Next:
 1. Put a step of your own model into workloads/example.py, and try it:
                                ci-perf run --suite smoke
 2. Results are no part of the repository. Add these lines to .gitignore:
                                run.json
                                report.md
                                comparison.json
                                baseline.patch
                                calibration-run.json
                                qualification-run.json
 3. Change the lines marked EDIT in .github/workflows/. Commit everything to your main branch.
 4. On GitHub: Actions, perf-baseline, Run workflow. Your runner measures the main branch and
    opens a pull request with the first baselines. Merge it.
 5. Open a pull request: perf measures it, and a comment says whether it is slower.
Without GitHub, after step 2:   ci-perf accept run.json --reason "First baseline"
                                git add workloads baselines && git commit
on a branch:                    ci-perf check --suite smoke --against main"""


@click.command
@click.option(
    "--directory",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    default=".",
    show_default=True,
    help="The root of your repository.",
)
@click.option(
    "--action",
    metavar="OWNER/REPOSITORY@COMMIT",
    help="The repository and the commit (40 digits) from which the workflows take ci_perf.",
)
@click.option(
    "--device",
    type=click.Choice(["cuda", "cpu"]),
    default="cuda",
    show_default=True,
    help="What the workflows measure on: a runner with a GPU, or with a CPU alone.",
)
def command(directory: Path, action: str | None, device: str) -> None:
    """Write a first suite, an example workload and two workflows into this repository.

    A file that exists is named and left as it is.
    """
    first = first_files.write(directory, action=action, device=device)
    console.emit(_summary(first), output=None)
    for target in first.unnamed:
        console.say(
            f"warning: {directory / target} was left as it is, with OWNER/ci_perf@000… in it: put "
            f"{action} there"
        )
    _advise(directory.resolve())


def _summary(first: FirstFiles) -> str:
    lines = [f"wrote  {path}" for path in first.written]
    lines += [f"kept   {path} (it was there)" for path in first.kept]
    if not first.written:
        lines.append("Nothing to write: everything is there.")
    return "\n".join(lines)


def _advise(directory: Path) -> None:
    """Tell the person what follows, and where this folder is not what a CI expects."""
    root = first_files.repository(directory)
    if root is None:
        console.say(f"warning: {directory} is not in a git repository: run `git init`")
    elif root != directory:
        console.say(f"warning: GitHub reads workflows only from {root / '.github/workflows'}")
    console.say(NEXT_STEPS)
