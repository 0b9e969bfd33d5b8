"""What the steps of a proof launch: a product of its own, and workloads of the shipped suite."""

import ast
import contextlib
import importlib.util
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from ci_perf import suite
from ci_perf.errors import CannotWriteError
from ci_perf.model.base import Scalar
from ci_perf.model.suite import Plan, PlannedWorkload
from ci_perf.system import scratch

PRODUCT = "product"
# On a CPU without torch, whose import would take longer than all the rest of a launch.
_WORKLOAD = '''"""Multiply: numbers on a CPU, matrices on a GPU."""
from ci_perf.workload import Workload


def on_gpu(device):
    import torch

    left, right = (torch.randn((2048, 2048), device=device) for _ in range(2))
    product = torch.empty_like(left)
    return lambda: torch.matmul(left, right, out=product)


def build(context):
    numbers = range(5000)
    if context.device == "cpu":
        return Workload(step=lambda: sum(number * number for number in numbers))
    return Workload(step=on_gpu(context.device))
'''
# The median speaks: the fastest block is blind to what disturbs only some of them.
_SUITE = f"""schema_version = 1
[suites.proof]
canaries = false
[suites.proof.protocol]
timeout_s = 120.0
statistic = "median"
warmup_min_s = 0.2
warmup_max_s = 2.0
warmup_tolerance = 0.05
block_min_s = 0.01
timed_min_s = 0.5
timed_max_s = 1.0
fingerprint_steps = 0
[[suites.proof.workloads]]
workload = "{PRODUCT}"
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShippedPlan:
    """Workloads of a shipped suite that can be launched here, and why others are not, by id."""

    plan: Plan
    left_out: dict[str, str]


@contextlib.contextmanager
def product() -> Iterator[Plan]:
    """Provide a plan of one workload, in a folder of its own. Raises CannotWriteError."""
    with contextlib.ExitStack() as stack:
        try:
            folder = stack.enter_context(scratch.folder()).path
            (folder / "workloads").mkdir()
            (folder / "workloads" / f"{PRODUCT}.py").write_text(_WORKLOAD, encoding="utf-8")
            (folder / "workloads" / "suite.toml").write_text(_SUITE, encoding="utf-8")
        except OSError as error:
            raise CannotWriteError(
                f"{error.filename}: cannot be written: {error.strerror}; TMPDIR names another "
                "place for temporary files"
            ) from None
        yield suite.plan(folder / "workloads", "proof", root=folder)


def shipped(device: str) -> ShippedPlan:
    """Plan the shipped suite for a device, without what needs ranks or a module that is not there.

    The workloads that come first are of different files.
    """
    folder = suite.shipped("workloads")
    name = "smoke" if device == "cpu" else "standard"
    plan = suite.plan(folder, suite.BUILTIN + name, root=folder)
    left_out = {
        workload.id: reason for workload in plan.workloads if (reason := _against(workload))
    }
    kept = [workload for workload in plan.workloads if workload.id not in left_out]
    return ShippedPlan(
        plan=msgspec.structs.replace(plan, canaries=False, workloads=tuple(_alternating(kept))),
        left_out=left_out,
    )


def with_protocol(workload: PlannedWorkload, name: str, **protocol: Scalar) -> PlannedWorkload:
    """Return a workload under another id, with a protocol that differs."""
    return msgspec.structs.replace(
        workload, id=name, protocol=msgspec.structs.replace(workload.protocol, **protocol)
    )


def of_rounds(plan: Plan, rounds: int) -> Plan:
    """Return a plan that launches each workload so many times."""
    return msgspec.structs.replace(
        plan,
        workloads=tuple(
            with_protocol(workload, workload.id, processes=rounds) for workload in plan.workloads
        ),
    )


def _against(workload: PlannedWorkload) -> str:
    if workload.launch == "torchrun" or workload.world_size > 1:
        return "it has several ranks"
    missing = sorted(missing_modules(Path(workload.file)))
    return f"{', '.join(missing)} cannot be imported" if missing else ""


def missing_modules(file: Path) -> set[str]:
    """Name the modules that a workload and its neighbours import, and that are not installed."""
    missing, files, seen = set(), [file], {file}
    while files:
        for module in _imported(files.pop()):
            neighbour = file.with_name(f"{module}.py")
            if not neighbour.is_file():
                missing |= set() if importlib.util.find_spec(module) else {module}
            elif neighbour not in seen:
                seen.add(neighbour)
                files.append(neighbour)
    return missing


def _imported(file: Path) -> Iterable[str]:
    """Name the modules that a file imports, each by the part before its first dot."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]


def _alternating(workloads: Sequence[PlannedWorkload]) -> Sequence[PlannedWorkload]:
    """Order workloads so that the first of each file come first, then the second of each."""
    seen: Counter[str] = Counter()
    ordered: list[list[PlannedWorkload]] = []
    for workload in workloads:
        number = seen[workload.file]
        seen[workload.file] += 1
        if number == len(ordered):
            ordered.append([])
        ordered[number].append(workload)
    return [workload for each_first in ordered for workload in each_first]
