"""Count the small faults in the code that decides verdicts and trust which its tests notice.

    nice python -m benchmarks.mutants [--count N] [--seed N] [--at FILE[:LINE] …]

Takes a sample of mutants (one small change of one expression or statement each), evenly over the
code of every area, and runs the tests that reach the changed function, until one fails. Prints what
became of each, and a table. The working tree is only copied. With --at all tests that reach it are
run; for a sample, those of 40 seconds, short ones first.

Why not a tool: mutmut 3.8 and cosmic-ray 8.7 were both tried on `judging/`. mutmut is quick,
because it forks, and runs only the tests that reach a function; but it changes only what stands
inside of functions, so no tolerance and no table of limits, and it takes no sample. cosmic-ray
changes those too, but starts pytest for each mutant: five seconds for a file with two tests, and
for all of `tests/unit/judging` more than a minute. Neither deletes statements or swaps branches.
This script forks and selects as mutmut does, one mutant at a time.

Strings, annotations, decorators and the insides of f-strings are left alone: they are words, or a
type checker reads them. An assignment is not deleted: the next line would stop at its name.
"""

import argparse
import functools
import math
import os
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from benchmarks.mutants import faults, forks, noticing
from benchmarks.mutants.faults import Mutant
from benchmarks.mutants.noticing import Outcome

T = TypeVar("T")

# The share that must be noticed.
CLAIM = 0.9


@dataclass(frozen=True, slots=True, kw_only=True)
class Area:
    """Code that is changed, the tests that concern it, and its share of the sample."""

    name: str
    sources: tuple[str, ...]
    tests: tuple[str, ...]
    share: float


AREAS = (
    Area(name="judge", sources=("ci_perf/judging",), tests=("tests/unit/judging",), share=0.4),
    Area(
        name="baselines",
        sources=("ci_perf/baselines",),
        tests=("tests/unit/baselines",),
        share=0.2,
    ),
    Area(
        name="report/escape",
        sources=("ci_perf/report/escape.py",),
        tests=("tests/unit/report",),
        share=0.1,
    ),
    Area(
        name="trust",
        sources=("ci_perf/pull_request", "ci_perf/github"),
        tests=("tests/unit/pull_request", "tests/unit/github", "tests/integration/github"),
        share=0.3,
    ),
)


def mutants(area: Area) -> list[Mutant]:
    """Make every mutant of an area, file by file."""
    return [
        mutant
        for path in forks.python_files(area.sources)
        for mutant in faults.of(area.name, path, Path(path).read_text(encoding="utf-8"))
    ]


def sample(population: Sequence[T], count: int, seed: int) -> list[T]:
    """Take every n-th one, beginning where the seed says: evenly over the code."""
    if count >= len(population):
        return list(population)
    step = len(population) / count
    first = seed * 0.6180339887 % 1 * step
    return [population[int(first + index * step)] for index in range(count)]


def chosen(area: Area, *, count: int, seed: int, at: Sequence[str]) -> list[Mutant]:
    """Sample an area, or take every mutant of some lines or files."""
    if at:
        return [mutant for mutant in mutants(area) if {mutant.path, _place(mutant)} & set(at)]
    return sample(mutants(area), round(count * area.share), seed)


def _place(mutant: Mutant) -> str:
    return f"{mutant.path}:{mutant.line}"


def table(outcomes: Sequence[tuple[Mutant, Outcome]]) -> str:
    """Count outcomes by area."""
    counts = Counter((mutant.area, outcome) for mutant, outcome in outcomes)
    lines = [
        "| code | mutants | killed | timed out | survived | noticed |",
        "|:--|--:|--:|--:|--:|--:|",
    ]
    for area in [*dict.fromkeys(mutant.area for mutant, _ in outcomes), "all"]:
        killed, late, alive = (
            sum(n for (name, o), n in counts.items() if o is outcome and area in (name, "all"))
            for outcome in Outcome
        )
        total = killed + late + alive
        share = (killed + late) / total
        lines.append(f"| {area} | {total} | {killed} | {late} | {alive} | {share:.1%} |")
    return "\n".join(lines)


def _tell(stdout: int, mutant: Mutant, outcome: Outcome) -> None:
    """Write a line, also from a fork whose output goes elsewhere."""
    os.write(stdout, f"{outcome.value:9}  {_place(mutant):45}  {mutant.change}\n".encode())


def main(arguments: Sequence[str]) -> int:
    """Print what became of every mutant, then the table; 1 where too many survived."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--count", type=int, default=200, help="mutants of all areas together")
    parser.add_argument("--seed", type=int, default=1, help="another sample of the same size")
    parser.add_argument(
        "--at", nargs="+", default=(), metavar="FILE[:LINE]", help="all mutants there instead"
    )
    options = parser.parse_args(arguments)
    outcomes: list[tuple[Mutant, Outcome]] = []
    budget_s = math.inf if options.at else noticing.BUDGET_S
    stdout = os.dup(1)
    with forks.copied():
        for area in AREAS:
            some = chosen(area, count=options.count, seed=options.seed, at=options.at)
            if some:
                outcomes += noticing.outcomes(
                    some,
                    area.sources,
                    area.tests,
                    budget_s=budget_s,
                    tell=functools.partial(_tell, stdout),
                )
    if not outcomes:
        parser.error("no mutants there")
    print("\n" + table(outcomes))
    alive = sum(outcome is Outcome.SURVIVED for _, outcome in outcomes)
    return int(alive > (1 - CLAIM) * len(outcomes))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
