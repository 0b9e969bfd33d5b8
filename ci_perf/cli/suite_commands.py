"""`init` writes the first files of a suite, `schema` what documents look like."""

from pathlib import Path

import click

from ci_perf import hooks
from ci_perf.cli import console
from ci_perf.errors import UsageError
from ci_perf.gate import first_files
from ci_perf.model import schema
from ci_perf.report import suite_text
from ci_perf.system import files


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
    help="ci_perf or your copy, and its commit (40 digits) or tag, for two workflows of GitHub. "
    "Without it, no workflows are written.",
)
@click.option(
    "--device",
    type=click.Choice(["cuda", "cpu"]),
    default="cuda",
    show_default=True,
    help="The runner of the workflows: with a GPU, or with only a CPU.",
)
@click.option(
    "--agents",
    is_flag=True,
    help="Also write .agents/skills/ci-perf/SKILL.md, which tells coding agents how to measure.",
)
def init_command(directory: Path, action: str | None, device: str, *, agents: bool) -> None:
    """Write a suite and two workflows into this repository.

    The suite has your benchmarks of pytest, train.py and asv, else an example. Existing files are
    named and stay as they are.
    """
    first = first_files.write(directory, action=action, device=device, has_agents=agents)
    console.emit(
        suite_text.describe_written(map(str, first.written), map(str, first.kept)), output=None
    )
    has_example = first_files.EXAMPLE in {*first.written, *first.kept}
    _advise(directory.resolve(), has_workflows=action is not None, has_example=has_example)


def _advise(directory: Path, *, has_workflows: bool, has_example: bool) -> None:
    """Tell the person what follows, and where this folder is not what a CI expects."""
    root = first_files.repository(directory)
    if root is None:
        console.say(f"warning: {directory} is not in a git repository: run `git init`")
    elif root != directory and has_workflows:
        console.say(f"warning: GitHub reads workflows only from {root / '.github/workflows'}")
    ready = first_files.find_ready_checks(directory)
    said = suite_text.next_steps(has_workflows=has_workflows, has_example=has_example, ready=ready)
    console.say(said)


KINDS = {*schema.KINDS, *hooks.find_documents()}


def render_schema(kind: str) -> str:
    """Return the JSON Schema of a document of the core or of a feature."""
    document = schema.KINDS.get(kind) or hooks.load(hooks.find_documents()[kind])
    return schema.render(kind, document)


@click.command("schema")
@click.argument("kind", type=click.Choice(sorted(KINDS)), required=False)
@click.option(
    "--directory",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write all schemas to this folder, as KIND.schema.json.",
)
def schema_command(kind: str | None, directory: Path | None) -> None:
    """Write the JSON Schemas of the files that ci-perf reads and writes.

    KIND: print this schema.
    """
    if directory is not None:
        files.make_folder(directory)
        for name in sorted(KINDS):
            files.write_text(directory / f"{name}.schema.json", render_schema(name))
    elif kind is not None:
        console.emit(render_schema(kind), output=None)
    else:
        raise UsageError("expected a KIND or --directory DIR; see `ci-perf schema --help`")
