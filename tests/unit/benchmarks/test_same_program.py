"""How `benchmarks.same_program` counts launches."""

import pytest

from benchmarks import same_program
from ci_perf.model.run import Interleaved, Pair, Paired, Source
from tests.runs import a_measured, a_process, a_run

INTERLEAVED = Interleaved(
    ref="main",
    source=Source(commit="x", branch="main", dirty=False),
    suspects=1,
    budget_s=60.0,
    spent_s=1.0,
    stopped="decided",
)
PAIR = Pair(first="base", base=a_process(), head=a_process())


@pytest.mark.parametrize(
    ("workloads", "paired", "launches"),
    [
        ((), (), 0),
        ((a_measured("a", 1e-3, 1e-3), a_measured("b", 1e-3)), (), 3),
        # The base is launched once before its pairs, whether any pair follows or not.
        ((a_measured("a", 1e-3),), (Paired(workload="a"),), 2),
        ((a_measured("a", 1e-3, 1e-3),), (Paired(workload="a", pairs=(PAIR,) * 3),), 2 + 1 + 6),
    ],
)
def test_each_process_of_a_run_counts_once(workloads, paired, launches):
    run = a_run(*workloads, interleaved=INTERLEAVED, paired=paired)

    assert same_program.timed_launches(run) == launches
