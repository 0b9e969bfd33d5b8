"""Builders of what is known of a machine beside its baselines."""

import msgspec

from ci_perf.model import baseline as model
from ci_perf.model.run import Source
from tests.runs import CPU, HEAD_COMMIT, SOFT

PROVENANCE = model.Provenance(
    recorded_at="2026-11-21T10:00:00Z",
    source=Source(commit=HEAD_COMMIT, branch="main", dirty=False),
    run="0123456789ab",
    tool_version="0.1.0",
    suite="builtin:smoke",
    selection=(),
    soft=SOFT,
)


def a_workload(**more):
    plain = model.CalibratedWorkload(
        processes=6,
        statistic="median",
        step_time_s=1e-3,
        launches={"median": 0.01, "p25": 0.009, "min": 0.008},
        pairs=0.012,
        pairs_df=8.0,
        smallest_detectable=0.025,
        expected_pairs=5.2,
        inconclusive=0.01,
        two_modes=False,
    )
    return msgspec.structs.replace(plain, **more)


def a_calibration(**more):
    plain = model.Calibration(
        machine=CPU,
        statistic="median",
        limit=0.02,
        provenance=PROVENANCE,
        launches={"median": 0.01, "p25": 0.009, "min": 0.008},
        inconclusive=0.02,
        workloads={"matmul": a_workload(), "bert_base": a_workload()},
    )
    return msgspec.structs.replace(plain, **more)
