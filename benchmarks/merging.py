"""How long it takes, and how much memory, to merge the results of very many units.

    python -m benchmarks.merging [--results 10000] [--launches 3]

Writes a plan and so many run files with one workload each, of several classes of machines, and
merges them with `ci-perf merge` in a process of its own, as a job does. Fails (exit code 1) above
10 s or 500 MB for 10,000 results: what issue 17 asks for.
"""

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import msgspec

from ci_perf.model import codec
from ci_perf.model.environment import CpuMachine
from ci_perf.model.run import Interleaved, Pair, Paired, Run, Source, Tool
from ci_perf.model.shards import WorkPlan, WorkUnit
from ci_perf.system import files
from ci_perf.version import __version__
from tests.runs import a_measured, a_run, an_environment

MOST_S, MOST_BYTES = 10.0, 500e6
# A suite of more workloads than this is none; ten classes of a thousand are a large fleet.
_IN_A_CLASS = 1_000
_TOOL = Tool(version=__version__)
_SOURCE = Source(commit="0" * 40, branch="main", dirty=False)
_PAIRS = 1
_HOW = Interleaved(
    ref="main", source=_SOURCE, suspects=1, budget_s=60.0, spent_s=5.0, stopped="decided", pairs=1
)


def write(folder: Path, results: int, launches: int) -> int:
    """Write a plan and its results into a folder; return their size in bytes."""
    units = [
        WorkUnit(
            tool=_TOOL,
            id=f"unit{number}",
            suite="simulated",
            source=_SOURCE,
            workloads=(f"w{number % _IN_A_CLASS}",),
            expected_s=60.0,
            machine_class=f"class{number // _IN_A_CLASS}",
            against="main",
        )
        for number in range(results)
    ]
    plan = WorkPlan(
        tool=_TOOL,
        suite="simulated",
        source=_SOURCE,
        against="main",
        shards=results,
        units=tuple(units),
    )
    files.write(folder / "plan.json", plan)
    size = 0
    for number, unit in enumerate(units):
        text = codec.encode(_run(unit, number, launches))
        target = folder / "shards" / unit.id
        target.mkdir(parents=True)
        (target / "run.json").write_text(text, encoding="utf-8")
        size += len(text)
    return size


def _run(unit: WorkUnit, number: int, launches: int) -> Run:
    machine = CpuMachine(cpu_model=unit.machine_class or "", logical_cores=2)
    steps_s = [1e-3 * (1 + 0.001 * ((number + i) % 7)) for i in range(launches)]
    blocks = [[step_s * (1 + 0.0001 * i) for i in range(50)] for step_s in steps_s]
    run: Run = a_run(  # type: ignore[no-untyped-call]
        a_measured(unit.workloads[0], *blocks),  # type: ignore[no-untyped-call]
        id=f"run{number}",
        suite=unit.suite,
        environment=an_environment(  # type: ignore[no-untyped-call]
            hard=machine, node=f"node{number % 500}"
        ),
    )
    pairs = tuple(
        Pair(first="base", base=process, head=process)
        for process in run.measured[0].processes[:_PAIRS]
    )
    return msgspec.structs.replace(
        run,
        tool=_TOOL,
        source=_SOURCE,
        unit=unit.id,
        selection=unit.workloads,
        interleaved=_HOW,
        paired=(Paired(workload=unit.workloads[0], pairs=pairs),),
    )


def main(*, results: int, launches: int) -> int:
    """Print how long merging took; fail above the limits."""
    with tempfile.TemporaryDirectory() as folder:
        size = write(Path(folder), results, launches)
        start = time.monotonic()
        command = ["merge", "shards", "--plan", "plan.json", "-o", "merged"]
        done = subprocess.run(
            [sys.executable, "-m", "ci_perf", *command],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )
        took_s = time.monotonic() - start
        written = sum(file.stat().st_size for file in Path(folder, "merged").glob("*"))
    if done.returncode:
        print(done.stderr, file=sys.stderr)
        return done.returncode
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    print(
        f"{results:,} results of {launches} launches ({size / 1e6:.0f} MB) merged into "
        f"{-(-results // _IN_A_CLASS)} classes ({written / 1e6:.0f} MB) in {took_s:.1f} s, with "
        f"{peak / 1e6:.0f} MB at most"
    )
    return int(took_s > MOST_S or peak > MOST_BYTES)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--results", type=int, default=10_000)
    parser.add_argument("--launches", type=int, default=3)
    options = parser.parse_args()
    sys.exit(main(results=options.results, launches=options.launches))
