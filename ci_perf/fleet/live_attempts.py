"""Units without an ending, the attempts of them that an engine has, and how to speak of both."""

from dataclasses import dataclass

from ci_perf.fleet.engine import Observation, Placed
from ci_perf.fleet.settings import FleetUnit
from ci_perf.model.fleet import Ending


@dataclass(slots=True)
class OpenUnit:
    """A unit without an ending; `refusals` counts the nodes that were not of its class."""

    unit: FleetUnit
    spent: int = 0
    avoid: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    refusals: int = 0


@dataclass(slots=True)
class LiveAttempt:
    """An attempt that the engine has; `is_recovered` where an earlier controller submitted it."""

    entry: OpenUnit
    placed: Placed
    submitted_at: float
    running_since: float | None = None
    over_since: float | None = None
    node: str = ""
    is_recovered: bool = False


def gone(live: LiveAttempt, observation: Observation) -> str:
    """Say that the engine has an attempt no more, and nothing came of it."""
    said = f" ({observation.detail})" if observation.detail else ""
    return f"its job came to no end of its own{on(live.node)}{said}"


def on(node: str) -> str:
    """Say where, if anybody knows."""
    return f" on {node}" if node else ""


def tried(entry: OpenUnit) -> str:
    """Say how often a unit was tried, and where."""
    where = f" on {', '.join(entry.nodes)}" if entry.nodes else ""
    of_class = ", none of them of its class" if entry.refusals == entry.spent > 1 else ""
    return f"{entry.spent} attempt{'' if entry.spent == 1 else 's'}{where}{of_class}"


def refused(live: LiveAttempt, why: str) -> str:
    """Note that a node is not of the class of a unit, and say so."""
    live.entry.refusals += 1
    return f"{why}{on(live.node)}"


def said(ending: Ending) -> str:
    """Say how a unit ended."""
    where = f" on {ending.nodes[-1]}" if ending.nodes and ending.kind == "measured" else ""
    return f"{ending.kind}{where}" + (f": {ending.reason}" if ending.reason else "")
