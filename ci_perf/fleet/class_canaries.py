"""How fast the nodes of a class are: by the committed sessions, and by nodes of this fleet run.

What a node says of itself may be wrong, or made up. Three sessions at least say how slow a node may
be, and one that differs from the others only widens their range.
"""

from collections.abc import Iterable

from ci_perf.judging import canaries
from ci_perf.model.baseline import Baseline
from ci_perf.model.environment import Machine, is_same
from ci_perf.model.fleet import NodeClass
from ci_perf.model.node_check import MachineBounds, NodeCheck
from ci_perf.model.run import Run
from ci_perf.model.summary import Numbers


class ClassCanaries:
    """The canaries of sessions, by what machine they are of."""

    def __init__(self, baselines: Iterable[Baseline] = ()) -> None:
        # Sessions by where they come from, as each is in the file of every workload that it has.
        self._machines: list[tuple[Machine, dict[str, Numbers]]] = []
        for baseline in baselines:
            for session in baseline.sessions:
                if session.canaries:
                    name = f"{session.run} {session.node}"
                    self._of(baseline.machine)[name] = session.canaries

    def hear(self, run: Run) -> None:
        """Keep what a node of this fleet run has measured; the latest, of a node that had two."""
        if run.canaries:
            name = f"node {run.environment.noted.host_hash}"
            self._of(run.environment.hard)[name] = canaries.readings(run.canaries)

    def check(self, node_class: NodeClass) -> NodeCheck:
        """Say what a node must be now to measure a unit of a class."""
        known = (
            (machine, canaries.of_class(list(sessions.values()), node_class.canary_limit))
            for machine, sessions in self._machines
        )
        return NodeCheck(
            expect=node_class.expect,
            bounds=tuple(
                MachineBounds(machine=machine, canaries=bounds)
                for machine, bounds in known
                if bounds
            ),
        )

    def _of(self, machine: Machine) -> dict[str, Numbers]:
        for known, sessions in self._machines:
            if is_same(known, machine):
                return sessions
        self._machines.append((machine, {}))
        return self._machines[-1][1]
