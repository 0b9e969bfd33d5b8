"""`ci-perf schema`: the JSON Schemas, for editors and for other programs."""

from pathlib import Path

import click

from ci_perf.cli import console
from ci_perf.errors import UsageError
from ci_perf.model import schema
from ci_perf.system import files


@click.command("schema")
@click.argument("kind", type=click.Choice(sorted(schema.KINDS)), required=False)
@click.option(
    "--directory",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write all of them to this folder, as KIND.schema.json.",
)
def command(kind: str | None, directory: Path | None) -> None:
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
