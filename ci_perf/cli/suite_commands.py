"""The commands for the files of a suite: `init` writes the first, `list` and `schema` show them."""

from pathlib import Path

import click
import msgspec

from ci_perf import suite as suites
from ci_perf.cli import console, options
from ci_perf.errors import UsageError
from ci_perf.gate import first_files
from ci_perf.gate.first_files import FirstFiles
from ci_perf.model import schema
from ci_perf.model.base import Scalar
from ci_perf.model.suite import Plan
from ci_perf.system import files

NEXT_STEPS = """\
Next:
 1. Put a step of your own model into workloads/example.py, and try it:
                                ci-perf run --suite smoke
 2. Results are no part of the repository. Add these lines to .gitignore:
                                run.json
                                report.md
                                comparison.json
                                page.html
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
def init_command(directory: Path, action: str | None, device: str) -> None:
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


@click.command("list")
@options.suite
@options.workloads
@click.option("--json", is_flag=True, help="Print the whole plan as JSON.")
def list_command(suite: str, workloads: Path, *, json: bool) -> None:
    """Show the workloads of a suite, without importing them."""
    plan = suites.plan(workloads, suite, root=files.current_folder())
    document = msgspec.json.format(msgspec.json.encode(plan), indent=1).decode()
    console.emit(document if json else _table(plan), output=None)


def _spelled(value: Scalar) -> str:
    """As suite.toml spells it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _table(plan: Plan) -> str:
    """One line per workload: id, parameters, description."""
    lines = []
    for workload in plan.workloads:
        parameters = ", ".join(f"{k}={_spelled(v)}" for k, v in workload.parameters.items())
        lines.append((workload.id, parameters, workload.description))
    widths = [max((len(line[i]) for line in lines), default=0) for i in (0, 1)]
    return "\n".join(
        console.harmless(f"{name:<{widths[0]}}  {parameters:<{widths[1]}}  {description}").rstrip()
        for name, parameters, description in lines
    )


@click.command("schema")
@click.argument("kind", type=click.Choice(sorted(schema.KINDS)), required=False)
@click.option(
    "--directory",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write all of them to this folder, as KIND.schema.json.",
)
def schema_command(kind: str | None, directory: Path | None) -> None:
    """Write the JSON Schemas of the files that ci-perf reads and writes.

    With KIND, that one is printed.
    """
    if directory is not None:
        files.make_folder(directory)
        for name in sorted(schema.KINDS):
            files.write_text(directory / f"{name}.schema.json", schema.render(name))
    elif kind is not None:
        console.emit(schema.render(kind), output=None)
    else:
        raise UsageError("expected a KIND or --directory DIR; see `ci-perf schema --help`")
