"""The JSON Schemas of the documents that ci-perf reads and writes."""

import json

import msgspec

from ci_perf.model.backfill import Backfill
from ci_perf.model.baseline import Baseline, Calibration
from ci_perf.model.bisection import Bisection
from ci_perf.model.comparison import Comparison
from ci_perf.model.fleet import WorkPlan
from ci_perf.model.history import BranchHistory
from ci_perf.model.run import Run
from ci_perf.model.samples import Samples
from ci_perf.model.suite import SuiteFile

KINDS: dict[str, type[msgspec.Struct]] = {
    "backfill": Backfill,
    "baseline": Baseline,
    "bisection": Bisection,
    "calibration": Calibration,
    "comparison": Comparison,
    "history": BranchHistory,
    "plan": WorkPlan,
    "run": Run,
    "samples": Samples,
    "suite": SuiteFile,
}


def render(kind: str) -> str:
    """Return the JSON Schema (draft 2020-12) of one kind of document."""
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"ci-perf {kind}",
        **msgspec.json.schema(KINDS[kind]),
    }
    return json.dumps(schema, indent=1, sort_keys=True) + "\n"
