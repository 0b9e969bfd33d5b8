"""What a quarter of an hour with a GPU should answer, as JSON and one Markdown page.

    python -m benchmarks.gpu_day [--minutes 12] [--parts NAME …] [--device cuda]
                                 [--results gpu-day.json] [--page gpu-day.md]

Tries the parts of `PARTS` in their order while minutes are left, and writes results and page after
each. A part with an answer is kept, so a short lease can be used in pieces. With
`--device cpu`, smaller steps and less time rehearse all parts; the answers are those of a CPU.

The exit code is 1 where a part or the doctor fails, an unchanged step is called slower, a step that
was made 3 % slower or more is called unchanged, or digests of generated code are wrong.
"""

import argparse
import contextlib
import functools
import itertools
import json
import math
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.repositories import Repository
from ci_perf.judging import launch_numbers
from ci_perf.launch import local
from ci_perf.launch.local import LocalLauncher
from ci_perf.model import metrics
from ci_perf.model.base import Scalar
from ci_perf.model.comparison import Comparison, Verdict
from ci_perf.model.process import Process, SideProfile, WorkerResult
from ci_perf.model.run import Pair, Run
from ci_perf.model.suite import PlannedWorkload, Protocol
from ci_perf.model.task import Task, TaskFailure
from ci_perf.system import files
from ci_perf.version import __version__

ROOT = Path(__file__).parents[1]
STEPS = Path(__file__).with_name("gpu_day_steps.py")
SUITE = """schema_version = 1
[suites.day]
canaries = false
limits = {{ step_time_s = 0.02 }}
[[suites.day.workloads]]
workload = "steps"
parameters = {{ {parameters} }}
"""
# A change that a check with a limit of 2 % must not call unchanged.
FOUND_FROM = 3
# Of a check, beside its pairs: it launches the head once.
START_S = 15.0
# A part of a rehearsal has this much. Where less is left, no part begins.
LEAST_S = 10.0
CHECKS = 40
RANKS = "bert_base_finetune.world_size=2"
MONITOR_HZ, ROUNDS, WATCHED_S = 5.0, 8, 0.5
_MONITOR_PART = "measure-monitor"
WORSE = {Verdict.REGRESSED.value, Verdict.LIKELY_SLOWER.value}
Result = dict[str, Any]
Parameters = Mapping[str, Scalar]


def ask_doctor(device: str, seconds: float) -> Result:
    """Return each deep check of this machine."""
    del device, seconds
    command = [sys.executable, "-m", "ci_perf", "doctor", "--deep", "--json", "--wait", "0s"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if not done.stdout:
        raise SystemExit(done.stderr)
    return {"exit_code": done.returncode, "deep": json.loads(done.stdout)["deep"]}


def check_step(device: str, seconds: float, parameters: Parameters, *, is_changed: bool) -> Result:
    """Check a branch whose steps differ, or that changes nothing, until it is decided."""
    with _repository(parameters, is_changed=is_changed) as repository:
        found = check(repository, device, seconds)
    return {**found, "planted": parameters.get("percent") if is_changed else 0}


def check_suite(device: str, seconds: float, chosen: str, rehearsed: str) -> Result:
    """Check a branch that changes nothing by a suite of ours, and workloads of it.

    On a CPU by others, of the suite smoke.
    """
    with tempfile.TemporaryDirectory() as name:
        repository = Repository(Path(name))
        there = repository.root / "workloads"
        shutil.copytree(ROOT / "workloads", there, ignore=shutil.ignore_patterns("__pycache__"))
        repository.commit()
        _branch(repository)
        suite = f"smoke {rehearsed}" if device == "cpu" else chosen
        return {**check(repository, device, seconds, "--suite", *suite.split()), "planted": 0}


def check_ranks(device: str, seconds: float) -> Result:
    """Check two ranks, on two cards by nccl."""
    if device != "cpu" and int(describe_machine()["cards"]) < 2:
        return {"not_yet": "the machine has one card"}
    return check_suite(device, seconds, f"smoke {RANKS}", RANKS)


def check_command(device: str, seconds: float) -> Result:
    """Check a command that prints its step times; two copies take turns on the card."""
    words = ("--", sys.executable, "workloads/steps.py", device)
    with _repository({"kind": "gpt"}, is_changed=True) as repository:
        found = check(repository, "auto", seconds, "--metric", "step_s=took ([0-9.e-]+)", *words)
    return {**found, "planted": 5}


def check_often(device: str, seconds: float) -> Result:
    """Check a branch that changes nothing again and again."""
    until = time.monotonic() + seconds
    verdicts: list[str] = []
    with _repository({"kind": "long"}, is_changed=False) as repository:
        while len(verdicts) < CHECKS and (not verdicts or time.monotonic() < until):
            verdicts += _count_verdicts(check(repository, device, seconds)).elements()
    return {"verdicts": verdicts, "planted": 0}


@contextlib.contextmanager
def _repository(parameters: Parameters, *, is_changed: bool) -> Iterator[Repository]:
    """Provide a repository with the steps, and a branch."""
    with tempfile.TemporaryDirectory() as name:
        repository, text = Repository(Path(name)), STEPS.read_text(encoding="utf-8")
        said = ", ".join(f"{key} = {json.dumps(value)}" for key, value in parameters.items())
        suite = SUITE.format(parameters=said)
        repository.write({"workloads/steps.py": text, "workloads/suite.toml": suite})
        repository.commit()
        changed = text.replace("IS_HEAD = False", "IS_HEAD = True") if is_changed else text
        _branch(repository, {"workloads/steps.py": changed})
        yield repository


def _branch(repository: Repository, texts: Mapping[str, str] | None = None) -> None:
    repository.git("switch", "--quiet", "--create", "change")
    repository.write(texts or {})
    repository.commit()


def check(repository: Repository, device: str, seconds: float, *options: str) -> Result:
    """Check a branch against main; return its rows, what its sides show, and the cost."""
    where = repository.root.parent
    judged, written, report = where / "comparison.json", where / "run.json", where / "report.md"
    start, pairs_s = time.monotonic(), max(seconds - START_S, LEAST_S / 2)
    said = repository.ci_perf(
        *("check", "--against", "main", "--all", "--device", device, "--wait", "0s"),
        *("--processes", "1", "--explain", "0s", "--budget", f"{pairs_s:.0f}s"),
        *("--comparison", str(judged), "--output", str(written), "--report", str(report)),
        *options,
    )
    wall_s = time.monotonic() - start
    if not judged.exists():
        raise SystemExit(said)
    comparison, run = files.read(judged, Comparison), files.read(written, Run)
    pairs = [pair for each in run.paired for pair in each.pairs]
    sides = [(each.base, each.head) for each in comparison.profiles if each.base]
    return {
        "wall_s": wall_s,
        "pairs": len(pairs),
        "resident": sum(pair.resident for pair in pairs),
        "notes": run.interleaved.notes if run.interleaved else (),
        "validity": [reason.code for reason in run.validity.reasons],
        "rows": [msgspec.to_builtins(row) for row in comparison.rows],
        "failed": [f"{each.workload}: {each.reason}" for each in run.failed],
        "sides": [_side(side) for side in sides[0]] if sides else None,
        "log": said,
        "report": report.read_text(encoding="utf-8"),
    }


def _side(side: SideProfile) -> Result:
    copies = side.device_work.copies if side.device_work else {}
    return {
        "step_time_s": side.step_time_s,
        "utilization": [each.utilization for each in side.gpus],
        "memory_peak_bytes": [each.memory_peak_bytes for each in side.gpus],
        "copies": {name: [each.count, each.bytes] for name, each in copies.items()},
    }


def compare_pairs(device: str, seconds: float, parameters: Parameters) -> Result:
    """Launch pairs in both ways: one after the other, and resident, block by block.

    A check launches the second kind on a CPU alone (docs/decisions/009).
    """
    both = [{**parameters, "is_head": is_head} for is_head in (False, True)]
    with _tasks(device, *both) as (launcher, sides):
        until = time.monotonic() + seconds
        found: dict[str, Result] = {
            kind: {"differences": [], "seconds": 0.0} for kind in ("launch", "resident")
        }
        for number in itertools.count():
            if number > 1 and time.monotonic() > until:
                return found
            base, head = (msgspec.structs.replace(side, index=number) for side in sides)
            order = (base, head) if number % 2 else (head, base)
            for kind, by_kind in found.items():
                start = time.monotonic()
                outcomes = _launch_pair(launcher, order, is_resident=kind == "resident")
                by_kind["seconds"] += time.monotonic() - start
                first, second = outcomes if number % 2 else outcomes[::-1]
                pair = Pair(first="base", resident=kind == "resident", base=first, head=second)
                by_kind["differences"].append(launch_numbers.step_difference(pair))
    raise AssertionError("never reached")


def _launch_pair(
    launcher: LocalLauncher, tasks: tuple[Task, Task], *, is_resident: bool
) -> list[Process]:
    if is_resident:
        return [_process(outcome) for outcome in launcher.launch_pair(*tasks)]
    with launcher.ready(tasks) as launches:
        return [_process(launch()) for launch in launches]


def compare_forks(device: str, seconds: float) -> Result:
    """Launch two workloads in fresh processes, and forked from one that has imported torch."""
    if device != "cpu":
        return {"not_yet": "a launch is forked on a CPU only (decision 030)"}
    until = time.monotonic() + seconds
    found: dict[str, Result] = {kind: {"seconds": [], "step_s": []} for kind in ("fresh", "forked")}
    with _tasks(device, {"kind": "gpt"}, {"kind": "long"}) as (launcher, tasks):
        for number in itertools.count():
            if number and time.monotonic() > until:
                return found
            for kind, by_kind in found.items():
                libraries = ("torch",) if kind == "forked" else ()
                start = time.monotonic()
                for each in tasks:
                    task = msgspec.structs.replace(each, index=number, libraries=libraries)
                    timed = _process(launcher.launch(task)).timed
                    by_kind["step_s"].append(statistics.median(timed.block_s))
                by_kind["seconds"].append((time.monotonic() - start) / len(tasks))
    raise AssertionError("never reached")


def compare_digests(device: str, seconds: float) -> Result:
    """Compile the base twice, and the head, which is edited; return digests of their kernels."""
    del seconds
    base: Parameters = {"kind": "compiled"}
    with _tasks(device, base, base, {**base, "is_head": True}) as (launcher, tasks):
        codes = [_process(launcher.launch(task)).generated for task in tasks]
    return {"digests": [sorted({k.digest for k in code.kernels}) if code else [] for code in codes]}


@contextlib.contextmanager
def _tasks(device: str, *parameters: Parameters) -> Iterator[tuple[LocalLauncher, list[Task]]]:
    """Provide a launcher, and a launch of the steps with each of these parameters."""
    with tempfile.TemporaryDirectory() as name, local.launcher(Path(name)) as launcher:
        file = shutil.copy(STEPS, name)
        machine = launcher.describe(device, 1, 1)
        if isinstance(machine, TaskFailure):
            raise SystemExit(machine.reason)
        task = functools.partial(
            Task, index=0, device=machine.device, root=name, data_dir=name, gpus=machine.gpus
        )
        planned = functools.partial(PlannedWorkload, file=file, description="", protocol=Protocol())
        workloads = [planned(id=f"w{n}", parameters=dict(of)) for n, of in enumerate(parameters)]
        yield launcher, [task(workload=workload) for workload in workloads]


def _process(outcome: WorkerResult | TaskFailure) -> Process:
    if isinstance(outcome, TaskFailure):
        raise SystemExit(f"{outcome.reason}\n{outcome.output}")
    return outcome.process


def list_operators(device: str, seconds: float) -> Result:
    """Return the operators of a step, with the time of CPU and GPU, and the waits."""
    with _repository({"kind": "long"}, is_changed=False) as repository:
        output = repository.root.parent / "operators.md"
        repository.ci_perf(
            *("explain", "--operators", "--device", device, "--wait", "0s"),
            *("--budget", f"{seconds:.0f}s", "--output", str(output)),
        )
        return {"operators": output.read_text(encoding="utf-8")}


def time_with_monitor(device: str, seconds: float) -> Result:
    """Return how much longer a step takes while the monitor reads, in a process of its own."""
    del seconds
    command = [sys.executable, "-m", "benchmarks.gpu_day", _MONITOR_PART, "--device", device]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True)
    return dict(json.loads(done.stdout))


def measure_monitor(device: str) -> Result:
    """Time short kernels with and without a monitor, in turns, in this process."""
    import torch

    from ci_perf.launch.monitoring import watch_host
    from ci_perf.measuring import environment_probe
    from ci_perf.measuring.device import open_device
    from ci_perf.measuring.monitor import Marks

    described = environment_probe.describe(device, 1)
    opened = open_device(described.device)
    number = torch.zeros(1, device=described.device)

    def step() -> None:
        for _ in range(100):
            number.add_(1)

    def time_step(hz: float) -> tuple[float, float]:
        with tempfile.TemporaryDirectory() as name:
            folder, python = Path(name), [sys.executable, "-P"]
            with watch_host(folder, described.gpus, hz, python, os.environ) as report:
                marks = Marks(folder)
                marks.hello()
                marks.begin()
                until, blocks = time.monotonic() + WATCHED_S, []
                while time.monotonic() < until:
                    blocks.append(opened.time_block(step, 20).step_s)
                marks.end()
        evidence = report.evidence()
        if hz and evidence is None:
            raise SystemExit(report.problem)
        return statistics.median(blocks), evidence.overhead_cpu_s if evidence else 0.0

    time_step(0)  # reaches the clocks of a busy GPU
    ratios, cpu_s = [], []
    for number_of_round in range(ROUNDS):
        order = (0.0, MONITOR_HZ) if number_of_round % 2 else (MONITOR_HZ, 0.0)
        both = {hz: time_step(hz) for hz in order}
        ratios.append(both[MONITOR_HZ][0] / both[0][0])
        cpu_s.append(both[MONITOR_HZ][1])
    return {"ratios": ratios, "cpu_share": statistics.fmean(cpu_s) / WATCHED_S}


def _step_rows(part: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return a row of each workload: of its step time, or the one that says why there is none."""
    return list(
        {
            row["workload"]: row
            for metric in ("", metrics.STEP_TIME.name)
            for row in part["rows"]
            if row.get("metric") == metric
        }.values()
    )


def _count_verdicts(part: Mapping[str, Any]) -> Counter[str]:
    """Count the verdicts on step times; what has no row is not measured."""
    rows = [row["verdict"] for row in _step_rows(part)] if "rows" in part else []
    return Counter([*rows, *part.get("verdicts", ()), *part.get("failed", ())])


def tell_doctor(part: Mapping[str, Any]) -> str:
    """Name the checks that did not pass; a failed one with its reason."""
    other = [each for each in part["deep"] if each["outcome"] != "passed"]
    why = [f": {each['what']}" if each["outcome"] == "failed" else "" for each in other]
    told = [f"{each['name']} {each['outcome']}{of}" for each, of in zip(other, why, strict=True)]
    count = len(part["deep"])
    return "; ".join([f"{count - len(other)} of {count} checks passed", *told])


def tell_verdicts(part: Mapping[str, Any]) -> str:
    """Count the verdicts."""
    return ", ".join(f"{count} {verdict}" for verdict, count in _count_verdicts(part).items())


def tell_check(part: Mapping[str, Any]) -> str:
    """Say what the step time is, of several their verdicts, and what it has cost."""
    told, rows = tell_verdicts(part), _step_rows(part)
    if len(rows) == 1 and rows[0].get("ratio"):
        told = f"{rows[0]['verdict']} {rows[0]['ratio'] - 1:+.2%}"
        if interval := rows[0]["interval"]:
            told += f" ({interval['low'] - 1:+.2%} to {interval['high'] - 1:+.2%})"
    told += f"; pairs: {part['pairs']}, {part['wall_s']:.0f} s"
    doubts = ", ".join(sorted(set(part["validity"])))
    return told + (f"; machine: {doubts}" if doubts else "")


def tell_command(part: Mapping[str, Any]) -> str:
    """Say whether the copies took turns, too."""
    return "; ".join([tell_check(part), f"in turns: {part['resident']}", *part["notes"]])


def tell_loader(part: Mapping[str, Any]) -> str:
    """Say what the GPU did on both sides, too."""
    sides = " → ".join(map(_tell_gpu, part["sides"] or ())) or "unknown"
    return f"{tell_check(part)}; GPU utilisation, memory, copies: {sides}"


def _tell_gpu(side: Mapping[str, Any]) -> str:
    shares = [f"{share:.0%}" for share in side["utilization"] if share is not None]
    sizes = [f"{size / 2**30:.1f} GiB" for size in side["memory_peak_bytes"] if size is not None]
    copies = [
        f"{name} {count} ({size / 2**20:.1f} MiB)" for name, (count, size) in side["copies"].items()
    ]
    return ", ".join([*shares, *sizes, *copies]) or "unknown"


def tell_digests(part: Mapping[str, Any]) -> str:
    """Say whether the same code has the same digests, and other code others."""
    first, second, edited = part["digests"]
    return ", ".join(
        f"{name}: digests {'equal' if first == other else 'different'}"
        for name, other in (("unchanged", second), ("edited", edited))
    )


def tell_pairs(part: Mapping[str, Any]) -> str:
    """Say what both kinds of pairs found, and the error that each would have after a minute."""
    told = []
    for kind in ("launch", "resident"):
        differences, seconds = part[kind]["differences"], part[kind]["seconds"]
        change, count = math.expm1(statistics.fmean(differences)), len(differences)
        error = statistics.stdev(differences) * math.sqrt(seconds / count / 60)
        told.append(f"{kind} pairs {change:+.2%} ± {error:.2%} ({count} in {seconds:.0f} s)")
    return "; ".join(told)


def tell_forks(part: Mapping[str, Any]) -> str:
    """Say what a launch takes, and whether its number is the same."""
    fresh, forked = part["fresh"], part["forked"]
    both = zip(fresh["step_s"], forked["step_s"], strict=True)
    middle = statistics.median(after / before for before, after in both)
    seconds = [statistics.median(of["seconds"]) for of in (fresh, forked)]
    return f"{seconds[0]:.1f} → {seconds[1]:.1f} s a launch; its step time {middle - 1:+.1%}"


def tell_operators(part: Mapping[str, Any]) -> str:
    """Return the heading of the table, and its first operator."""
    rows = [line for line in part["operators"].splitlines() if line.startswith("|")]
    return " / ".join(re.sub(r"\s*\|\s*", ", ", row.strip("| ")) for row in (*rows[:1], *rows[2:3]))


def tell_monitor(part: Mapping[str, Any]) -> str:
    """Say how much longer a step takes."""
    middle, ends = statistics.median(part["ratios"]), (min(part["ratios"]), max(part["ratios"]))
    low, high = (f"{end - 1:+.1%}" for end in ends)
    return f"{middle - 1:+.2%} ({low} to {high}), and {part['cpu_share']:.1%} of a CPU"


@dataclass(frozen=True)
class Part:
    """A question, the seconds that it may take on a GPU, and how it is measured and told."""

    question: str
    seconds: float
    measure: Callable[[str, float], Result]
    tell: Callable[[Mapping[str, Any]], str] = tell_check


def _check(question: str, seconds: float, *, is_changed: bool = True, **parameters: Scalar) -> Part:
    measure = functools.partial(check_step, parameters=parameters, is_changed=is_changed)
    tell = tell_loader if parameters["kind"] == "loader" else tell_check
    return Part(question, seconds, measure, tell)


def _suite(question: str, seconds: float, rehearsed: str, workloads: str) -> Part:
    measure = functools.partial(check_suite, chosen=f"standard {workloads}", rehearsed=rehearsed)
    return Part(f"{question}, unchanged", seconds, measure)


def _pairs(question: str, **parameters: Scalar) -> Part:
    measure = functools.partial(compare_pairs, parameters={"kind": "gpt", **parameters})
    return Part(f"A GPT block of short kernels, {question}", 45, measure, tell_pairs)


LONG = "ResNet-18 step (batch 256, bf16, channels_last)"
BERT, FINE_TUNING = "bert_base_infer.dtype=fp16.batch=8", "bert_base_finetune.amp=fp16"
TEN = f"""{BERT} {FINE_TUNING} matmul.size=8192.dtype=bf16 gpt_decode.dtype=bf16.batch=1
mlp_mnist_train.optimizer=adam.batch=64 resnet18_cifar10_train.compile=eager.amp=bf16
resnet18_cifar10_train.compile=inductor.amp=bf16 resnet50_imagenet_train.amp=bf16
vit_base_imagenet_train.compile=eager dataloader_pipeline.workers=4.pinned=true.persistent=true"""
# In their order. Those up to `compiled` take 12 minutes.
PARTS: Mapping[str, Part] = {
    "doctor": Part("Is the machine ready (`doctor --deep`)?", 25, ask_doctor, tell_doctor),
    "long-5": _check(f"{LONG}, 5 % slower", 80, kind="long", percent=5),
    "long-0": _check(f"{LONG}, unchanged", 75, is_changed=False, kind="long"),
    "long-3": _check(f"{LONG}, 3 % slower", 90, kind="long", percent=3),
    "long-2": _check(f"{LONG}, 2 % slower", 90, kind="long", percent=2),
    "eager-0": _pairs("eager, unchanged"),
    "eager-5": _pairs("eager, 5 % more blocks", percent=5),
    "graph-0": _pairs("CUDA graph, unchanged", graph=True),
    "graph-5": _pairs("CUDA graph, 5 % more blocks", graph=True, percent=5),
    "forks": Part("Forked launches", 10, compare_forks, tell_forks),
    "command": Part("A command in turns, 5 % slower", 50, check_command, tell_command),
    "loader": _check("A starved loader, repaired", 60, kind="loader"),
    "compiled": Part("A compiled step, unchanged and edited", 60, compare_digests, tell_digests),
    "often": Part(f"Unchanged code, {CHECKS} checks", 2400, check_often, tell_verdicts),
    "bert": _suite("BERT-base in fp16", 60, "bert_base_infer.dtype=bf16", BERT),
    "cudnn": _check(f"{LONG}, cudnn.benchmark", 60, kind="long", cudnn=True),
    "scaler": _suite("Fine-tuning in fp16 with a scaler", 60, "mlp_mnist_train", FINE_TUNING),
    "ddp": Part("DDP by nccl on two cards, unchanged", 60, check_ranks),
    "monitor": Part("Short kernels beside the monitor", 20, time_with_monitor, tell_monitor),
    "operators": Part("Operators of a step", 60, list_operators, tell_operators),
    "ten": _suite("Ten workloads", 600, "matmul.size=256 mlp_mnist_train", TEN),
}


def find_problems(results: Mapping[str, Any]) -> list[str]:
    """Return what fails the day."""
    problems = []
    for name, part in results["parts"].items():
        verdicts, planted = {*_count_verdicts(part)}, part.get("planted")
        first, second, edited = part.get("digests", ("", "", "edited"))
        tests = {
            part.get("problem", ""): "problem" in part,
            "a check of the machine failed": part.get("exit_code") and "deep" in part,
            "; ".join(part.get("failed", ())): part.get("failed"),
            "unchanged, and called slower": planted == 0 and verdicts & WORSE,
            "slower, and called unchanged": (planted or 0) >= FOUND_FROM
            and Verdict.UNCHANGED.value in verdicts,
            "expected digests that an edit alone changes": "digests" in part
            and not (first and first == second != edited),
        }
        problems += [f"{name}: {problem}" for problem, is_found in tests.items() if is_found]
    return problems


def table(results: Mapping[str, Any]) -> list[str]:
    """Return a row for each part, *not yet* where it has no answer."""
    rows = ["| question | answer |", "|--|--|"]
    for name, part in PARTS.items():
        found = results["parts"].get(name, {})
        told = ": ".join(filter(None, ["*not yet*", found.get("not_yet", "")]))
        told = "failed" if "problem" in found else found.get("told", told)
        rows.append(f"| {part.question} | {_cell(told)} |")
    return rows


def page(results: Mapping[str, Any]) -> str:
    """Return the results as Markdown."""
    machine = ", ".join(f"{name} {text}" for name, text in results["machine"].items())
    problems = [f"- **{_cell(problem)}**" for problem in find_problems(results)]
    lines = [
        "# A day with a GPU",
        "",
        *(
            ["A rehearsal: small steps on a CPU.", ""]
            if results["machine"]["device"] == "cpu"
            else []
        ),
        f"Written by `python -m benchmarks.gpu_day` on {results['date']}: {machine}.",
        "",
        *(problems or ["Nothing failed."]),
        "",
        *table(results),
    ]
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    """Return text for a cell, short, without the identity of the GPU and folders of the machine."""
    text = re.sub(r"""(?<=[\s'"(])/(?:[\w.-]+/)+""", "", text)
    return re.sub(r"GPU-[0-9a-f-]+", "its UUID", " ".join(text.split())).replace("|", "\\|")[:300]


@functools.cache
def describe_machine() -> dict[str, str]:
    """Return the GPU, its driver and torch, as a process of its own sees them."""
    code = (
        "import json, platform, torch; from ci_perf.measuring import environment_probe as probe\n"
        "at = probe.describe('auto', 1).environment\n"
        "print(json.dumps({'gpu': torch.cuda.get_device_name(0) if torch.cuda.is_available() else "
        "'none', 'cards': str(torch.cuda.device_count()), 'driver': str(at.soft.driver), 'torch': "
        "torch.__version__, 'CUDA of torch': str(torch.version.cuda), 'Python': "
        "platform.python_version()}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, check=True
    )
    return {**json.loads(done.stdout), "ci-perf": __version__, "CPUs": str(os.cpu_count())}


def main(parts: Sequence[str], device: str, minutes: float, results: Path, written: Path) -> int:
    """Try each part that has no results yet; write results and page after each of them."""
    end = time.monotonic() + 60 * minutes
    machine = {"device": device, **describe_machine()}
    known: dict[str, Any] = {"date": time.strftime("%Y-%m-%d"), "machine": machine, "parts": {}}
    if results.exists():
        known = json.loads(results.read_text(encoding="utf-8"))
        if known["machine"] != machine:
            raise SystemExit(
                f"{results}: expected results of this machine, {machine}, found those of "
                f"{known['machine']}; name another file by --results"
            )
    for name in parts:
        start = time.monotonic()
        seconds = LEAST_S if device == "cpu" else min(PARTS[name].seconds, end - start)
        if "told" in known["parts"].get(name, {}) or end - start < LEAST_S:
            continue
        print(f"{name}: about {seconds:.0f} s", file=sys.stderr, flush=True)
        part: Result = {}
        try:
            part = PARTS[name].measure(device, seconds)
            if "not_yet" not in part:
                part["told"] = PARTS[name].tell(part)
        except (Exception, SystemExit) as error:  # noqa: BLE001  the next part may work all the same
            part["problem"] = f"{type(error).__name__}: {error}"
        part["seconds_of_part"] = time.monotonic() - start
        known["parts"][name] = part
        files.write_text(results, json.dumps(known, indent=1))
        files.write_text(written, page(known))
    print(page(known))
    return 1 if find_problems(known) else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("inner", nargs="?", choices=[_MONITOR_PART], help=argparse.SUPPRESS)
    parser.add_argument("--minutes", type=float, default=12.0)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--results", type=Path, default=Path("gpu-day.json"))
    parser.add_argument("--page", type=Path, default=Path("gpu-day.md"))
    given = parser.parse_args()
    if given.inner:
        print(json.dumps(measure_monitor(given.device)))
        sys.exit(0)
    sys.exit(main(given.parts, given.device, given.minutes, given.results, given.page))
