"""What torch.compile did in this process: exact counts from dynamo's own records."""

import sys

from ci_perf.model.run import CompileCounts

# Dynamo keeps the records of its latest compilations only: 64 unless told.
_RECORDS = 100_000


def keep_all_records() -> None:
    """Let no compilation be forgotten. Called once torch has been imported by the workload."""
    if "torch._dynamo.utils" in sys.modules:
        sys.modules["torch._dynamo.utils"].set_compilation_metrics_limit(_RECORDS)


def counts() -> CompileCounts:
    """Count graphs, graph breaks and recompiles; zeros where nothing was compiled."""
    dynamo = sys.modules.get("torch._dynamo.utils")
    if dynamo is None:
        return CompileCounts(graphs=0, graph_breaks=0, recompiles=0)
    return CompileCounts(
        graphs=dynamo.counters["stats"]["unique_graphs"],
        graph_breaks=sum(dynamo.counters["graph_break"].values()),
        recompiles=sum(1 for record in dynamo.get_compilation_metrics() if record.recompile_reason),
    )
