"""A suite of one workload that runs a command: for `ci-perf check --against main -- COMMAND`.

It lies outside of the repository, so that base and head are measured by the same.
"""

import contextlib
import json
import shlex
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ci_perf.errors import UsageError
from ci_perf.measuring.command import parse_metric
from ci_perf.model.base import COMMAND_SUITE

# Files that git does not know are the head's alone; a package in src/ is found on both sides.
_PYTHON_PATH = "src"
_SUITE = """schema_version = 1
{first}
[suites.command]
device = "cpu"
[[suites.command.commands]]
name = "command"
command = {command}
metric = {metric}
skip = {skip}
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
    setup: str,
) -> Iterator[Mapping[str, Any]]:
    """Provide options of a measurement with a command in the place of a suite, within.

    Raises UsageError: another device, a path that is the head's on both sides, or a metric that
    cannot be read.
    """
    if (device := options.get("device", "auto")) not in {"auto", "cpu"}:
        raise UsageError(
            f"-- COMMAND: expected --device cpu, found {device!r}: a command is timed by the clock "
            "of the host, whatever it runs on"
        )
    if options.get("select"):
        raise UsageError(f"-- COMMAND: expected no workloads, found {options['select'][0]!r}")
    top = str(root.resolve())
    if absolute := next((each for each in (*command, setup) if top in each), ""):
        raise UsageError(
            f"-- COMMAND: expected paths below the root, found {absolute!r}: base and head would "
            "both run the head's files"
        )
    try:
        parse_metric(metric)
    except ValueError as error:
        raise UsageError(f"--metric: {error}") from None
    with tempfile.TemporaryDirectory(prefix="ci-perf-command-") as name:
        folder = Path(name)
        first = [f'python_path = ["{_PYTHON_PATH}"]'] if (root / _PYTHON_PATH).is_dir() else []
        first += [f"setup = {{ command = {_quote(setup)} }}"] if setup else []
        text = _SUITE.format(
            first="\n".join(first),
            command=_quote(shlex.join(command)),
            metric=_quote(metric),
            skip=skip,
        )
        (folder / "suite.toml").write_text(text, encoding="utf-8")
        yield {
            **options,
            "suite": COMMAND_SUITE,
            "workloads": folder,
            "baselines": folder / "baselines",
            "all_workloads": True,
            "explain_s": 0.0,
        }


def _quote(text: str) -> str:
    """Spell a text for TOML, whose basic strings are those of JSON."""
    return json.dumps(text, ensure_ascii=False)
