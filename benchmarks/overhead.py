"""What measuring adds to a step, and what the monitor and explaining add to a run, as ratios.

    python benchmarks/overhead.py [--rounds N] [--launches N] [--checks N] [--device cpu|cuda:N]

Prints up to three tables of ratios. In the first, four timers take turns on the same callable in
one process, in an order that is drawn anew each round: a bare loop, the same once more (A/A, which
says how noisy the machine is), `Device.time_block`, and `blocked_autorange` of
torch.utils.benchmark. In the second, one workload is launched without the monitor, the same once
more (A/A), and with it. In the third, `run --against` measures a head that takes twice as long, in
turns without explaining, the same once more (A/A), and with it: base and head each give the ratio
of their timed launches.

The claims: a median ratio is within 1 ± 0.01, of explaining within 1 ± 0.005; that of the monitor
and of explaining is within that, or within its A/A where that is wider. The exit code is 1 when a
claim is refuted: the interval of a median lies wholly outside. An interval that is wider than the
claim cannot show it: measure again on a quiet machine, or with more rounds.
"""

import argparse
import gc
import math
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import torch
from torch.utils import benchmark

import ci_perf
from ci_perf.judging import launch_numbers, proof_figures
from ci_perf.measuring import user_code
from ci_perf.measuring.device import Device, Step, open_device
from ci_perf.model import metrics
from ci_perf.model.run import Run
from ci_perf.system import files
from ci_perf.workload import Context, Scalar

ROOT = Path(__file__).parents[1]
WORKLOADS = ROOT / "workloads"
CALLABLES: dict[str, tuple[str, dict[str, Scalar]]] = {
    "matmul 256": ("matmul", {"size": 256}),
    "matmul 512": ("matmul", {"size": 512}),
    "MLP step": ("mlp_mnist_train", {"optimizer": "sgd", "batch": 64}),
    "tiny BERT": ("bert_base_infer", {"model": "tiny", "batch": 8, "seq": 32}),
}
BLOCK_S = 0.02
CLAIM = 0.01
BARE, AGAIN = "bare loop", "bare loop again"
OURS, THEIRS = "time_block", "blocked_autorange"
COMPARED = ((AGAIN, BARE), (OURS, BARE), (OURS, THEIRS))

# The median speaks: the fastest block would be blind to a monitor that disturbs some of them.
SUITE = """
[suites.overhead]
canaries = false
[suites.overhead.protocol]
processes = {launches}
statistic = "median"
warmup_min_s = 0.3
warmup_max_s = 3.0
warmup_tolerance = 0.05
block_min_s = 0.02
timed_min_s = 2.0
timed_max_s = 2.0
"""
ENTRY = """
[[suites.overhead.workloads]]
workload = "matmul"
name = "{name}"
parameters = {{ size = 256 }}
protocol = {{ monitor_hz = {hertz} }}
"""
LAUNCHES = {"off": 0.0, "on": 5.0, "off_again": 0.0}
EXPLAINING_CLAIM = 0.005
EXPLAINING = {"without": False, "with": True, "without again": False}
EXPLAINED_SUITE = """
[suites.overhead]
canaries = false
[suites.overhead.protocol]
statistic = "median"
warmup_min_s = 0.3
warmup_max_s = 1.0
warmup_tolerance = 0.05
timed_min_s = 1.0
timed_max_s = 1.0
[[suites.overhead.workloads]]
workload = "product"
"""
# Plain Python, which imports nothing that takes seconds: many runs fit into an hour.
EXPLAINED_WORKLOAD = """
from ci_perf.workload import Workload
from times import TIMES

def step():
    for _ in range(TIMES):
        sum(number * number for number in range(20_000))

def build(context):
    return Workload(step=step)
"""

Timer = Callable[[], float]


def main(rounds: int, launches: int, checks: int, device: str) -> int:
    """Print the tables; fail when a claim is refuted."""
    holds = _timers(rounds, device) if rounds else True
    if launches:
        holds = _monitor(launches, device) and holds
    if checks:
        holds = _explaining(checks, device) and holds
    return int(not holds)


def _timers(rounds: int, name: str) -> bool:
    torch.set_num_threads(1)
    device = open_device(name)
    holds = True
    print(f"Seconds per step, as ratios ({name}, {rounds} rounds, 1 thread)\n")
    print("| callable | timers | median ratio | 95 % interval | middle half | 1 ± 0.01 |")
    print("|:--|:--|--:|:--|:--|:--|")
    for title, (file, parameters) in CALLABLES.items():
        torch.manual_seed(0)
        context = Context(device=name, parameters=parameters, seed=0, data_dir="")
        step = user_code.load(WORKLOADS / f"{file}.py", ROOT).build(context).step
        times = _in_turns(_timers_of(step, device), rounds)
        for one, other in COMPARED:
            ratios = _ratios(times[one], times[other])
            verdict = _verdict(ratios, CLAIM)
            holds &= verdict != "refuted" or one == AGAIN
            print(f"| {title} | {one} / {other} | {_cells(ratios)} | {verdict} |", flush=True)
    return holds


def _timers_of(step: Step, device: Device) -> Mapping[str, Timer]:
    """Warm up, and return every way to take seconds per step over the same time."""
    step_s = _bare(step, device, 3)
    count = max(1, math.ceil(BLOCK_S / _bare(step, device, max(3, math.ceil(0.5 / step_s)))))
    theirs = benchmark.Timer("step()", globals={"step": step}, num_threads=1)
    return {
        BARE: lambda: _bare(step, device, count),
        AGAIN: lambda: _bare(step, device, count),
        OURS: lambda: device.time_block(step, count).step_s,
        THEIRS: lambda: theirs.blocked_autorange(min_run_time=BLOCK_S).mean,
    }


def _bare(step: Step, device: Device, count: int) -> float:
    device.synchronize()
    start = time.perf_counter_ns()
    for _ in range(count):
        step()
    device.synchronize()
    return (time.perf_counter_ns() - start) / 1e9 / count


def _in_turns(timers: Mapping[str, Timer], rounds: int) -> Mapping[str, Sequence[float]]:
    order, draw = list(timers), random.Random(0)  # noqa: S311  no secret is made of it
    times: dict[str, list[float]] = {name: [] for name in timers}
    gc.disable()
    for _ in range(rounds):
        draw.shuffle(order)
        for name in order:
            times[name].append(timers[name]())
    gc.enable()
    return times


def _monitor(launches: int, device: str) -> bool:
    times = _launched(launches, device)
    again = _ratios(times["off_again"], times["off"])
    ratios = _ratios(times["on"], times["off"])
    verdict = _verdict_beside(again, ratios, CLAIM)
    print(f"\nStep time of matmul 256 with the monitor ({device}, {launches} launches each)\n")
    print("| launched | median ratio | 95 % interval | middle half | |\n|:--|--:|:--|:--|:--|")
    print(f"| without it again (A/A) | {_cells(again)} | |")
    print(f"| with it at {LAUNCHES['on']:g} Hz | {_cells(ratios)} | {verdict} |")
    return verdict != "refuted"


def _launched(launches: int, device: str) -> Mapping[str, Sequence[float]]:
    """Run a suite whose workloads differ by the monitor alone; the session launches in turns."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file in ("matmul.py", "_parameters.py"):
            (folder / file).write_text((WORKLOADS / file).read_text())
        entries = [ENTRY.format(name=name, hertz=hertz) for name, hertz in LAUNCHES.items()]
        (folder / "suite.toml").write_text(SUITE.format(launches=launches) + "".join(entries))
        command = [sys.executable, "-m", "ci_perf", "run", "--suite", "overhead"]
        where = ["--workloads", name, "--device", device, "--output", str(folder / "run.json")]
        subprocess.run([*command, *where], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
        run = files.read(folder / "run.json", Run)
    return {
        workload.workload: [
            launch_numbers.of_process(process)[metrics.STEP_TIME.name]
            for process in workload.processes
        ]
        for workload in run.measured
    }


def _explaining(checks: int, device: str) -> bool:
    """Compare timed launches of runs with and without explaining, by the wall and by CPU time."""
    times: dict[str, dict[str, list[float]]] = {
        metric: {name: [] for name in EXPLAINING} for metric in _TIMES
    }
    with tempfile.TemporaryDirectory() as name:
        folder = _two_commits(Path(name))
        for number in range(checks):
            for kind in sorted(EXPLAINING, reverse=bool(number % 2)):
                run = _checked(folder, device, explain=EXPLAINING[kind])
                for metric in _TIMES:
                    times[metric][kind] += _medians(run, metric)
    print(f"\nTimed launches of `run --against`, base and head ({device}, {checks} runs each)\n")
    print("| time | explaining | median ratio | 95 % interval | middle half | 1 ± 0.005 |")
    print("|:--|:--|--:|:--|:--|:--|")
    verdicts = []
    for metric, by_kind in times.items():
        if not by_kind["without"]:
            continue
        again = _ratios(by_kind["without again"], by_kind["without"])
        ratios = _ratios(by_kind["with"], by_kind["without"])
        verdicts.append(_verdict_beside(again, ratios, EXPLAINING_CLAIM))
        print(f"| {metric} | without again (A/A) | {_cells(again)} | |")
        print(f"| {metric} | with | {_cells(ratios)} | {verdicts[-1]} |")
    return "refuted" not in verdicts


_TIMES = (metrics.STEP_TIME.name, metrics.STEP_CPU.name)


def _two_commits(folder: Path) -> Path:
    """Make a repository whose head takes twice as long as its branch `main`."""
    (folder / "workloads").mkdir()
    (folder / "workloads" / "suite.toml").write_text("schema_version = 1\n" + EXPLAINED_SUITE)
    (folder / "workloads" / "product.py").write_text(EXPLAINED_WORKLOAD)
    git = ["git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@example.org"]
    subprocess.run([*git, "init", "--quiet", "--initial-branch=main"], check=True)
    for times, branch in ((1, "main"), (2, "head")):
        if branch != "main":
            subprocess.run([*git, "switch", "--quiet", "--create", branch], check=True)
        (folder / "times.py").write_text(f"TIMES = {times}\n")
        subprocess.run([*git, "add", "--all"], check=True)
        subprocess.run([*git, "commit", "--quiet", "--message", branch], check=True)
    return folder


def _checked(folder: Path, device: str, *, explain: bool) -> Run:
    run = ci_perf.measure(
        "overhead",
        root=folder,
        against="main",
        device=device,
        record=False,
        explain=explain,
        explain_budget_s=20.0,
        wait_s=0.0,
        notify=lambda line: print(line, file=sys.stderr),
    )
    if bool(run.profiled) != explain:
        raise RuntimeError(f"expected a run that explains: {explain}; found {run.profiled}")
    return run


def _medians(run: Run, metric: str) -> Sequence[float]:
    """Return the median over the timed launches of the base, and of the head, where known."""
    (paired,) = run.paired
    sides = ([pair.base for pair in paired.pairs], [pair.head for pair in paired.pairs])
    values = [[launch_numbers.of_process(each).get(metric) for each in side] for side in sides]
    known = [[value for value in side if value is not None] for side in values]
    return [statistics.median(side) for side in known if side]


def _ratios(values: Sequence[float], reference: Sequence[float]) -> Sequence[float]:
    return sorted(one / other for one, other in zip(values, reference, strict=True))


def _farthest(ratios: Sequence[float]) -> float:
    return max(abs(bound - 1) for bound in proof_figures.median_interval(ratios))


def _verdict_beside(again: Sequence[float], ratios: Sequence[float], claim: float) -> str:
    """Judge by the claim, or by the A/A of the same minutes where that is wider."""
    verdict = _verdict(ratios, claim)
    if verdict == "holds":
        return verdict
    wider = _verdict(ratios, max(claim, _farthest(again)))
    return "within its A/A" if wider == "holds" else wider


def _verdict(ratios: Sequence[float], claim: float) -> str:
    low, high = proof_figures.median_interval(ratios)
    if low > 1 + claim or high < 1 - claim:
        return "refuted"
    if 1 - claim <= low and high <= 1 + claim:
        return "holds"
    return "too noisy to show"


def _cells(ratios: Sequence[float]) -> str:
    low, high = proof_figures.median_interval(ratios)
    quarter, median, three_quarters = statistics.quantiles(ratios, n=4)
    return f"{median:.4f} | {low:.4f} to {high:.4f} | {quarter:.4f} to {three_quarters:.4f}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=200, help="0 leaves the timers out")
    parser.add_argument("--launches", type=int, default=10, help="0 leaves the monitor out")
    parser.add_argument("--checks", type=int, default=0, help="how many runs explain; 0: no table")
    parser.add_argument("--device", default="cpu")
    arguments = parser.parse_args()
    sys.exit(main(arguments.rounds, arguments.launches, arguments.checks, arguments.device))
