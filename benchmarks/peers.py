"""Five tools on the same planted slow-downs, side by side: alarms, finds and minutes.

    python -m benchmarks.peers [--unchanged 10] [--planted 5] [--tool ci_perf …]

A temporary repository has a step of pure Python, 10 ms on an idle core. Its branches repeat a
loop in it 0, 5, 10 and 20 % more often. Each tool measures base and head as its documents propose,
and blames the head by its own rule, or by that of its service (see `TOOLS`). Tools take turns, so
that they meet the same neighbours. Prints a row per tool as Markdown: heads of 0 % that it blamed,
slower heads that it blamed, minutes of one comparison.

Needs pytest-benchmark, pytest-codspeed, asv, virtualenv and hyperfine.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

from benchmarks.repositories import Repository
from ci_perf.errors import ExitCode

LOOPS = 100_000
Completed = subprocess.CompletedProcess[str]
PLANTED = (0, 5, 10, 20)
PYTEST = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "benchmarks")
FILES = {
    "work.py": f"def step():\n    for number in range({LOOPS}): number * number\n",
    "program.py": "import work\nfor _ in range(50): work.step()\n",
    "conftest.py": "",
    "benchmarks/test_step.py": "import work\ndef test_step(benchmark): benchmark(work.step)\n",
    "asv_benchmarks/__init__.py": "",
    "asv_benchmarks/steps.py": "import work\ndef time_step(): work.step()\n",
    "asv.conf.json": json.dumps(
        {
            "version": 1,
            "project": "work",
            "repo": ".",
            "benchmark_dir": "asv_benchmarks",
            "environment_type": "virtualenv",
            "pythons": [f"{sys.version_info.major}.{sys.version_info.minor}"],
            "build_command": [],
            "uninstall_command": ["python -c pass"],
            "install_command": ["in-dir={build_dir} python install.py"],
        }
    ),
    "install.py": "import shutil, site; shutil.copy('work.py', site.getsitepackages()[0])\n",
    ".gitignore": ".asv/\n.codspeed/\n__pycache__/\n",
}


def run(folder: Path, *command: object, expected: tuple[int, ...] = (0,)) -> Completed:
    """Run a command of a tool, in a home of its own. An exit code not expected ends this."""
    done = subprocess.run(
        list(map(str, command)),
        cwd=folder,
        env={**os.environ, "HOME": str(folder.parent)},
        check=False,
        capture_output=True,
        text=True,
    )
    if done.returncode not in expected:
        raise SystemExit(f"{command}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done


def make_sides(root: Path) -> dict[int, Path]:
    """Return the checkouts of the branches by their percent; the base is `project`, on main."""
    repository = Repository(root)
    repository.write(FILES)
    repository.commit()
    for percent in PLANTED:
        head = root / f"head{percent}"
        repository.git("worktree", "add", "--quiet", "-b", head.name, str(head))
        loops = LOOPS * (100 + percent) // 100
        text = FILES["work.py"].replace(str(LOOPS), str(loops))
        (head / "work.py").write_text(f"{text}# A head.\n", "utf-8")
        author = ("-c", "user.name=a", "-c", "user.email=a@example.org")
        run(head, "git", *author, "commit", "--quiet", "--all", "--message=more")
    return {percent: root / f"head{percent}" for percent in PLANTED}


def check_by_ci_perf(base: Path, head: Path) -> bool:
    """Run `ci-perf check --pytest`: it blames a loss that is proven."""
    del base
    done = run(
        head,
        *(sys.executable, "-P", "-m", "ci_perf", "check", "--against", "main"),
        *("--pytest", "benchmarks"),
        expected=(ExitCode.OK, ExitCode.REGRESSED, ExitCode.NO_ANSWER),
    )
    return done.returncode == ExitCode.REGRESSED


def check_by_pytest_benchmark(base: Path, head: Path) -> bool:
    """Compare by `--benchmark-compare-fail=mean:5%`, the example of its documents."""
    storage = head.parent / "storage"
    shutil.rmtree(storage, ignore_errors=True)
    command = (*PYTEST, "-p", "no:codspeed", f"--benchmark-storage={storage.as_uri()}")
    run(base, *command, "--benchmark-save=base")
    compare = ("--benchmark-compare=0001", "--benchmark-compare-fail=mean:5%")
    return run(head, *command, *compare, expected=(0, 1)).returncode == 1


def check_by_codspeed(base: Path, head: Path) -> bool:
    """Compare medians of the walltime mode by 10 %, the limit of its service."""
    medians = []
    for side in (base, head):
        results = side / ".codspeed"
        shutil.rmtree(results, ignore_errors=True)
        run(side, *PYTEST, "-p", "no:benchmark", "--codspeed", "--codspeed-mode=walltime")
        (file,) = results.glob("results_*.json")
        (benchmark,) = json.loads(file.read_text("utf-8"))["benchmarks"]
        medians.append(benchmark["stats"]["median_ns"])
    return bool(medians[1] > 1.1 * medians[0])


def check_by_asv(base: Path, head: Path) -> bool:
    """Run `asv continuous` with its factor of 1.1."""
    asv = (sys.executable, "-m", "asv")
    run(base, *asv, "machine", "--yes")
    done = run(base, *asv, "continuous", "--factor", "1.1", "main", head.name, expected=(0, 1))
    if (
        "BENCHMARKS NOT SIGNIFICANTLY CHANGED" not in done.stdout
        and "PERFORMANCE" not in done.stdout
    ):
        raise SystemExit(f"asv continuous: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.returncode == 1


def check_by_hyperfine(base: Path, head: Path) -> bool:
    """Compare means of two commands of 50 steps by 10 %."""
    output = head.parent / "hyperfine.json"
    commands = [f"{sys.executable} {side}/program.py" for side in (base, head)]
    run(base, "hyperfine", "--warmup", "1", "--export-json", output, *commands)
    first, second = (each["mean"] for each in json.loads(output.read_text("utf-8"))["results"])
    return bool(second > 1.1 * first)


TOOLS: dict[str, Callable[[Path, Path], bool]] = {
    "ci_perf": check_by_ci_perf,
    "pytest-benchmark": check_by_pytest_benchmark,
    "pytest-codspeed": check_by_codspeed,
    "asv continuous": check_by_asv,
    "hyperfine": check_by_hyperfine,
}


def main(unchanged: int, planted: int, tools: list[str]) -> None:
    """Print a row per tool."""
    blamed: dict[tuple[str, int], list[bool]] = defaultdict(list)
    minutes: dict[str, list[float]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as name:
        heads = make_sides(Path(name))
        for number in range(max(unchanged, planted)):
            for percent, head in heads.items():
                if number >= (planted if percent else unchanged):
                    continue
                for tool in tools:
                    start = time.monotonic()
                    blamed[tool, percent].append(TOOLS[tool](head.with_name("project"), head))
                    minutes[tool].append((time.monotonic() - start) / 60)
                    last = blamed[tool, percent][-1], round(minutes[tool][-1], 2)
                    print(percent, tool, *last, os.getloadavg()[0], file=sys.stderr)
    print("|  | A/A |", *(f"+{percent} % |" for percent in PLANTED[1:]), "minutes |")
    print("|--|--:|--:|--:|--:|--:|")
    for tool in tools:
        counts = (f"{sum(of)}/{len(of)} |" for of in (blamed[tool, each] for each in PLANTED))
        print(f"| {tool} |", *counts, f"{statistics.median(minutes[tool]):.1f} |")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--unchanged", type=int, default=10)
    parser.add_argument("--planted", type=int, default=5)
    parser.add_argument("--tool", action="append", choices=TOOLS, dest="tools")
    asked = parser.parse_args()
    main(asked.unchanged, asked.planted, asked.tools or list(TOOLS))
