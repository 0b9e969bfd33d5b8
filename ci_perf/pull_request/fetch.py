"""Fetch what a workflow run has measured and uploaded.

The job that uploads it runs anybody's code, so it is read as data: of bounded size, of our types.
"""

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path

from ci_perf.api_types import Notify
from ci_perf.errors import CiPerfError, InvalidFileError
from ci_perf.github import artifacts, runs
from ci_perf.github.client import Access, Client
from ci_perf.model import codec
from ci_perf.model.run import Run
from ci_perf.report.commands import USUAL_ARTIFACT
from ci_perf.system import git

FILE = "run.json"
# More than any suite has; to judge more would take the rest of the job.
_MAX_WORKLOADS = 2_000
_MAX_PROCESSES = 50_000


def fetch_run(client: Client, run: int, name: str) -> Run:
    """Return what workflow run `run` has uploaded as artifact `name`.

    Raises GithubError, RefusedError (no such artifact) and InvalidFileError.
    """
    data = artifacts.read_file(client, run, name, FILE)
    where = f"{artifacts.describe(run, name)}: {FILE}"
    fetched = codec.decode(data, Run, name=where)
    fetched.refuse_experiment(where)
    _check_size(fetched, where)
    return fetched


def fetch_for_person(
    environment: Mapping[str, str], clone: Path, run_id: int, artifact: str, *, notify: Notify
) -> Run:
    """Return the same for a person with a clone and a token. Raises UsageError: one is missing."""
    remote = git.run(clone, "remote", "get-url", "origin")
    client = Client(Access.from_clone(environment, remote.out if remote.code == 0 else ""))
    run = runs.find_run(client, run_id)
    notify(f"{runs.describe(run_id)} measured commit {run.head_sha[:12]}, branch {run.head_branch}")
    if run.is_fork:
        notify("note: it was measured by code from a fork, which could make up any number")
    return fetch_run(client, run_id, artifact)


@contextlib.contextmanager
def refuse_odd_numbers(name: str) -> Iterator[None]:
    """Convert any failure to calculate with foreign numbers to InvalidFileError."""
    try:
        yield
    except CiPerfError:
        raise
    except Exception as error:  # noqa: BLE001  numbers that no machine gives break any arithmetic
        raise InvalidFileError(
            f"{name}: expected possible numbers of a machine, found impossible ones "
            f"({type(error).__name__}); was it written by ci-perf?"
        ) from None


def label(run: int, name: str) -> str:
    """Name the source of numbers in a report; its advice turns this into options."""
    return f"workflow run {run}" + ("" if name == USUAL_ARTIFACT else f", artifact {name}")


def _check_size(run: Run, where: str) -> None:
    workloads = max(len(run.measured) + len(run.failed), len(run.paired))
    processes = (
        sum(len(workload.processes) for workload in run.measured)
        + sum(len(workload.processes) for workload in run.failed)
        + sum(2 * len(workload.pairs) for workload in run.paired)
    )
    if workloads > _MAX_WORKLOADS or processes > _MAX_PROCESSES:
        raise InvalidFileError(
            f"{where}: expected at most {_MAX_WORKLOADS:,} workloads and {_MAX_PROCESSES:,} "
            f"processes, found {workloads:,} and {processes:,}"
        )
