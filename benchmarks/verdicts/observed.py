"""What a rule may look at: launches of a base and of a head, many workloads at once."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Calls = NDArray[np.int8]
Rows = Sequence[int] | NDArray[np.int64]

FASTER, SILENT, SLOWER, INCONCLUSIVE = -1, 0, 1, 2


@dataclass(frozen=True)
class Observed:
    """Natural logs of step times; the first axis goes over workloads, the last one over steps.

    Workloads of one pull request stand side by side, `suite` at a time.
    """

    # [workloads, sessions, steps]: one launch of each session before `sessions`, oldest first.
    older: Array
    # [workloads, sessions, launches, steps]: the baseline, oldest first.
    sessions: Array
    # [workloads, launches, steps], of a later session.
    head: Array
    # [workloads, pairs, steps] each: launched in turns in the job of the head.
    paired_base: Array
    paired_head: Array
    suite: int

    def __len__(self) -> int:
        return len(self.head)

    def only(self, rows: Rows) -> "Observed":
        """Return these workloads alone, each a suite of its own."""
        return Observed(
            older=self.older[rows],
            sessions=self.sessions[rows],
            head=self.head[rows],
            paired_base=self.paired_base[rows],
            paired_head=self.paired_head[rows],
            suite=1,
        )


class Judged(NamedTuple):
    """What a rule says of each workload, and how many launches of the head's job it took."""

    calls: Calls
    launches: Array


# A rule sees everything, and answers for the rows that it is asked about.
Rule = Callable[[Observed, Rows], Judged]
