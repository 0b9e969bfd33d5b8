"""What a check measures in the place of a suite: a command, or what a feature brings."""

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ci_perf import hooks
from ci_perf.errors import UsageError
from ci_perf.gate.command_suite import open_command
from ci_perf.gate.runners import LOCAL


@contextlib.contextmanager
def open_source(
    root: Path,
    options: Mapping[str, Any],
    *,
    command: Sequence[str] = (),
    metric: str = "",
    skip: int = 0,
    reads: str = "",
    setup: str = "",
    notify: Callable[[str], object],
) -> Iterator[Mapping[str, Any]]:
    """Provide options of a measurement by what they name in the place of a suite, within.

    That is a `command`, or the words of one source by its name. Raises UsageError: several, no
    base to compare with, another runner, options of none; and what the source raises.
    """
    sources = hooks.find_sources()
    asked = {f"--{name}": name for name in sources if options.get(name)}
    rest = {name: value for name, value in options.items() if name not in sources}
    called = [*asked, *(["-- COMMAND"] if command else [])]
    if len(called) > 1:
        raise UsageError(f"expected one of {', '.join(called)}, found {len(called)}")
    if (metric or skip or reads) and not command:
        raise UsageError(
            "--metric, --skip, --reads: expected a command, found none; add `-- COMMAND` at the end"
        )
    if not called:
        if setup:
            raise UsageError("--setup: expected a command, found none; add `-- COMMAND` at the end")
        yield rest
        return
    if rest.get("against") is None:
        raise UsageError(f"{called[0]}: expected --against REF, for it has no baselines")
    if (kind := getattr(rest.get("runner"), "kind", LOCAL)) != LOCAL:
        raise UsageError(f"{called[0]}: expected --runner {LOCAL}, found {kind}")
    if command:
        opened = open_command(
            root, command, rest, metric=metric, skip=skip, reads=reads, setup=setup
        )
    else:
        ((_, name),) = asked.items()
        opened = hooks.load(sources[name].open)(
            root, options[name], rest, setup=setup, notify=notify
        )
    with opened as prepared:
        yield prepared
