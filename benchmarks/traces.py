"""Digest traces of torch.profiler, and say what it cost: `python -m benchmarks.traces FILE…`.

One line a file: events, seconds per 100,000 events, peak memory of a process of its own, and the
device's times by reason. The files may be gzipped.
"""

import gzip
import resource
import subprocess
import sys
import time
from pathlib import Path

from ci_perf.measuring.profiling import device_trace, trace_events

_HEADING = ("trace", "events", "s / 100 k", "MB", "work", "linked", "busy", "idle by reason", "sum")


def main(files: list[str]) -> int:
    """Print the table, each line by a process of its own, whose memory is its own."""
    print(f"| {' | '.join(_HEADING)} |\n|{'--|' * len(_HEADING)}", flush=True)
    return max(
        (
            subprocess.run(
                [sys.executable, "-m", __spec__.name, "--one", file], check=False
            ).returncode
            for file in files
        ),
        default=0,
    )


def _one(path: Path) -> int:
    start = time.process_time()
    raw = path.read_bytes()
    text = gzip.decompress(raw) if path.suffix == ".gz" else raw
    events = trace_events.read(text)
    digest = device_trace.digest(events)
    took_s = time.process_time() - start
    count = text.count(b'"ph"')
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    cells = [path.name, f"{count:,}", f"{took_s / max(count, 1) * 1e5:.2f}", f"{peak_mb:.0f}"]
    device = digest.device
    if device is None:
        cells += ["-"] * 5
    else:
        idle = [f"{part.reason} {part.idle_s / device.span_s:.1%}" for part in device.idle]
        total = device.busy_s + sum(part.idle_s for part in device.idle)
        cells += [
            f"{device.work:,.0f}",
            f"{1 - device.unlinked / device.work:.0%}",
            f"{device.busy_s / device.span_s:.1%}",
            ", ".join(idle) or "-",
            f"{total / device.span_s:.4%}",
        ]
    print(f"| {' | '.join(cells)} |", flush=True)
    return 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        sys.exit(_one(Path(sys.argv[2])))
    sys.exit(main(sys.argv[1:]))
