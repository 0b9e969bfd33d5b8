"""Where workloads run: in processes of this machine, or where a feature launches them."""

from dataclasses import dataclass

from ci_perf import hooks
from ci_perf.errors import UsageError

LOCAL = "local"


@dataclass(frozen=True, slots=True, kw_only=True)
class Runner:
    """Where each process runs.

    ``kind`` is "local" for processes of this machine, or one that a feature launches, such as
    "docker". ``container`` are words KEY=VALUE for it, as `--container` takes them.
    """

    kind: str = LOCAL
    container: tuple[str, ...] = ()


def find_kinds() -> list[str]:
    """Return where processes can run in this installation."""
    return [LOCAL, *hooks.find_launchers()]


def check(runner: Runner) -> None:
    """Refuse a kind that is unknown, and words that nobody would obey. Raises UsageError."""
    if runner.kind not in find_kinds():
        known = ", ".join(find_kinds())
        raise UsageError(f"--runner: expected one of {known}, found {runner.kind!r}")
    if runner.kind != LOCAL:
        hooks.load(hooks.find_launchers()[runner.kind].read)(runner)
    elif runner.container:
        # Nobody must believe that it held.
        raise UsageError(
            f"--container {runner.container[0].partition('=')[0]}: expected only with a container, "
            "found --runner local; add --runner docker (or podman), or leave it out"
        )
