"""What the code `same_program` saves among twelve workloads, and whether it hides a regression.

    python -m benchmarks.same_program [--changes N]

Makes a temporary git repository. Each workload sleeps as long as a module of its own says, all
share a helper, and none needs torch. Then it checks pull requests against main, as a user does: one
that changes README.md, twice, because the first check records main; one that writes a function
differently, with and without `--all`; and N in each of which a function that one workload runs
becomes slower by half. It fails (exit code 1) where a number is not as needed.

A *launch* is a process of a workload that ended well, timed or not; the process that describes the
machine is none. The launches of `--all` are without records: as if nobody made any.
"""

import argparse
import gzip
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.repositories import Repository
from ci_perf.baselines import layout
from ci_perf.model.comparison import Comparison, Verdict
from ci_perf.model.run import Run
from ci_perf.system import files

WORKLOADS = 12
CHANGES = 10
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
    """One `ci-perf check`: its launches, timed or recorded, and workloads by what a row says."""

    run: Run
    launches: int
    seconds: float
    same: set[str]
    regressed: set[str]


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
        said = self.ci_perf("check", "--against", "main", "--wait", "0s", *outputs, *options)
        seconds = time.monotonic() - start
        read, rows = files.read(run, Run), files.read(comparison, Comparison).rows
        launches = timed_launches(read) + said.count(": recording what it takes")
        same = {row.workload for row in rows if row.code == "same_program"}
        regressed = {row.workload for row in rows if row.verdict is Verdict.REGRESSED}
        return Check(read, launches, seconds, same, regressed)


def timed_launches(run: Run) -> int:
    """Count the launches of a run that were timed; a base is launched once before its pairs."""
    first = sum(len(workload.processes) for workload in run.measured)
    return first + sum(1 + 2 * len(workload.pairs) for workload in run.paired)


# A line of the table: what, what was found, what is needed, and whether it is so.
Line = tuple[str, str, str, bool]


def untouched(repository: Product) -> Iterator[Line]:
    """Check a pull request that changes no code, before and after main is recorded."""
    repository.pull_request("README.md", "A better product.\n")
    first, second = repository.check(), repository.check()
    start = time.monotonic()
    repository.ci_perf("list", "--against", "main")
    touched_s = time.monotonic() - start
    same = len(second.same)
    yield "first check: launches that record main", str(first.launches), "", True
    yield "first check: seconds", f"{first.seconds:.1f}", "", True
    yield "README: launches", str(second.launches), "0", second.launches == 0
    yield "README: *same program*", f"{same} of {WORKLOADS}", "all", same == WORKLOADS
    yield "README: seconds of `check`", f"{second.seconds:.1f}", "", True
    yield "README: seconds of `list --against`", f"{touched_s:.1f}", "", True


def one_touched(repository: Product) -> Iterator[Line]:
    """Check a function that is written differently, with and without `--all`."""
    repository.pull_request("product/nap0.py", MODULE.replace("0.004", "0.002 * 2"))
    check, everything = repository.check(), repository.check("--all")
    share = check.launches / everything.launches
    launches = f"{check.launches} / {everything.launches} = {share:.2f}"
    times = check.seconds / everything.seconds
    seconds = f"{check.seconds:.1f} / {everything.seconds:.1f} = {times:.2f}"
    text = layout.render_program(check.run.programs[0]).encode()
    is_good = share <= MOST_LAUNCHES and len(check.same) == WORKLOADS - 1
    yield "one of twelve touched: launches / `--all`", launches, f"≤ {MOST_LAUNCHES}", is_good
    yield "one of twelve touched: seconds / `--all`", seconds, "", True
    yield "one record: bytes / compressed", f"{len(text)} / {len(gzip.compress(text))}", "", True


def planted(repository: Product, changes: int) -> Iterator[Line]:
    """Make one function slower in each of as many pull requests."""
    hits = 0
    for name in NAMES[1 : changes + 1]:
        repository.pull_request(f"product/{name}.py", MODULE.replace("0.004", "0.006"))
        check = repository.check()
        hits += check.regressed == {name} and check.same == set(NAMES) - {name}
    figure = f"{hits} of {changes}"
    yield "regressions found, all others *same program*", figure, "all", hits == changes


def main(changes: int) -> int:
    """Print the table; fail where a number is not as needed."""
    is_good = True
    print("| | found | needed |\n|:--|--:|--:|")
    with tempfile.TemporaryDirectory() as name:
        repository = Product(Path(name))
        for part in (untouched, one_touched, lambda repository: planted(repository, changes)):
            for what, figure, needed, is_as_needed in part(repository):
                print(f"| {what} | {figure} | {needed} |", flush=True)
                is_good &= is_as_needed
    print(f"\nload average at the end: {os.getloadavg()[0]:.1f}; {os.cpu_count()} CPUs")
    return int(not is_good)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--changes", type=int, default=CHANGES, choices=range(1, WORKLOADS))
    sys.exit(main(parser.parse_args().changes))
