"""The commands that advice gives, ready to copy; every foreign word is cleaned and quoted."""

import math
import re
import shlex
from collections.abc import Iterable

from ci_perf.model.base import COMMAND_SUITE, OUTSIDE_SUITES
from ci_perf.model.comparison import Comparison, Row, is_of_workload
from ci_perf.report import phrases
from ci_perf.report.escape import Command, clean

USUAL_ARTIFACT = "ci-perf"
_USUAL_BASELINES = "baselines"
# The base to launch where the comparison names none.
_USUAL_REF = "main"
_MAX_NAME_CHARS = 200
# Long enough for most jobs that another one has to wait for.
_LONG_WAIT = "15m"
_SHA = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
# The label that `ci-perf github rejudge` gives to the run that it judges.
_WORKFLOW_RUN = re.compile(r"workflow run ([0-9]+)(?:, artifact (.+))?")


def accept(
    rows: Iterable[Row], comparison: Comparison, *, reason: bool = False, append: bool = False
) -> Command:
    """Accept exactly the run that was judged: another file may hold other numbers."""
    named = [part for name in _few(rows) for part in ("--workload", name)]
    why = ["--append"] if append else []
    why += ["--reason", '"…"'] if reason else []
    run = _run(comparison.head.label)
    return _line("ci-perf", "accept", *run, *named, *_baselines(comparison), *why)


def check_by_pairs(
    rows: Iterable[Row], comparison: Comparison, *, longer: bool = False, patient: bool = False
) -> Command:
    """Launch pairs of base and head for `rows`; for a `longer` time than before, if there were any.

    With `patient`, wait until the machine is idle.
    """
    interleaved = comparison.interleaved
    minutes = math.ceil(2 * interleaved.budget_s / 60) if interleaved else 0
    budget = ["--budget", f"{minutes}m"] if longer and minutes else []
    which = ["ci-perf", "check"]
    outside = OUTSIDE_SUITES.get(comparison.suite)
    which += [] if comparison.suite == COMMAND_SUITE else _few(rows)
    which += [] if outside else ["--suite", quote_word(comparison.suite)]
    which += _runner(comparison)
    wait = ["--wait", _LONG_WAIT] if patient else []
    against = ["--against", _ref(comparison)]
    if (other := interleaved and interleaved.environment) and (head := comparison.head.image):
        images = quote_word(other.image), quote_word(f"image={head.reference}")
        against += ["--base-image", images[0], "--container", images[1]]
    elif other:
        against += ["--base-python", quote_word(other.python)]
    if outside:
        return _line(*which, *against, *budget, *wait, *outside.split())
    return _line(*which, *against, *budget, *wait, *_baselines(comparison))


def measure(comparison: Comparison) -> Command:
    """Measure the whole suite, and judge nothing."""
    return _line("ci-perf", "run", "--suite", quote_word(comparison.suite), *_runner(comparison))


def replace(comparison: Comparison) -> Command:
    """Start a new history with the run that `measure` wrote."""
    return _line(
        "ci-perf", "accept", "run.json", *_baselines(comparison), "--replace", "--reason", '"…"'
    )


def git_rm(rows: Iterable[Row], base: str) -> Command:
    """Delete the baseline files of workloads that are gone for good; `base` is their folder."""
    missing = phrases.names(row for row in rows if is_of_workload(row))[: phrases.MAX_NAMED]
    paths = [f"{base}/{folder}{name}.json" for name in missing for folder in ("", "programs/")]
    return _line("git", "rm", "--ignore-unmatch", *map(quote_word, paths))


def quote_word(name: str) -> str:
    """Clean a foreign word and quote it for a shell."""
    return shlex.quote(clean(name, limit=_MAX_NAME_CHARS))


def _run(label: str) -> list[str]:
    """Name a run by its file, or by the workflow run that has uploaded it."""
    workflow_run = _WORKFLOW_RUN.fullmatch(label)
    if workflow_run is None:
        return [quote_word(label)]
    return [
        "--run",
        workflow_run[1],
        *(["--artifact", quote_word(workflow_run[2])] if workflow_run[2] else []),
    ]


def _ref(comparison: Comparison) -> str:
    """Name the base: as it was launched, or by its commit where two run files are compared."""
    if comparison.interleaved:
        return quote_word(comparison.interleaved.ref)
    if not comparison.base.label.endswith(".json"):
        return _USUAL_REF
    commit = comparison.base.source.commit
    if commit == comparison.head.source.commit:
        return _USUAL_REF
    return commit if _SHA.fullmatch(commit) else "COMMIT"


def _line(*parts: str) -> Command:
    return Command(" ".join(parts))


def _baselines(comparison: Comparison) -> list[str]:
    """Name the folder of the baselines where it is not the usual one: ROOT/MACHINE/SUITE."""
    root, *below = comparison.base.label.rsplit("/", 2)
    if len(below) < 2 or comparison.base.label.endswith(".json") or root == _USUAL_BASELINES:
        return []
    return ["--baselines", quote_word(root)]


def _runner(comparison: Comparison) -> list[str]:
    """Say what ran the containers of the head, if it was measured in some."""
    image = comparison.head.image
    return ["--runner", image.engine] if image else []


def _few(rows: Iterable[Row]) -> list[str]:
    """Name the workloads for a command line; none, which means all, when there are many."""
    names = [quote_word(name) for name in phrases.names(rows)]
    return names if len(names) <= phrases.MAX_NAMED else []
