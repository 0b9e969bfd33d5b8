"""Write bmf.json for Bencher: `python bencher.py run.json`."""

import json
import sys
from pathlib import Path

import ci_perf

table = ci_perf.load(sys.argv[1]).to_frame().query("outcome == 'measured' and step.isna()")
benchmarks = {}
for (workload, metric), values in table.groupby(["workload", "metric"])["value"]:
    ends = {"lower_value": values.min(), "upper_value": values.max()}
    benchmarks.setdefault(workload, {})[metric] = {"value": values.median(), **ends}
Path("bmf.json").write_text(json.dumps(benchmarks))
