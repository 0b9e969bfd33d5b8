"""What the code `same_program` saves among twelve workloads.

    python -m benchmarks.same_program

Makes a temporary git repository. Each workload sleeps as long as a module of its own says, all
share a helper, and none needs torch. Then it checks pull requests against main, as a user does: one
that changes README.md, and one that writes a function differently, with and without `--all`. It
fails (exit code 1) where a number is not as needed.

A *launch* is a process of a workload that ended well; the process that describes the machine is
none. Main has its baselines and records, as `ci-perf accept` leaves them.
"""

import os
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.repositories import Repository
from ci_perf.model.comparison import Comparison
from ci_perf.model.run import Run
from ci_perf.system import files

WORKLOADS = 12
MOST_LAUNCHES = 0.15
NAMES = tuple(f"nap{number}" for number in range(WORKLOADS))
WORKLOAD = '''"""Sleeps as long as its module says."""
from ci_perf.workload import Workload
from product import NAME
def build(context):
    return Workload(step=NAME.step)
'''
MODULE = """from product import waiting
def seconds():
    return 0.004
def step():
    waiting.wait(seconds())
"""
HELPER = "import time\ndef wait(seconds):\n    time.sleep(seconds)\n"
# The table stands in one line for TOML.
SETTINGS = """protocol = { timeout_s = 60, warmup_min_steps = 2, warmup_window = 2, \
warmup_min_s = 0.01, warmup_max_s = 0.2, timed_min_blocks = 3, timed_min_s = 0.02, \
timed_max_s = 0.3, block_min_s = 0.002, statistic = "min", fingerprint_steps = 0 }
[limits]
step_time_s = { limit = 0.25 }
step_cpu_s = { gate = false }
first_step_s = { gate = false }
host_rss_peak_bytes = { gate = false }
[suites.smoke]
canaries = false
device = "cpu"
"""
ENTRY = '[[suites.smoke.workloads]]\nworkload = "NAME"\n'


@dataclass(frozen=True)
class Check:
    """One `ci-perf check`: its launches, and workloads by what a row says."""

    launches: int
    seconds: float
    same: set[str]


class Product(Repository):
    """A product, its workloads, and a branch for a pull request."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        entries = "".join(ENTRY.replace("NAME", name) for name in NAMES)
        texts = {"workloads/suite.toml": SETTINGS + entries, "product/waiting.py": HELPER}
        for name in NAMES:
            texts[f"workloads/{name}.py"] = WORKLOAD.replace("NAME", name)
            texts[f"product/{name}.py"] = MODULE
        self.write(texts)
        self.commit()
        self.ci_perf("run", "--wait", "0s", "--output", "../run.json")
        self.ci_perf("accept", "../run.json", "--force")
        self.commit()

    def pull_request(self, path: str, text: str) -> None:
        """Check out a new branch from main with this one change."""
        self.git("switch", "--quiet", "--force-create", "change", "main")
        self.write({path: text})
        self.commit()

    def check(self, *options: str) -> Check:
        """Check the branch against main."""
        run, comparison = (self.root.parent / name for name in ("run.json", "comparison.json"))
        outputs = ("--comparison", str(comparison), "--output", str(run))
        start = time.monotonic()
        self.ci_perf("check", "--against", "main", "--wait", "0s", *outputs, *options)
        seconds = time.monotonic() - start
        read, rows = files.read(run, Run), files.read(comparison, Comparison).rows
        launches = timed_launches(read)
        same = {row.workload for row in rows if row.code == "same_program"}
        return Check(launches, seconds, same)


def timed_launches(run: Run) -> int:
    """Count the launches of a run that were timed; a base is launched once before its pairs."""
    first = sum(len(workload.processes) for workload in run.measured)
    return first + sum(1 + 2 * len(workload.pairs) for workload in run.paired)


# A line of the table: what, what was found, what is needed, and whether it is so.
Line = tuple[str, str, str, bool]


def untouched(repository: Product) -> Iterator[Line]:
    """Check a pull request that changes no code."""
    repository.pull_request("README.md", "A better product.\n")
    check = repository.check()
    same = len(check.same)
    yield "README: launches", str(check.launches), "0", check.launches == 0
    yield "README: *same program*", f"{same} of {WORKLOADS}", "all", same == WORKLOADS
    yield "README: seconds of `check`", f"{check.seconds:.1f}", "", True


def one_touched(repository: Product) -> Iterator[Line]:
    """Check a function that is written differently, with and without `--all`."""
    repository.pull_request("product/nap0.py", MODULE.replace("0.004", "0.002 * 2"))
    check, everything = repository.check(), repository.check("--all")
    share = check.launches / everything.launches
    launches = f"{check.launches} / {everything.launches} = {share:.2f}"
    times = check.seconds / everything.seconds
    seconds = f"{check.seconds:.1f} / {everything.seconds:.1f} = {times:.2f}"
    is_good = share <= MOST_LAUNCHES and len(check.same) == WORKLOADS - 1
    yield "one of twelve touched: launches / `--all`", launches, f"≤ {MOST_LAUNCHES}", is_good
    yield "one of twelve touched: seconds / `--all`", seconds, "", True


def main() -> int:
    """Print the table; fail where a number is not as needed."""
    is_good = True
    print("| | found | needed |\n|:--|--:|--:|")
    with tempfile.TemporaryDirectory() as name:
        repository = Product(Path(name))
        for part in (untouched, one_touched):
            for what, figure, needed, is_as_needed in part(repository):
                print(f"| {what} | {figure} | {needed} |", flush=True)
                is_good &= is_as_needed
    print(f"\nload average at the end: {os.getloadavg()[0]:.1f}; {os.cpu_count()} CPUs")
    return int(not is_good)


if __name__ == "__main__":
    sys.exit(main())
