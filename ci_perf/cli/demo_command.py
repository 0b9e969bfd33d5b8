"""`ci-perf demo`: a small project being judged, from baseline to red mark."""

import runpy
from pathlib import Path

import click

from ci_perf import suite
from ci_perf.cli.main import COMMANDS


@click.command("demo", help=COMMANDS["demo"], context_settings={"ignore_unknown_options": True})
@click.option(
    "--keep",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Keep the repository in DIR, which must be empty or new.",
)
@click.argument("runner", nargs=-1, type=click.UNPROCESSED, metavar="[--runner KIND ...]")
def demo_command(keep: Path | None, runner: tuple[str, ...]) -> int:
    """Play the script that ships with the examples."""
    script = runpy.run_path(str(suite.find_shipped("examples") / "demo.py"))
    code: int = script["main"](keep and keep.absolute(), runner)
    return code
