"""The step that `report`, `accept --run` and `bot` share: what a workflow run has measured.

It was uploaded by a job that runs anybody's code: data of bounded size and of our types, and no
more than data.
"""

import contextlib
from collections.abc import Iterator

import click

from ci_perf.errors import CiPerfError, InvalidFileError
from ci_perf.github import artifacts
from ci_perf.github.client import Client
from ci_perf.model import codec
from ci_perf.model.run import Run
from ci_perf.report.accept_help import USUAL_ARTIFACT

FILE = "run.json"
# More than any suite has; beyond it a judge would be busy for the rest of the job.
_MAX_WORKLOADS = 2_000
_MAX_PROCESSES = 50_000

artifact = click.option(
    "--artifact",
    default=USUAL_ARTIFACT,
    show_default=True,
    metavar="NAME",
    help=f"The artifact of that run, with {FILE} at its top.",
)
some_artifacts = click.option(
    "--artifact",
    multiple=True,
    default=(USUAL_ARTIFACT,),
    show_default=True,
    metavar="NAME",
    help=f"The artifact of that run, with {FILE} at its top; may be repeated: one per machine.",
)
workflow = click.option(
    "--workflow",
    default=".github/workflows/perf.yml",
    show_default=True,
    metavar="FILE",
    help="The workflow that measures: a run of any other one is refused.",
)


def measured(client: Client, run: int, name: str) -> Run:
    """Return what workflow run `run` has uploaded as artifact `name`.

    Raises GithubError, RefusedError (no such artifact) and InvalidFileError.
    """
    data = artifacts.read_file(client, run, name, FILE)
    where = f"{artifacts.describe(run, name)}: {FILE}"
    found = codec.decode(data, Run, name=where)
    _check_size(found, where)
    return found


@contextlib.contextmanager
def distrusting(name: str) -> Iterator[None]:
    """Tell a failure to calculate with foreign numbers as what it is. Raises InvalidFileError."""
    try:
        yield
    except CiPerfError:
        raise
    except Exception as error:  # noqa: BLE001  numbers that no machine gives break any arithmetic
        raise InvalidFileError(
            f"{name}: expected numbers that a machine could give, found others "
            f"({type(error).__name__}); was it written by ci-perf?"
        ) from None


def label(run: int, name: str) -> str:
    """Say in a report where numbers come from; its advice makes options of it."""
    return f"workflow run {run}" + ("" if name == USUAL_ARTIFACT else f", artifact {name}")


def _check_size(found: Run, where: str) -> None:
    workloads = max(len(found.measured) + len(found.failed), len(found.paired))
    processes = (
        sum(len(one.processes) for one in found.measured)
        + sum(len(one.processes) for one in found.failed)
        + sum(2 * len(one.pairs) for one in found.paired)
    )
    if workloads > _MAX_WORKLOADS or processes > _MAX_PROCESSES:
        raise InvalidFileError(
            f"{where}: expected at most {_MAX_WORKLOADS:,} workloads and {_MAX_PROCESSES:,} "
            f"processes, found {workloads:,} and {processes:,}"
        )
