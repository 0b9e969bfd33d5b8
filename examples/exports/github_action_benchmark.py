"""Write benchmark.json for github-action-benchmark, of metrics that are better when lower."""

import json
import sys
from pathlib import Path

import ci_perf

table = (
    ci_perf.load(sys.argv[1]).to_frame().query("outcome == 'measured' and unit in ('s', 'byte')")
)
entries = []
for (workload, metric, unit), values in table.groupby(["workload", "metric", "unit"])["value"]:
    spread = f"± {max(values.max() - values.median(), values.median() - values.min()):.3g}"
    named = {"name": f"{workload}/{metric}", "unit": unit, "value": values.median()}
    entries.append({**named, "range": spread})
Path("benchmark.json").write_text(json.dumps(entries))
