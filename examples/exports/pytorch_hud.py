"""Write hud.json for PyTorch's HUD, with every launch of every metric."""

import json
import sys
from pathlib import Path

import ci_perf

table = ci_perf.load(sys.argv[1]).to_frame().query("outcome == 'measured' and step.isna()")
records = []
for (suite, workload, metric), rows in table.groupby(["suite", "workload", "metric"]):
    benchmark = {"name": f"ci-perf {suite}", "extra_info": {"commit": rows["commit"].iloc[0]}}
    measured = {"name": metric, "benchmark_values": rows["value"].tolist()}
    runner = {"name": rows["machine"].iloc[0], "type": "ci-perf"}
    records.append({"benchmark": benchmark, "metric": measured, "runners": [runner]})
    records[-1]["model"] = {"name": workload, "type": "workload"}
Path("hud.json").write_text(json.dumps(records))
