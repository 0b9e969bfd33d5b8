"""`ci-perf list`: what a suite holds, read without importing a workload."""

from pathlib import Path

import click
import msgspec

from ci_perf import suite as suites
from ci_perf.cli import console, options
from ci_perf.model.base import Scalar
from ci_perf.model.suite import Plan
from ci_perf.system import files


@click.command("list")
@options.suite
@options.workloads
@click.option("--json", is_flag=True, help="Print the whole plan as JSON.")
def command(suite: str, workloads: Path, *, json: bool) -> None:
    """Show the workloads of a suite, without importing them."""
    plan = suites.plan(workloads, suite, root=files.current_folder())
    document = msgspec.json.format(msgspec.json.encode(plan), indent=1).decode()
    console.emit(document if json else _table(plan), output=None)


def _spelled(value: Scalar) -> str:
    """As suite.toml spells it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _table(plan: Plan) -> str:
    """One line per workload: id, parameters, description."""
    lines = []
    for workload in plan.workloads:
        parameters = ", ".join(f"{k}={_spelled(v)}" for k, v in workload.parameters.items())
        lines.append((workload.id, parameters, workload.description))
    widths = [max((len(line[i]) for line in lines), default=0) for i in (0, 1)]
    return "\n".join(
        console.harmless(f"{name:<{widths[0]}}  {parameters:<{widths[1]}}  {description}").rstrip()
        for name, parameters, description in lines
    )
