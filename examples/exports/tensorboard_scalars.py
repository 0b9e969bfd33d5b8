"""Write tensorboard/: a point per run and metric, and losses: `tensorboard_scalars.py *.json`."""

import sys

import pandas as pd
from torch.utils.tensorboard import SummaryWriter

import ci_perf

for path in sys.argv[1:]:
    table = ci_perf.load(path).to_frame().query("outcome == 'measured'")
    for (workload, run, start), rows in table.groupby(["workload", "run", "started_at"]):
        at = int(pd.Timestamp(start).timestamp())
        with SummaryWriter(f"tensorboard/{workload}") as writer:
            for (name, step), values in rows.groupby(["metric", "step"], dropna=False)["value"]:
                tag, x = (name, at) if pd.isna(step) else (f"{name}/{run}", step)
                writer.add_scalar(tag, values.median(), x, walltime=at)
