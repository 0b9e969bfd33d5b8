"""Accepting runs for real, into a folder of baselines."""

import math

from ci_perf.baselines import accept, layout, summaries
from ci_perf.errors import ExitCode
from ci_perf.judging import compare
from ci_perf.judging import summarise as judged
from ci_perf.model.comparison import Change
from tests.runs import CPU


def against(root, run, limits=None):
    base = summaries.baselines(root, run.environment.hard, run.suite)
    return compare.compare(base, judged.run(run, label="run.json"), limits=limits)


def accepted(root, run, *, limits=None, **options):
    """Accept for real; return the action per workload."""
    files = accept.prepare(root, run, against(root, run, limits), **options)
    accept.write(root, files)
    return {a.workload: a.action for a in files}


def says_what_it_says(root, run):
    """Whether nothing differs between the baseline and the run, even if one session proves little.

    Baselines keep six digits.
    """
    comparison = against(root, run)
    changes = [row for row in comparison.rows if isinstance(row, Change)]
    return (
        comparison.exit_code == ExitCode.OK
        and bool(changes)
        and all(row.ratio is None or math.isclose(row.ratio, 1, rel_tol=1e-5) for row in changes)
    )


def history(root):
    return layout.read(layout.path(root, CPU, "smoke", "a"))


def contents(root):
    return {path.name: path.read_bytes() for path in root.rglob("*.json")}
