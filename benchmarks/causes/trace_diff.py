"""Compare the traces of both sides by the trace diff of HolisticTraceAnalysis.

    python benchmarks/causes/trace_diff.py BASE_TRACE HEAD_TRACE

Runs in any environment that has HolisticTraceAnalysis: nothing of ci_perf is imported. Prints JSON:
microseconds by which the total duration of each operator differs, over all steps of both traces.
"""

import contextlib
import json
import sys


def differences_us(base: str, head: str) -> dict[str, float]:
    """Return what `TraceDiff.compare_traces` says of each name."""
    from hta.common.trace import Trace  # type: ignore[import-not-found]
    from hta.trace_diff import (  # type: ignore[import-not-found]
        DeviceType,
        LabeledTrace,
        TraceDiff,
    )

    before, after = (
        LabeledTrace(label, t=Trace(trace_files={0: file}, trace_dir="/"))
        for label, file in (("base", base), ("head", head))
    )
    table = TraceDiff.compare_traces(
        before,
        after,
        control_iteration=before.iterations(),
        test_iteration=after.iterations(),
        device_type=DeviceType.CPU,
    )
    return {str(name): float(value) for name, value in table["diff_duration"].items()}


if __name__ == "__main__":
    with contextlib.redirect_stdout(sys.stderr):
        differences = differences_us(*sys.argv[1:])
    print(json.dumps(differences))
