"""Numbers that a program has written, before they are a metric."""

from dataclasses import dataclass

from ci_perf.model.metrics import OwnKind


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenNumbers:
    """Values of one quantity in one run of a program, in the order in which they were written.

    ``values`` are in seconds, bytes, items per second or counts, as ``kind`` says. Without a kind
    they are in the unit of the program, and suite.toml has to declare one. ``failure`` is the
    reason of a benchmark that has failed; it has no values. ``launches`` has the values of each
    process where one file has several.
    """

    values: tuple[float, ...] = ()
    launches: tuple[tuple[float, ...], ...] = ()
    kind: OwnKind | None = None
    failure: str = ""
