"""`check --watch`: a check after each change of a file, and a line per row."""

import time
from typing import Any, NoReturn

import click

import ci_perf
from ci_perf.cli import console, progress
from ci_perf.errors import CiPerfError, UsageError
from ci_perf.gate import watch
from ci_perf.model.suite import FailOn
from ci_perf.report import terminal
from ci_perf.system import files

# How long pairs may take, how often files are looked at, and how many are named.
_WATCH_S, _LOOK_S, _NAMED = 60.0, 0.5, 10


def until_interrupted(
    measurement: dict[str, Any], fail_on: FailOn | None, outputs: tuple[object, ...]
) -> NoReturn:
    """Check, and again after each change of a file. Raises UsageError and KeyboardInterrupt."""
    if any(outputs):
        raise UsageError(
            "--watch: expected none of --comparison-output, --page, --serve, --format and "
            "--output; it says a line per row on stdout"
        )
    source = click.get_current_context().get_parameter_source("budget")
    is_default = source == click.core.ParameterSource.DEFAULT
    quick = {"budget_s": _WATCH_S} if is_default else {}
    # A line per row has no place for causes.
    asked = measurement | quick | {"explain": False, "against": measurement["against"] or "HEAD"}
    for changed in watch.changes(files.current_folder(), wait=lambda: time.sleep(_LOOK_S)):
        console.say("\n".join(f"changed: {name}" for name in changed[:_NAMED]))
        try:
            checked = ci_perf.check(**asked, fail_on=fail_on, listener=progress.listener())
        except CiPerfError as error:
            console.say("\n".join([f"error: {error}", *console.fenced(error.output)]))
        else:
            text = terminal.brief(
                checked.comparison, width=console.width(), color=console.in_color()
            )
            console.emit(text, output=None)
        console.say("Waiting for a file to change; Ctrl-C ends this.")
    raise AssertionError  # the changes never end
