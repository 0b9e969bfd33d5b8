"""A suite of one workload that runs a command: for `ci-perf check --against main -- COMMAND`."""

import contextlib
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ci_perf import hooks
from ci_perf.errors import UsageError
from ci_perf.gate.outside_suite import open_outside_suite, quote
from ci_perf.model.base import COMMAND_SUITE
from ci_perf.model.suite import check_reads, parse_metric

_SUITE = """
[suites.command]
device = "cpu"
canaries = false
[[suites.command.commands]]
name = "command"
command = {command}
metric = {metric}
skip = {skip}
reads = {reads}
protocol = {{ processes = 1 }}
"""


@contextlib.contextmanager
def open_command(
    root: Path,
    command: Sequence[str],
    options: Mapping[str, Any],
    *,
    metric: str,
    skip: int,
    reads: str,
    setup: str,
) -> Iterator[Mapping[str, Any]]:
    """Provide options of a measurement with a command in the place of a suite, within.

    Raises UsageError: another device, or a metric that cannot be read.
    """
    if (device := options.get("device", "auto")) not in {"auto", "cpu"}:
        raise UsageError(
            f"-- COMMAND: expected --device cpu, found {device!r}: a command is timed by the clock "
            "of the host, even if it uses a GPU"
        )
    if options.get("select"):
        raise UsageError(f"-- COMMAND: expected no workloads, found {options['select'][0]!r}")
    try:
        parse_metric(metric)
    except ValueError as error:
        raise UsageError(f"--metric: {error}") from None
    _check_reads(reads, command)
    texts = {"command": shlex.join(command), "metric": metric, "reads": reads}
    quoted = {name: quote(text) for name, text in texts.items()}
    text = _SUITE.format(skip=skip, **quoted)
    without = {**options, "explain_s": 0.0}  # only the clock watches a command
    with open_outside_suite(COMMAND_SUITE, text, without, root=root, setup=setup) as prepared:
        yield prepared


def _check_reads(reads: str, command: Sequence[str]) -> None:
    """Raise UsageError: an unknown format, or none that needs no table of metrics."""
    name = reads.partition(":")[0]
    known = [each for each in hooks.find_formats() if each != "json"]
    if reads and name not in known:
        raise UsageError(
            f"--reads: expected FORMAT[:FILE] with one of {', '.join(sorted(known))}, found "
            f"{reads!r}; a table of metrics in suite.toml reads any JSON and text"
        )
    try:
        check_reads(reads, " ".join(command))
    except ValueError as error:
        raise UsageError(f"--{error}") from None
