"""Find out which claims, true ones and cheats, `ci-perf prove` calls proven.

    python -m benchmarks.cheats [--only NAME …] [--claim 5%]

Each is a branch of a small project that really runs. A cheat that is proven is a defect, and so is
an honest gain that is not: both end with exit code 1.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.repositories import Repository

_WORKLOAD = """\
import json
from pathlib import Path
import torch
import product
from ci_perf.workload import Context, Workload

def build(context: Context) -> Workload:
    torch.manual_seed(context.seed)
    rows = json.loads(Path(__file__, "../../size.json").resolve().read_text())["rows"]
    x = torch.randn(rows, 256)
    layer = product.Layer(x, [torch.randn(256, 256) / 16 for _ in range(8)])
    results = [None]
    def step():
        results[0] = layer.run()
    return Workload(step=step, items_per_step=64, item_unit="row", output=lambda: results[0])
"""
_SUITE = """\
schema_version = 1
[suites.smoke]
device = "cpu"
[[suites.smoke.workloads]]
workload = "train_step"
"""
_HEAD = "import torch\n\nclass Layer:\n    def __init__(self, x, weights):\n"
_KEEP = "        self.x, self.weights = x, weights\n"
_SUM = """\
    def compute(self, weights):
        total = torch.zeros_like(self.x)
        for weight in weights:
            total = total + torch.relu(self.x @ weight)
        return total
"""
_RUN = "    def run(self):\n        return self.compute(self.weights)\n"
_BASE = _HEAD + _KEEP + _SUM + _RUN
# Work that may honestly go: of elements, which torch counts no FLOPs of, and of products.
_WASTE = "        for _ in range(8):\n            self.x.sin().cos()\n"
_TWICE = "        self.compute(self.weights[:3])\n"
_CLOCKS = """\
import time
_first, _real = time.perf_counter_ns(), time.perf_counter_ns
time.perf_counter_ns = lambda: _first + int((_real() - _first) * 0.8)
time.perf_counter = lambda: time.perf_counter_ns() / 1e9
"""
_EVENTS = """\
import dataclasses
from ci_perf.measuring.device import Device
_real = Device.time_block
def _shrink(self, step, count):
    block = _real(self, step, count)
    return dataclasses.replace(block, step_s=block.step_s * 0.8)
Device.time_block = _shrink
torch.cuda.Event.elapsed_time = lambda self, other: 0.0
"""
_LAZY = """\
class Later(dict):
    def __init__(self, make):
        self.make = make
    def values(self):
        return [self.make()]
"""
_THREADS = """\
from concurrent.futures import ThreadPoolExecutor
_pool = ThreadPoolExecutor(1)
"""


@dataclass(frozen=True)
class Branch:
    """What the head writes over the base, and the base's own code where it has some."""

    head: Mapping[str, str]
    base: str = _BASE
    words: tuple[str, ...] = field(default=())
    is_honest: bool = False


def _product(run: str, *, before: str = "", keep: str = _KEEP) -> dict[str, str]:
    return {"product.py": _HEAD.replace("\n\n", f"\n{before}\n", 1) + keep + _SUM + run}


def _return(value: str, *lines: str) -> str:
    return (
        "    def run(self):\n"
        + "".join(f"        {line}\n" for line in lines)
        + (f"        return {value}\n")
    )


def _add(lines: str) -> str:
    return _BASE.replace("        return self.compute", f"{lines}        return self.compute")


_HALF = _return("self.compute(self.weights[:4])")
BRANCHES = {
    "honest": Branch(head={"product.py": _BASE}, base=_add(_WASTE), is_honest=True),
    "hoisted": Branch(
        head={"product.py": _BASE},
        base=_add(_TWICE),
        words=("--because", "three of the products were computed twice"),
        is_honest=True,
    ),
    "clock": Branch(head=_product(_RUN, before=_CLOCKS)),
    "events": Branch(head=_product(_RUN, before=_EVENTS)),
    "cached": Branch(
        head=_product(
            _return(
                "self.kept",
                "if not hasattr(self, 'kept'):",
                "    self.kept = self.compute(self.weights)",
            )
        )
    ),
    "lazy": Branch(
        head=_product(_return("Later(lambda: self.compute(self.weights))"), before=_LAZY)
    ),
    "dropped": Branch(head=_product(_HALF)),
    "batch": Branch(
        head={"workloads/train_step.py": _WORKLOAD.replace("randn(rows,", "randn(rows // 2,")}
    ),
    "loosened": Branch(
        head=_product(_HALF)
        | {"workloads/suite.toml": _SUITE + "[suites.smoke.limits]\nfingerprint = 0.9\n"}
    ),
    "inputs": Branch(head={"size.json": '{"rows": 32}'}),
    "wrong": Branch(head=_product(_return("self.compute(self.weights[:7]) * (8 / 7)"))),
    "thread": Branch(
        head=_product(
            _return(
                "self.last",
                "if not hasattr(self, 'last'):",
                "    self.last = self.compute(self.weights)",
                "_pool.submit(self.compute, self.weights)",
            ),
            before=_THREADS,
        )
    ),
    "build": Branch(
        head=_product(
            _return("self.kept"), keep=_KEEP + "        self.kept = self.compute(weights)\n"
        )
    ),
    "sleep": Branch(
        head={"product.py": _BASE},
        base="import time\n" + _add("        time.sleep(0.002)\n"),
    ),
}


def ask(branch: Branch, claim: str, root: Path) -> tuple[bool, str]:
    """Ask for a proof of a branch; return whether there is one, and the check that decided."""
    repository = Repository(root)
    repository.write(
        {
            "product.py": branch.base,
            "size.json": '{"rows": 64}',
            "workloads/train_step.py": _WORKLOAD,
            "workloads/suite.toml": _SUITE,
        }
    )
    repository.commit()
    repository.git("switch", "--quiet", "--create", "head")
    repository.write(branch.head)
    repository.commit()
    words = ("--faster", f"train_step={claim}", "--wait", "5s", *branch.words)
    said = repository.ci_perf("prove", *words, "--format", "json", "--output", "receipt.json")
    file = repository.root / "receipt.json"
    if not file.exists():
        return False, said
    receipt = json.loads(file.read_text(encoding="utf-8"))
    last = receipt["checks"][-1]
    return receipt["holds"], f"{last['name']}: {last['detail']} ({file.stat().st_size:,} bytes)"


def main() -> int:
    """Ask for all, and print a line for each."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--only", nargs="*", choices=list(BRANCHES), default=list(BRANCHES))
    parser.add_argument("--claim", default="5%")
    asked = parser.parse_args()
    wrong = 0
    for name in asked.only:
        start, branch = time.monotonic(), BRANCHES[name]
        with tempfile.TemporaryDirectory() as folder:
            is_proven, why = ask(branch, asked.claim, Path(folder))
        wrong += is_proven is not branch.is_honest
        verdict = "proven" if is_proven else "not proven"
        print(f"{name}: {verdict} in {time.monotonic() - start:.0f} s, {why}", flush=True)
    return min(wrong, 1)


if __name__ == "__main__":
    sys.exit(main())
