"""How much launches of the same code differ, and where the time of a run goes.

    python benchmarks/noise.py [--run FILE] [--suite NAME] [--processes N]

Measures a suite (`smoke` by default) with `ci-perf run`, or reads the run that is given, and prints
two tables. *Between* launches: the range of the processes' step times over their mean, and their
standard deviation over it. *Within* one: from the fastest to the slowest twentieth of its steps,
over their median, in the median process. *Measuring* is warm-up and timed blocks. What lies outside
of the phases is starting and ending Python, the canaries, and the questions to the machine.
"""

import argparse
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from ci_perf.judging import launch_numbers
from ci_perf.model import metrics
from ci_perf.model.process import PhaseTimes, Process
from ci_perf.model.run import Measured, Run
from ci_perf.system import files

ROOT = Path(__file__).parents[1]
# The phases that answer one question each: what a launch costs, and what it is spent on.
PARTS = {
    "import": ("import_s",),
    "build, first step": ("build_s", "first_step_s"),
    "warm-up": ("warmup_s",),
    "timed": ("timed_s",),
    "other passes": ("fingerprint_s", "memory_s", "counters_s"),
}
MEASURING = ("warm-up", "timed")


def main(run: Run) -> int:
    """Print both tables; fail when the run has nothing to show."""
    _spread(run.measured)
    _shares(run)
    for failed in run.failed:
        print(f"\n{failed.workload} failed: {failed.reason}")
    return int(bool(run.failed) or not run.measured)


def _spread(measured: Sequence[Measured]) -> None:
    print("| workload | processes | step time | between: range | between: deviation | within |")
    print("|:--|--:|--:|--:|--:|--:|")
    for workload in measured:
        times = [_step_s(process) for process in workload.processes]
        mean = statistics.mean(times)
        deviation = f"{statistics.stdev(times) / mean:.1%}" if len(times) > 1 else ""
        within = statistics.median(_within(process) for process in workload.processes)
        print(
            f"| {workload.workload} | {len(times)} | {mean * 1e3:.3f} ms "
            f"| {(max(times) - min(times)) / mean:.1%} | {deviation} | {within:.1%} |"
        )


def _shares(run: Run) -> None:
    print(f"\n| workload | s per process | {' | '.join(PARTS)} | measuring |")
    print("|:--|--:|" + "--:|" * (len(PARTS) + 1))
    spent = dict.fromkeys(PARTS, 0.0)
    for workload in run.measured:
        parts = _parts([process.phases for process in workload.processes])
        for part, seconds in parts.items():
            spent[part] += seconds
        whole = sum(parts.values())
        _row(workload.workload, whole / len(workload.processes), parts, whole)
    _row("**the whole run**", None, spent, run.duration_s)
    outside = 1 - sum(spent.values()) / run.duration_s
    print(f"\n{run.duration_s:.0f} s in all, {outside:.0%} of them outside of these phases.")


def _row(name: str, seconds: float | None, parts: dict[str, float], whole: float) -> None:
    shares = " | ".join(f"{part / whole:.0%}" for part in parts.values())
    measuring = sum(parts[part] for part in MEASURING) / whole
    print(
        f"| {name} | {'' if seconds is None else f'{seconds:.1f}'} | {shares} | {measuring:.0%} |"
    )


def _parts(phases: Sequence[PhaseTimes]) -> dict[str, float]:
    return {
        part: sum(getattr(times, field) for times in phases for field in fields)
        for part, fields in PARTS.items()
    }


def _step_s(process: Process) -> float:
    return launch_numbers.of_process(process)[metrics.STEP_TIME.name]


def _within(process: Process) -> float:
    steps = process.timed.steps
    return (steps.p95 - steps.p05) / steps.p50


def _measured(suite: str, processes: int) -> Run:
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "run.json"
        command = [sys.executable, "-m", "ci_perf", "run", "--suite", suite]
        settings = ["--processes", str(processes), "--output", str(output)]
        # Exit code 3, a workload that failed, is reported with the tables.
        subprocess.run([*command, *settings], cwd=ROOT, check=False, stdout=subprocess.DEVNULL)
        return files.read(output, Run)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--run", type=Path)
    parser.add_argument("--suite", default="smoke")
    parser.add_argument("--processes", type=int, default=5)
    given = parser.parse_args()
    found = files.read(given.run, Run) if given.run else _measured(given.suite, given.processes)
    sys.exit(main(found))
