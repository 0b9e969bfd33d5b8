"""What a launch costs, against another checkout of ci_perf, and whether launches differ as much.

    python benchmarks/launches.py OTHER [ROUNDS] [--only WORKLOAD…]

OTHER is a checkout of an earlier commit. In each round both measure every workload of the suite
once, each by its own protocol and without canaries, in turns; who comes first alternates. The
tables hold seconds per launch, start and end of the process included, and the spread of the
launches' step times: their standard deviation over the rounds, as a logarithm.
"""

import argparse
import math
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
# Prints what this version of us has measured; the run files of versions may differ.
READ = """
import sys
from pathlib import Path
from ci_perf.judging import launch_numbers
from ci_perf.model import metrics
from ci_perf.model.run import Run
from ci_perf.system import files
run = files.read(Path(sys.argv[1]), Run)
print(run.duration_s, len(run.failed))
for workload in run.measured:
    for process in workload.processes:
        phases = process.phases
        step_s = launch_numbers.find_own_numbers(process)[metrics.STEP_TIME.name]
        timing = phases.warmup_s + phases.timed_s
        print(workload.workload, step_s, phases.import_s, timing)
"""

# By workload: seconds per step, seconds of import, seconds of warm-up and timing.
Launches = Mapping[str, tuple[float, float, float]]


def main(other: Path, rounds: int, only: Sequence[str]) -> int:
    """Print both tables after each round, so that an interrupted run has shown something."""
    sides = {"other": other, "this": ROOT}
    seconds: dict[str, list[float]] = {side: [] for side in sides}
    launches: dict[str, list[Launches]] = {side: [] for side in sides}
    for number in range(rounds):
        for side in sorted(sides, reverse=bool(number % 2)):
            spent_s, measured = _round(sides[side], only)
            seconds[side].append(spent_s / len(measured))
            launches[side].append(measured)
    _show_seconds(seconds, launches)
    _show_spread(launches)
    print(f"\nload average at the end: {os.getloadavg()[0]:.1f}; {os.cpu_count()} CPUs")
    return 0


def _round(checkout: Path, only: Sequence[str]) -> tuple[float, Launches]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file in (checkout / "workloads").glob("*.*"):
            text = file.read_text(encoding="utf-8")
            if file.name == "suite.toml":
                text = text.replace("[suites.smoke]", "[suites.smoke]\ncanaries = false")
            (folder / file.name).write_text(text, encoding="utf-8")
        output = folder / "run.json"
        command = ["-m", "ci_perf", "run", "--suite", "smoke", "--processes", "1", "--wait", "0s"]
        _python(checkout, *command, "--workloads", name, "--output", str(output), *only)
        first, *lines = _python(checkout, "-c", READ, str(output)).splitlines()
    duration, failed = first.split()
    if failed != "0":
        raise SystemExit(f"{checkout}: {failed} workloads failed")
    launches = {}
    for line in lines:
        workload, *numbers = line.split()
        step_s, import_s, timing_s = map(float, numbers)
        launches[workload] = (step_s, import_s, timing_s)
    return float(duration), launches


def _python(checkout: Path, *arguments: str) -> str:
    # A launch that records afterwards is none of those whose seconds are counted.
    environment = {**os.environ, "PYTHONPATH": str(checkout), "CI_PERF_RUN_RECORD": "0"}
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=checkout,
        env=environment,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    ).stdout


def _show_seconds(
    seconds: Mapping[str, Sequence[float]], launches: Mapping[str, Sequence[Launches]]
) -> None:
    print("| seconds per launch | other | this | this / other, per round |\n|:--|--:|--:|--:|")
    _row("start to end", seconds["other"], seconds["this"])
    for position, part in ((1, "its own import"), (2, "warm-up and timing")):
        means = {
            side: [statistics.fmean(row[position] for row in made.values()) for made in rounds]
            for side, rounds in launches.items()
        }
        _row(part, means["other"], means["this"])


def _row(part: str, other: Sequence[float], this: Sequence[float]) -> None:
    ratios = sorted(new / old for new, old in zip(this, other, strict=True))
    medians = " | ".join(f"{statistics.median(values):.2f}" for values in (other, this))
    middle = statistics.median(ratios)
    print(f"| {part} | {medians} | {middle:.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f}) |")


def _show_spread(launches: Mapping[str, Sequence[Launches]]) -> None:
    print("\n| workload | other: step | spread | this: step | spread |\n|:--|--:|--:|--:|--:|")
    variances: dict[str, list[float]] = {side: [] for side in launches}
    for workload in launches["this"][0]:
        cells = []
        for side, rounds in launches.items():
            logs = [math.log(made[workload][0]) for made in rounds]
            variances[side].append(statistics.variance(logs) if len(logs) > 1 else 0.0)
            step = math.exp(statistics.median(logs))
            cells.append(f"{step * 1e3:.3f} ms | {math.sqrt(variances[side][-1]):.1%}")
        print(f"| {workload} | {' | '.join(cells)} |")
    pooled = [math.sqrt(statistics.median(variances[side])) for side in ("other", "this")]
    print(f"| median of the workloads | | {pooled[0]:.1%} | | {pooled[1]:.1%} |")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("other", type=Path)
    parser.add_argument("rounds", type=int, nargs="?", default=5)
    parser.add_argument("--only", nargs="*", default=())
    given = parser.parse_args()
    sys.exit(main(given.other.resolve(), given.rounds, given.only))
