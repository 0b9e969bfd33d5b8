"""A suite for people: its workloads, and the first steps of a new one."""

from collections.abc import Iterable

from ci_perf.model.suite import Plan
from ci_perf.report import escape

_OWN_MODEL = """\
Next:
 1. {first}, and try it:
                                ci-perf run
 2. Commit everything to your main branch.
"""
_EXAMPLE = "Put a step of your own model into workloads/example.py"
_FOUND = "Make what workloads/suite.toml has found as short as it can be"
_ON_GITHUB = """\
 3. On GitHub: Actions, perf-baseline, Run workflow. Your runner measures the main branch and
    opens a pull request with the first baselines. Merge it.
 4. Open a pull request: perf measures it, and a comment says whether it is slower."""
_BY_HAND = """\
 3. Make the numbers the first baselines:
                                ci-perf run
                                ci-perf accept run.json --reason "First baseline"
                                git add baselines && git commit -m "First baselines"
 4. On a branch, measure it beside the main branch:
                                ci-perf check --against main
For GitHub, `ci-perf init --action OWNER/REPOSITORY@COMMIT` adds the workflows."""


def next_steps(*, has_workflows: bool, has_example: bool = True, ready: Iterable[str] = ()) -> str:
    """Say what a person does after the first files were written, in the order of the README.

    `ready` are options of `ci-perf check` that measure what the repository has already.
    """
    lines = [f"{' ' * 32}ci-perf check --against main {options}" for options in ready]
    before = ["Measured as it is, on a branch, without these files:", *lines, ""] if lines else []
    first = _OWN_MODEL.format(first=_EXAMPLE if has_example else _FOUND)
    return "\n".join([*before, first + (_ON_GITHUB if has_workflows else _BY_HAND)])


def describe_written(new: Iterable[str], kept: Iterable[str]) -> str:
    """Say which first files were written, and which were there already."""
    lines = [f"wrote  {path}" for path in new]
    kept_lines = [f"kept   {path} (it was there)" for path in kept]
    nothing = [] if lines else ["Nothing to write: everything is there."]
    return "\n".join([*lines, *kept_lines, *nothing])


def render_list(plan: Plan) -> str:
    """Say in one line per workload: id, parameters as suite.toml spells them, description."""
    lines = []
    for workload in plan.workloads:
        parameters = ", ".join(
            f"{name}={str(value).lower() if isinstance(value, bool) else value}"
            for name, value in workload.parameters.items()
        )
        lines.append((workload.id, parameters, workload.description))
    widths = [max((len(line[i]) for line in lines), default=0) for i in (0, 1)]
    return "\n".join(
        escape.visible(f"{name:<{widths[0]}}  {parameters:<{widths[1]}}  {description}").rstrip()
        for name, parameters, description in lines
    )
