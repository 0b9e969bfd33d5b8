"""Everything that a first half hour with a GPU should answer, as JSON and one Markdown page.

    python -m benchmarks.gpu_day [--minutes 25] [--parts NAME …] [--device cuda]
                                 [--results gpu-day.json] [--page gpu-day.md]

The parts: *doctor* (`ci-perf doctor --deep`), *tests* (`pytest -m gpu`), *monitor* (what readings
of the GPU cost a step), *counts* (a check of a branch with one more host wait, one more copy, a
CUDA graph less, a kernel more), *planted* (a check of a branch that makes steps slower by 1, 2 and
5 %: a longer kernel, more products) and *same* (a check of a
branch that changes nothing, over one workload of each file of the suite standard). These checks
measure every workload, without baselines. A part that the results already have is kept, so a
short lease can be used in pieces. What is left of the minutes is shared by the checks.

The exit code is 1 where the doctor or a test fails, an unchanged step is called slower, or a
planted change of 2 % or more is called unchanged.
"""

import argparse
import contextlib
import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ET
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.repositories import Repository
from ci_perf.model import metrics
from ci_perf.model.comparison import Change, Comparison, Verdict
from ci_perf.model.run import Run
from ci_perf.system import files
from ci_perf.version import __version__

ROOT = Path(__file__).parents[1]
# One workload of each file of the suite standard; a compiled one beside the eager one.
STANDARD = (
    "matmul.size=8192.dtype=bf16",
    "mlp_mnist_train.optimizer=adam.batch=64",
    "resnet18_cifar10_train.compile=eager.amp=bf16",
    "resnet18_cifar10_train.compile=inductor.amp=bf16",
    "resnet50_imagenet_train.amp=bf16",
    "bert_base_infer.dtype=fp16.batch=8",
    "gpt_decode.dtype=bf16.batch=1",
    "bert_base_finetune.amp=bf16",
    "dataloader_pipeline.workers=4.pinned=true.persistent=true",
)
SMOKE = ("matmul.size=512", "mlp_mnist_train")
PLANTED = '''"""Products or small kernels in a row, and in the head something more."""
import torch
from ci_perf.workload import Workload

IS_HEAD = False
PRODUCTS, ADDITIONS, COPIED_BYTES = 100, 200, 2**20

def build(context):
    on_gpu = context.device != "cpu"
    side = 4096 if on_gpu else 128
    left = torch.randn(side, side, device=context.device, dtype=torch.bfloat16)
    product = torch.empty_like(left)
    number = torch.zeros(1, device=context.device)
    page = torch.zeros(COPIED_BYTES, dtype=torch.uint8)
    extra = context.parameters["extra"]
    graph = None
    share = context.parameters.get("percent", 0) / 100

    def multiply(count=PRODUCTS):
        for _ in range(count):
            torch.matmul(left, left, out=product)

    def add(count):
        for _ in range(count):
            number.add_(1)

    def seconds(work):
        events = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
        events[0].record()
        work()
        events[1].record()
        torch.cuda.synchronize()
        return events[0].elapsed_time(events[1]) / 1000

    cycles = 0
    if extra == "sleep":
        seconds(lambda: multiply(10 * PRODUCTS))  # reaches the clocks of a busy GPU
        step_s = seconds(lambda: multiply(10 * PRODUCTS)) / 10
        cycles = round(share * step_s / seconds(lambda: torch.cuda._sleep(10**8)) * 10**8)

    def long_kernels():
        multiply()
        if not IS_HEAD:
            return
        if extra == "sleep":
            torch.cuda._sleep(cycles)
        elif extra == "products":
            multiply(round(PRODUCTS * share))

    if extra == "graph" and on_gpu and not IS_HEAD:
        add(ADDITIONS)  # nothing may be captured for the first time
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            add(ADDITIONS)

    def short_kernels():
        if graph is not None:
            graph.replay()
            return
        add(ADDITIONS // 2)
        if IS_HEAD and extra == "wait":
            number.item()
        elif IS_HEAD and extra == "copy":
            page.to(context.device)
        if extra == "split" and IS_HEAD:
            number.add_(number.mul(2))
        elif extra == "split":
            number.add_(number, alpha=2)
        add(ADDITIONS // 2)

    return Workload(step=long_kernels if context.parameters["kernels"] == "long" else short_kernels)
'''
SUITE = """schema_version = 1
[suites.planted]
[suites.planted.limits]
step_time_s = { limit = 0.01 }
[[suites.planted.workloads]]
workload = "planted"
matrix = { kernels = ["long"], extra = [EXTRAS], percent = [1, 2, 5] }
[[suites.planted.workloads]]
workload = "planted"
matrix = { kernels = ["long"], extra = ["nothing"] }
[suites.counts]
[[suites.counts.workloads]]
workload = "planted"
matrix = { kernels = ["short"], extra = ["nothing", "wait", "copy", "graph", "split"] }
"""
# A change that a check with a limit of 1 % has to find.
FOUND_FROM = 0.02
EXPLAINED = "30s"
MONITOR_HZ = 5.0
ROUNDS, WATCHED_S = 8, 0.5
_MONITOR_PART = "measure-monitor"


def ask_doctor(device: str, budget_s: float) -> dict[str, Any]:
    """Return the facts of this machine, and each deep check."""
    del budget_s
    command = [sys.executable, "-m", "ci_perf", "doctor", "--deep", "--json", "--wait", "0s"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if not done.stdout:
        raise SystemExit(done.stderr)
    diagnosis = json.loads(done.stdout)
    return {"exit_code": done.returncode, "device": device, "diagnosis": diagnosis}


def run_tests(device: str, budget_s: float) -> dict[str, Any]:
    """Run the tests that need a GPU; return their counts, and the failures by name."""
    del device
    marked = [
        str(path.relative_to(ROOT))
        for path in sorted((ROOT / "tests").rglob("test_*.py"))
        if "mark.gpu" in path.read_text(encoding="utf-8")
    ]
    with tempfile.NamedTemporaryFile(suffix=".xml") as report:
        command = (sys.executable, "-m", "pytest", "-m", "gpu", "-q", f"--junitxml={report.name}")
        pytest = subprocess.Popen(
            [*command, "-p", "no:cacheprovider", *marked], cwd=ROOT, stdout=sys.stderr
        )
        try:
            pytest.wait(timeout=budget_s)
        except subprocess.TimeoutExpired:
            pytest.send_signal(signal.SIGINT)  # it still reports what it has tried
            with contextlib.suppress(subprocess.TimeoutExpired):
                pytest.wait(timeout=LEAST_S)
            pytest.kill()
        text = Path(report.name).read_text(encoding="utf-8")
    if not text:
        return {
            "ran": 0,
            "skipped": {},
            "failures": {"pytest": f"did not end within {budget_s:.0f} s"},
        }
    cases = {  # one that was tried again stands there twice, and its last try counts
        f"{case.attrib['classname']}::{case.attrib['name']}": case
        for case in ET.fromstring(text).iter("testcase")  # noqa: S314
    }

    def told(*kinds: str) -> dict[str, str]:
        return {
            name: each.attrib.get("message", "")
            for name, case in cases.items()
            for kind in kinds
            for each in case.iter(kind)
        }

    return {"ran": len(cases), "skipped": told("skipped"), "failures": told("failure", "error")}


def time_with_monitor(device: str, budget_s: float) -> dict[str, Any]:
    """Return how much longer a step takes while the monitor reads, in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.gpu_day", _MONITOR_PART, "--device", device],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        check=True,
        timeout=budget_s,
    )
    return dict(json.loads(done.stdout))


def measure_monitor(device: str) -> dict[str, Any]:
    """Time two steps with and without a monitor, in turns, in this process."""
    import torch

    from ci_perf.launch.monitoring import watch_host
    from ci_perf.measuring import environment_probe
    from ci_perf.measuring.device import open_device
    from ci_perf.measuring.monitor import Marks

    described = environment_probe.describe(device, 1)
    opened = open_device(described.device)
    left = torch.randn((4096 if described.gpus else 256,) * 2, device=described.device)
    product, number = torch.empty_like(left), torch.zeros(1, device=described.device)
    steps: Mapping[str, Callable[[], object]] = {
        "long kernels": lambda: torch.matmul(left, left, out=product),
        "short kernels": lambda: [number.add_(1) for _ in range(100)],
    }

    def median_s(step: Callable[[], object]) -> float:
        until, blocks = time.monotonic() + WATCHED_S, []
        while time.monotonic() < until:
            blocks.append(opened.time_block(step, 20).step_s)
        return statistics.median(blocks)

    def medians(hz: float) -> tuple[dict[str, float], float]:
        with tempfile.TemporaryDirectory() as name:
            folder, python = Path(name), [sys.executable, "-P"]
            with watch_host(folder, described.gpus, hz, python, os.environ) as report:
                marks = Marks(folder)
                marks.hello()
                marks.begin()
                medians_s = {name: median_s(step) for name, step in steps.items()}
                marks.end()
        evidence = report.evidence()
        if hz and evidence is None:
            raise SystemExit(report.problem)
        return medians_s, evidence.overhead_cpu_s if evidence else 0.0

    medians(0)  # reaches the clocks of a busy GPU
    ratios: dict[str, list[float]] = {name: [] for name in steps}
    cpu_s = []
    for number_of_round in range(ROUNDS):
        order = (0.0, MONITOR_HZ) if number_of_round % 2 else (MONITOR_HZ, 0.0)
        both = {hz: medians(hz) for hz in order}
        cpu_s.append(both[MONITOR_HZ][1])
        for name, of_step in ratios.items():
            of_step.append(both[MONITOR_HZ][0][name] / both[0][0][name])
    return {
        "ratios": ratios,
        "cpu_share": statistics.fmean(cpu_s) / (len(steps) * WATCHED_S),
        "readings_per_s": MONITOR_HZ,
    }


def check_planted(device: str, budget_s: float) -> dict[str, Any]:
    """Check a branch whose steps take longer than those of main."""
    return _check_change(device, budget_s, "--suite", "planted", "--explain", EXPLAINED)


def check_counts(device: str, budget_s: float) -> dict[str, Any]:
    """Check a branch whose steps have the GPU do something else: counts need few pairs."""
    return _check_change(device, budget_s, "--suite", "counts", "--explain", "0s")


def _check_change(device: str, budget_s: float, *options: str) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as name:
        repository = Repository(Path(name))
        extras = '"sleep", "products"' if device != "cpu" else '"products"'
        repository.write(
            {
                "workloads/planted.py": PLANTED,
                "workloads/suite.toml": SUITE.replace("EXTRAS", extras),
            }
        )
        repository.commit()
        repository.git("switch", "--quiet", "--create", "change")
        repository.write(
            {"workloads/planted.py": PLANTED.replace("IS_HEAD = False", "IS_HEAD = True")}
        )
        repository.commit()
        return check(repository, device, budget_s, *options)


def check_same(device: str, budget_s: float) -> dict[str, Any]:
    """Check a branch that changes nothing."""
    with tempfile.TemporaryDirectory() as name:
        repository = Repository(Path(name))
        shutil.copytree(
            ROOT / "workloads",
            repository.root / "workloads",
            ignore=shutil.ignore_patterns("__pycache__"),
        )
        repository.commit()
        repository.git("switch", "--quiet", "--create", "change")
        repository.commit()
        suite, chosen = ("smoke", SMOKE) if device == "cpu" else ("standard", STANDARD)
        return check(repository, device, budget_s, "--suite", suite, "--explain", "0s", *chosen)


def check(repository: Repository, device: str, budget_s: float, *options: str) -> dict[str, Any]:
    """Check all of a branch against main; return what is said of each workload, and the cost."""
    where = repository.root.parent
    judged, written, report = where / "comparison.json", where / "run.json", where / "report.md"
    start = time.monotonic()
    said = repository.ci_perf(
        *("check", "--against", "main", "--all", "--device", device, "--wait", "0s"),
        *("--processes", "1"),
        *("--budget", f"{budget_s:.0f}s", "--comparison", str(judged), "--output", str(written)),
        *("--report", str(report), *options),
    )
    wall_s = time.monotonic() - start
    if not judged.exists():
        raise SystemExit(said)
    comparison, run = files.read(judged, Comparison), files.read(written, Run)
    launched = [process for each in run.measured for process in each.processes]
    launched += [
        side for each in run.paired for pair in each.pairs for side in (pair.base, pair.head)
    ]
    phases = [process.phases for process in launched]
    names = phases[0].__struct_fields__ if phases else ()
    return {
        "budget_s": budget_s,
        "wall_s": wall_s,
        "exit_code": comparison.exit_code,
        "launches": len(launched),
        "validity": [reason.code for reason in run.validity.reasons],
        "mean_phases": {
            name: statistics.fmean(getattr(each, name) for each in phases) for name in names
        },
        "rows": [_row(row) for row in comparison.rows],
        "log": said,
        "report": report.read_text(encoding="utf-8"),
    }


def _row(row: Any) -> dict[str, Any]:  # noqa: ANN401  one of three kinds
    said = {"workload": row.workload, "verdict": row.verdict.value, "code": row.code.value}
    if not isinstance(row, Change):
        return {**said, "metric": getattr(row, "metric", "numerics"), "note": row.note}
    return {
        **said,
        "metric": row.metric,
        "base": row.base,
        "head": row.head,
        "ratio": row.ratio,
        "interval": [row.interval.low, row.interval.high] if row.interval else None,
        "pairs": row.pairs,
        "gate": row.gate,
    }


PARTS: Mapping[str, Callable[[str, float], dict[str, Any]]] = {
    "doctor": ask_doctor,
    "tests": run_tests,
    "monitor": time_with_monitor,
    "counts": check_counts,
    "planted": check_planted,
    "same": check_same,
}
# The most that a part may take of all minutes; a check also begins and explains beside its budget.
SHARES = {"doctor": 0.1, "tests": 0.3, "monitor": 0.1}
LEAST_S = 60.0
CHECK_SHARES = {"counts": 0.1, "planted": 0.5, "same": 0.75}


def find_problems(results: Mapping[str, Any]) -> list[str]:
    """Return what fails the day."""
    problems = []
    parts = results["parts"]
    problems += [f"{name}: {part['problem']}" for name, part in parts.items() if "problem" in part]
    if parts.get("doctor", {}).get("exit_code"):
        problems.append("doctor --deep failed")
    problems += [f"{name} failed" for name in parts.get("tests", {}).get("failures", {})]
    worse = {Verdict.REGRESSED.value, Verdict.LIKELY_SLOWER.value}
    for part in CHECK_SHARES:
        for row in parts.get(part, {}).get("rows", ()):
            if row["metric"] != metrics.STEP_TIME.name:
                continue
            share = _planted_share(row["workload"]) if part != "same" else 0.0
            if share == 0 and row["verdict"] in worse:
                problems.append(f"{part}: {row['workload']} is unchanged, and called slower")
            if (share or 0) >= FOUND_FROM and row["verdict"] == Verdict.UNCHANGED.value:
                problems.append(f"{part}: {row['workload']} is slower, and called unchanged")
    return problems


def _planted_share(workload: str) -> float | None:
    """Return by how much a planted step is slower, `None` where only the check can tell."""
    _, has_percent, share = workload.partition("percent=")
    if has_percent:
        return int(share) / 100
    return 0.0 if workload.endswith("=nothing") else None


def page(results: Mapping[str, Any]) -> str:
    """Return the results as Markdown."""
    parts = results["parts"]
    problems = find_problems(results) + [
        f"`{name}` was not run" for name in PARTS if name not in parts
    ]
    machine = ", ".join(f"{name} {text}" for name, text in results["machine"].items())
    lines = [
        "# A half hour with a GPU",
        "",
        f"Written by `python -m benchmarks.gpu_day` on {results['date']}: {machine}.",
        "",
        *(f"- **{problem}**" for problem in problems or ["Nothing failed."]),
    ]
    describe: Mapping[str, Callable[[Mapping[str, Any]], list[str]]] = {
        "doctor": _doctor_lines,
        "tests": _test_lines,
        "monitor": _monitor_lines,
        "counts": _check_lines,
        "planted": _check_lines,
        "same": _check_lines,
    }
    for name, part in parts.items():
        if "problem" not in part:
            lines += ["", f"## {name}: {part['seconds_of_part']:.0f} s", "", *describe[name](part)]
    return "\n".join(lines) + "\n"


def _doctor_lines(part: Mapping[str, Any]) -> list[str]:
    lines = ["| check | outcome | what |", "|:--|:--|:--|"]
    deep = part["diagnosis"]["deep"]
    return lines + [
        f"| {each['name']} | {each['outcome']} | {_cell(each['what'])} |" for each in deep
    ]


def _test_lines(part: Mapping[str, Any]) -> list[str]:
    passed = part["ran"] - len(part["failures"]) - len(part["skipped"])
    lines = [f"{passed} of {part['ran']} tests marked `gpu` passed.", ""]
    for kind in ("failures", "skipped"):
        lines += [f"- {kind}: `{name}`: {_cell(why)}" for name, why in part[kind].items()]
    return lines


def _monitor_lines(part: Mapping[str, Any]) -> list[str]:
    lines = [
        "| step | longer while the monitor reads (median of rounds) | all rounds |",
        "|:--|--:|:--|",
    ]
    for name, ratios in part["ratios"].items():
        middle, least, most = statistics.median(ratios), min(ratios), max(ratios)
        cells = (name, f"{middle - 1:+.2%}", f"{least - 1:+.2%} to {most - 1:+.2%}")
        lines.append(f"| {' | '.join(cells)} |")
    share = f"{part['cpu_share']:.1%} of a CPU at {part['readings_per_s']:g} readings a second."
    return [*lines, "", f"The monitor takes {share}"]


def _check_lines(part: Mapping[str, Any]) -> list[str]:
    phases = ", ".join(
        f"{name.removesuffix('_s').replace('_', ' ')} {seconds:.2f}"
        for name, seconds in part["mean_phases"].items()
    )
    cost = (
        f"{part['launches']} launches in {part['wall_s'] / 60:.1f} minutes, with a budget of "
        f"{part['budget_s'] / 60:.1f} for pairs. A launch takes, in seconds: {phases}. "
        f"Validity: {', '.join(part['validity']) or 'valid'}."
    )
    lines = [
        cost,
        "",
        "| workload | metric | change | interval | pairs | verdict |",
        "|:--|:--|--:|:--|--:|:--|",
    ]
    for row in part["rows"]:
        is_time = row["metric"] == metrics.STEP_TIME.name
        is_counted = row["metric"] in {each.name for each in metrics.OF_PROFILE}
        if not is_time and (
            row["verdict"] == Verdict.UNCHANGED.value or not (row.get("gate") or is_counted)
        ):
            continue
        interval = row.get("interval")
        cells = (
            *(f"`{row['workload']}`", row["metric"]),
            f"{row['ratio'] - 1:+.2%}" if row.get("ratio") else "",
            f"{interval[0] - 1:+.2%} to {interval[1] - 1:+.2%}" if interval else "",
            str(row.get("pairs", "")),
            f"{row['verdict']} ({row['code']})",
        )
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def _cell(text: str) -> str:
    """Return text for a cell, short, without the identity of the GPU and folders of the machine."""
    text = re.sub(r"""(?<=[\s'"(])/(?:[\w.-]+/)+""", "", text)
    return re.sub(r"GPU-[0-9a-f-]+", "its UUID", " ".join(text.split())).replace("|", "\\|")[:300]


def describe_machine() -> dict[str, str]:
    """Return the GPU, its driver and torch, as a process of its own sees them."""
    code = (
        "import json, platform, torch; from ci_perf.measuring import environment_probe as probe\n"
        "at = probe.describe('auto', 1).environment\n"
        "print(json.dumps({'gpu': torch.cuda.get_device_name(0) if torch.cuda.is_available() else "
        "'none', 'driver': str(at.soft.driver), 'torch': torch.__version__, 'CUDA of torch': "
        "str(torch.version.cuda), 'Python': platform.python_version()}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, check=True
    )
    return {**json.loads(done.stdout), "ci-perf": __version__, "CPUs": str(os.cpu_count())}


def main(parts: Sequence[str], device: str, minutes: float, results: Path, written: Path) -> int:
    """Try each part that has no results yet; write results and page after each of them."""
    end = time.monotonic() + 60 * minutes
    known: dict[str, Any] = (
        json.loads(results.read_text(encoding="utf-8"))
        if results.exists()
        else {"date": time.strftime("%Y-%m-%d"), "machine": describe_machine(), "parts": {}}
    )
    for name in parts:
        if name in known["parts"]:
            continue
        start = time.monotonic()
        budget_s = (
            max(LEAST_S, SHARES[name] * 60 * minutes)
            if name in SHARES
            else CHECK_SHARES[name] * (end - start)
        )
        print(f"{name}: at most {budget_s:.0f} s", file=sys.stderr, flush=True)
        try:
            part = PARTS[name](device, budget_s)
        except (Exception, SystemExit) as error:  # noqa: BLE001  the next part may work all the same
            part = {"problem": f"{type(error).__name__}: {error}"}
        part["seconds_of_part"] = time.monotonic() - start
        known["parts"][name] = part
        results.write_text(json.dumps(known, indent=1), encoding="utf-8")
        written.write_text(page(known), encoding="utf-8")
    print(page(known))
    return 1 if find_problems(known) else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("inner", nargs="?", choices=[_MONITOR_PART], help=argparse.SUPPRESS)
    parser.add_argument("--minutes", type=float, default=25.0)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--results", type=Path, default=Path("gpu-day.json"))
    parser.add_argument("--page", type=Path, default=Path("gpu-day.md"))
    given = parser.parse_args()
    if given.inner:
        print(json.dumps(measure_monitor(given.device)))
        sys.exit(0)
    sys.exit(main(given.parts, given.device, given.minutes, given.results, given.page))
