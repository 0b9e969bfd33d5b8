"""The JSON Schemas of the documents that ci-perf reads and writes."""

import json

import msgspec

from ci_perf.model.baseline import Baseline, Calibration
from ci_perf.model.comparison import Comparison
from ci_perf.model.rehearsed import Rehearsed
from ci_perf.model.run import Run
from ci_perf.model.samples import Samples
from ci_perf.model.suite import SuiteFile
from ci_perf.model.watch import Watched

# Of the core; features have documents of their own.
KINDS: dict[str, type[msgspec.Struct]] = {
    "baseline": Baseline,
    "calibration": Calibration,
    "comparison": Comparison,
    "rehearsed": Rehearsed,
    "run": Run,
    "samples": Samples,
    "suite": SuiteFile,
    "watch": Watched,
}


def render(kind: str, document: type[msgspec.Struct]) -> str:
    """Return the JSON Schema (draft 2020-12) of one kind of document."""
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"ci-perf {kind}",
        **msgspec.json.schema(document),
    }
    return json.dumps(schema, indent=1, sort_keys=True) + "\n"
