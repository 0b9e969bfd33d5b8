"""How often a check of unchanged code has an answer, by measuring alone, and how long it takes.

    python -m benchmarks.unchanged_checks smoke|product|many [--checks N] [--workloads N]

Makes a temporary git repository with a branch that changes nothing, and checks it with `--all`, so
that no workload is left out for being the same program. *smoke* is the smoke suite of this checkout
with a calibration, three accepted sessions and a budget of 4 minutes; *product* is one product of
two 64 x 64 matrices, with a suite.toml that says nothing but its name, and no baselines; *many* are
40 steps of milliseconds that share a module, of which the branch makes three 30 % slower.

Each line is one check: *open* are the workloads of which a metric that gates has no answer,
*alarms* those that something calls slower. The exit code is 1 if the alarms are not the slower
ones, if more than 15 % of the workloads of smoke or of many are open, or if a product is open.
"""

import argparse
import os
import shutil
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from benchmarks.repositories import Repository
from ci_perf.model.comparison import Change, Comparison, Verdict
from ci_perf.system import files

MOST = 40
SUITE = Path(__file__).parents[1] / "workloads"
SESSIONS, BUDGET = 3, "4m"
MOST_OPEN = {"smoke": 0.15, "product": 0.0, "many": 0.15}
PRODUCT = {
    "workloads/product.py": '''"""A product of two matrices of 64 by 64."""
import torch
from ci_perf.workload import Workload

def build(context):
    left, right = torch.randn(64, 64), torch.randn(64, 64)
    return Workload(step=lambda: left @ right)
''',
    "workloads/suite.toml": """schema_version = 1
[suites.smoke]
device = "cpu"
[[suites.smoke.workloads]]
workload = "product"
""",
}
KINDS = ("product", "softmax", "norm", "sort", "conv", "gelu", "scan", "train")
SLOWER = ("many.kind=train.size=1", "many.kind=softmax.size=2", "many.kind=conv.size=3")
MANY = {
    "workloads/many.py": '''"""A step of milliseconds."""
import torch
from ci_perf.workload import Workload
from steps import STEPS, repeats

def build(context):
    kind, size = context.parameters["kind"], context.parameters["size"]
    count, state = repeats(kind, size), torch.randn(8, 32 + 16 * size, 32 + 16 * size)
    step = STEPS[kind](state)
    def run():
        for _ in range(count):
            step()
    return Workload(step=run)
''',
    "steps.py": """import torch
SLOWER = ()
def repeats(kind, size):
    return 13 if f"many.kind={kind}.size={size}" in SLOWER else 10
def train(state):
    layer = torch.nn.Linear(state.shape[-1], state.shape[-1])
    optimizer = torch.optim.SGD(layer.parameters(), lr=1e-4)
    def step():
        optimizer.zero_grad()
        layer(state).square().mean().backward()
        optimizer.step()
    return step
def conv(state):
    kernel = torch.randn(8, 8, 3, 3)
    return lambda: torch.nn.functional.conv2d(state[None], kernel)
STEPS = {
    "product": lambda state: lambda: state @ state,
    "softmax": lambda state: lambda: state.softmax(-1),
    "norm": lambda state: lambda: torch.nn.functional.layer_norm(state, state.shape[-1:]),
    "sort": lambda state: lambda: state[0].sort(),
    "conv": conv,
    "gelu": lambda state: lambda: torch.nn.functional.gelu(state),
    "scan": lambda state: lambda: state.cumsum(-1),
    "train": train,
}
""",
}
WORSE = frozenset({Verdict.REGRESSED, Verdict.LIKELY_SLOWER})


@dataclass(frozen=True)
class Check:
    """One check: its seconds, the load average at its start, and workloads by their answer."""

    seconds: float
    load: float
    workloads: int
    open: frozenset[str]
    alarms: frozenset[str]


def find_many(count: int) -> list[str]:
    """Return so many entries of suite.toml, the slower ones first."""
    every = [(kind, size) for size in range(MOST // len(KINDS)) for kind in KINDS]
    every.sort(key=lambda each: "many.kind={}.size={}".format(*each) not in SLOWER)
    entry = (
        '[[suites.smoke.workloads]]\nworkload = "many"\nmatrix = {{ kind = ["{}"], size = [{}] }}'
    )
    return [entry.format(*each) for each in every[:count]]


def prepared(root: Path, project: str, count: int) -> Repository:
    """Return a repository whose branch changes nothing, or some of many workloads."""
    repository = Repository(root)
    if project == "many":
        suite = ["schema_version = 1", "[suites.smoke]", 'device = "cpu"', *find_many(count)]
        repository.write({**MANY, "workloads/suite.toml": "\n".join(suite)})
        repository.commit()
        repository.git("switch", "--quiet", "--create", "change")
        steps = MANY["steps.py"].replace("SLOWER = ()", f"SLOWER = {SLOWER}")
        repository.write({"steps.py": steps})
        repository.commit()
        return repository
    if project == "product":
        repository.write(PRODUCT)
        repository.commit()
    else:
        shutil.copytree(
            SUITE, repository.root / "workloads", ignore=shutil.ignore_patterns("__pycache__")
        )
        repository.commit()
        run = str(root / "run.json")
        repository.ci_perf("calibrate", "--output", run)
        for _ in range(SESSIONS):
            repository.ci_perf("run", "--output", run)
            repository.ci_perf("accept", run, "--append", "--reason", "a first session")
        repository.commit()
    repository.git("switch", "--quiet", "--create", "change")
    repository.commit()
    return repository


def checked(repository: Repository, *options: str) -> Check:
    """Check the branch once."""
    output = repository.root.parent / "comparison.json"
    run = repository.root.parent / "run.json"
    load, start = os.getloadavg()[0], time.monotonic()
    repository.ci_perf(
        *("check", "--against", "main", "--all", "--comparison", str(output)),
        *("--output", str(run), *options),
    )
    seconds = time.monotonic() - start
    rows = files.read(output, Comparison).rows
    changes = [row for row in rows if isinstance(row, Change)]
    answered = {row.workload for row in changes}
    undecided = {
        row.workload for row in changes if row.gate and row.verdict is Verdict.INCONCLUSIVE
    }
    return Check(
        seconds=seconds,
        load=load,
        workloads=len({row.workload for row in rows}),
        open=frozenset({row.workload for row in rows} - answered | undecided),
        alarms=frozenset(row.workload for row in changes if row.verdict in WORSE),
    )


def main(project: str, count: int, suite: int) -> int:
    """Print a line per check, and what all of them say."""
    options = ("--budget", BUDGET) if project == "smoke" else ()
    checks: list[Check] = []
    print(
        "| check | seconds | load before | workloads | open | alarms |\n|--:|--:|--:|--:|:--|:--|"
    )
    with tempfile.TemporaryDirectory() as name:
        repository = prepared(Path(name), project, suite)
        for number in range(1, count + 1):
            check = checked(repository, *options)
            checks.append(check)
            cells = (
                *(str(number), f"{check.seconds:.0f}", f"{check.load:.1f}", str(check.workloads)),
                *(", ".join(sorted(names)) or "none" for names in (check.open, check.alarms)),
            )
            print(f"| {' | '.join(cells)} |", flush=True)
    is_open = sum(len(check.open) for check in checks)
    workloads = sum(check.workloads for check in checks)
    slower = frozenset(SLOWER[:suite] if project == "many" else ())
    alarms = sum(len(check.alarms - slower) for check in checks)
    missed = sum(len(slower - check.alarms) for check in checks)
    seconds = statistics.median(check.seconds for check in checks)
    print(
        f"\n{is_open} of {workloads} without an answer ({100 * is_open / workloads:.1f} %), "
        f"{alarms} alarms, {missed} missed; median {seconds:.0f} s per check"
    )
    return 1 if alarms or missed or is_open > MOST_OPEN[project] * workloads else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("project", choices=MOST_OPEN)
    parser.add_argument("--checks", type=int, default=10, metavar="N")
    parser.add_argument("--workloads", type=int, default=MOST, metavar="N", help="of many")
    given = parser.parse_args()
    sys.exit(main(given.project, given.checks, given.workloads))
