"""How a person follows what is measured: on stderr, on a page, or by a check after each change."""

import contextlib
import functools
import os
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

import click

import ci_perf
from ci_perf import progress, session
from ci_perf.cli import console
from ci_perf.errors import CiPerfError, UsageError
from ci_perf.model.suite import FailOn
from ci_perf.session import Listener
from ci_perf.system import files

# How long pairs may take, how often files are looked at, and how many are named.
_WATCH_S, _LOOK_S, _NAMED = 60.0, 0.5, 10


def listener() -> Listener:
    """Return what shows on stderr that a run goes on."""
    obeyed = functools.partial(click.echo, err=True)  # whatever its runner is given on stderr
    is_on_github = os.environ.get("GITHUB_ACTIONS") == "true"
    return progress.listener(sys.stderr, say=console.say, command=obeyed if is_on_github else None)


@contextlib.contextmanager
def followed(port: int | None) -> Iterator[tuple[Listener, Callable[[str], None]]]:
    """Provide the listener of a check, and what shows its page; to nobody without a port."""
    if port is None:
        yield listener(), lambda _page: None
        return
    from ci_perf.progress import live_page

    with live_page.served(port, console.say) as shown:
        yield session.several(listener(), shown), shown.finish


def until_interrupted(
    measurement: dict[str, Any], fail_on: FailOn | None, outputs: tuple[object, ...]
) -> NoReturn:
    """Check, and again after each change of a file. Raises UsageError and KeyboardInterrupt."""
    from ci_perf.gate import check
    from ci_perf.report import terminal

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
    for changed in check.changes(files.current_folder(), wait=lambda: time.sleep(_LOOK_S)):
        console.say("\n".join(f"changed: {name}" for name in changed[:_NAMED]))
        try:
            checked = ci_perf.check(**asked, fail_on=fail_on, listener=listener())
        except CiPerfError as error:
            console.say_error(error)
        else:
            text = terminal.brief(
                checked.comparison, width=console.width(), color=console.in_color()
            )
            console.emit(text, output=None)
        console.say("Waiting for a file to change; Ctrl-C ends this.")
    raise AssertionError  # the changes never end
