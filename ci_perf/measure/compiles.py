"""What torch.compile did in this process: exact counts from dynamo's own records."""

import os
import sys
from pathlib import Path
from typing import Literal

from ci_perf.model.process import CompileCounts

# Dynamo keeps the records of its latest compilations only: 64 unless told.
_RECORDS = 100_000
# Reasons of graph breaks are paragraphs, whose first line says it.
_MAX_REASONS = 20
_REASON_CHARS = 300
_CACHES = ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR")


def cache() -> Literal["empty", "filled"]:
    """Say whether earlier processes left compiled code. Asked before anything is compiled."""
    folders = [Path(named) for name in _CACHES if (named := os.environ.get(name))]
    found = any(path.is_file() for folder in folders for path in folder.rglob("*"))
    return "filled" if found else "empty"


def keep_all_records() -> None:
    """Let no compilation be forgotten. Called once torch has been imported by the workload."""
    if "torch._dynamo.utils" in sys.modules:
        sys.modules["torch._dynamo.utils"].set_compilation_metrics_limit(_RECORDS)


def counts(cache: Literal["empty", "filled"]) -> CompileCounts:
    """Count graphs, graph breaks and recompiles; zeros where nothing was compiled."""
    dynamo = sys.modules.get("torch._dynamo.utils")
    if dynamo is None:
        return CompileCounts(graphs=0, graph_breaks=0, recompiles=0, cache=cache)
    breaks = dynamo.counters["graph_break"]
    return CompileCounts(
        graphs=dynamo.counters["stats"]["unique_graphs"],
        graph_breaks=sum(breaks.values()),
        recompiles=sum(1 for record in dynamo.get_compilation_metrics() if record.recompile_reason),
        break_reasons=tuple(_short(reason) for reason in list(breaks)[:_MAX_REASONS]),
        cache=cache,
    )


def _short(reason: object) -> str:
    line = str(reason).strip().partition("\n")[0]
    return line.encode(errors="replace").decode()[:_REASON_CHARS]
