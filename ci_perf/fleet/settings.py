"""What the ledger is given: units, the rules by which it gives them up, and all that it can do."""

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from ci_perf.fleet.engine import FleetEngine
from ci_perf.fleet.reading import Outcome
from ci_perf.model.fleet import Attempt, Event


class FleetUnit(Protocol):
    """What the ledger must know of a unit."""

    @property
    def id(self) -> str:
        """Return its name, which no other unit has."""

    @property
    def expected_s(self) -> float:
        """Return how long it takes on a node of its class; 0 where nobody knows."""

    @property
    def machine_class(self) -> str:
        """Return the class of machines that it must run on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetRules:
    """When the ledger loses patience; docs/fleet.md gives the reasons."""

    attempts: int = 2
    overrun_least_s: float = 60.0
    overrun_factor: float = 4.0
    # For a unit of unknown length, and for what a unit may take beside its expected length.
    overrun_unknown_s: float = 21_600.0
    extra_s: float = 0.0
    queue_s: float = 7200.0
    pause_s: float = 60.0
    # A shared folder may show a file some seconds after it was written on another machine.
    settle_s: float = 3.0
    cancel_s: float = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """All that the ledger can do: `sleep` may raise KeyboardInterrupt, and so it is interrupted.

    `prepare` writes what the nodes of a job read, and returns the name of its file. `read` says
    what an attempt has left, or `None`.
    """

    engine: FleetEngine
    prepare: Callable[[str, Sequence[Attempt]], str]
    read: Callable[[Attempt], Outcome | None]
    record: Callable[[Sequence[Event]], None]
    notify: Callable[[str], None]
    clock: Callable[[], float]
    sleep: Callable[[float], None]
    new_nonce: Callable[[], str] = field(default=lambda: secrets.token_hex(8))
