"""A suite for people: its workloads, and the first steps of a new one."""

from collections.abc import Iterable

from ci_perf.model.base import Scalar
from ci_perf.model.suite import Plan
from ci_perf.report import escape

NEXT_STEPS = """\
Next:
 1. Put a step of your own model into workloads/example.py, and try it:
                                ci-perf run --suite smoke
 2. Results are no part of the repository. Add these lines to .gitignore:
                                run.json
                                report.md
                                comparison.json
                                page.html
                                baseline.patch
                                calibration-run.json
 3. Change the lines marked EDIT in .github/workflows/. Commit everything to your main branch.
 4. On GitHub: Actions, perf-baseline, Run workflow. Your runner measures the main branch and
    opens a pull request with the first baselines. Merge it.
 5. Open a pull request: perf measures it, and a comment says whether it is slower.
Without GitHub, after step 2:   git add .gitignore workloads && git commit
                                ci-perf run --suite smoke
                                ci-perf accept run.json --reason "First baseline"
                                git add baselines && git commit
on a branch:                    ci-perf check --suite smoke --against main"""


def written(new: Iterable[str], kept: Iterable[str]) -> str:
    """Say which first files were written, and which were there already."""
    lines = [f"wrote  {path}" for path in new]
    kept_lines = [f"kept   {path} (it was there)" for path in kept]
    nothing = [] if lines else ["Nothing to write: everything is there."]
    return "\n".join([*lines, *kept_lines, *nothing])


def _spelled(value: Scalar) -> str:
    """As suite.toml spells it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def listing(plan: Plan) -> str:
    """Say in one line per workload: id, parameters, description."""
    lines = []
    for workload in plan.workloads:
        parameters = ", ".join(f"{k}={_spelled(v)}" for k, v in workload.parameters.items())
        lines.append((workload.id, parameters, workload.description))
    widths = [max((len(line[i]) for line in lines), default=0) for i in (0, 1)]
    return "\n".join(
        escape.visible(f"{name:<{widths[0]}}  {parameters:<{widths[1]}}  {description}").rstrip()
        for name, parameters, description in lines
    )
