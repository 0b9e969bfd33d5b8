"""Which sessions of a history may clear a head that was measured on one of several nodes.

The same model of GPU differs by 8 % from one board to the next, at worst by 22 % (Sinha et al.,
"Not All GPUs Are Created Equal", SC22). Sessions of the head's own node hold no such difference.
Those of others hold it, and with few nodes nobody knows how large it is.
"""

from collections.abc import Sequence

import msgspec

from ci_perf.judging.metric_values import current_sessions
from ci_perf.model.comparison import Code
from ci_perf.model.metrics import Kind, Metric
from ci_perf.model.summary import SessionNumbers

# From here on the spread of the sessions says how much nodes differ; two give one difference.
FEWEST_NODES = 3
# What another machine, or a slower one, makes longer or shorter. Memory and counts are the same.
BY_MACHINE = frozenset({Kind.TIME, Kind.TAIL, Kind.ONE_OFF, Kind.COMPILE, Kind.SHARE, Kind.ENERGY})


class OfNode(msgspec.Struct, frozen=True):
    """The sessions that a head may be compared with.

    ``is_other`` says that they are of other nodes than the head's; ``obstacle`` is the reason code
    why they clear nothing, if they may not.
    """

    sessions: tuple[SessionNumbers, ...]
    is_other: bool = False
    obstacle: Code | None = None


def sessions_for(
    sessions: Sequence[SessionNumbers], node: str, metric: Metric | None = None
) -> OfNode:
    """Choose the sessions of `node`, if it has any; else all of them, which differ by their nodes.

    With a metric, its current epoch decides. Where no session knows its node, as in files of
    earlier versions, or the head does not, all count as sessions of one node.
    """
    whole = OfNode(tuple(sessions))
    if not node or (metric is not None and metric.kind not in BY_MACHINE):
        return whole
    current = sessions if metric is None else current_sessions(sessions, metric.name)
    known = {session.node for session in current} - {""}
    if not known:
        return whole
    if node in known:
        return OfNode(tuple(session for session in sessions if session.node == node))
    obstacle = None if len(known) >= FEWEST_NODES else Code.TOO_FEW_SESSIONS
    return OfNode(whole.sessions, is_other=True, obstacle=obstacle)
