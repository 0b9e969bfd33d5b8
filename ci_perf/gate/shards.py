"""Plan a suite for several nodes, find what one of them measures, and merge what all have measured.

Runs no user code: suite.toml and baselines are read, workloads are not imported. What a node has
written is read as if a stranger had made it.
"""

import dataclasses
import os
import re
import statistics
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ci_perf import suite
from ci_perf.baselines import layout
from ci_perf.errors import InvalidFileError, UsageError
from ci_perf.gate import Notify, compare
from ci_perf.gate.commit_suite import RepositoryFolders
from ci_perf.gate.measure import MeasureOptions
from ci_perf.judging import merging, second_wave, sharding, summarise
from ci_perf.judging.compare import suspected
from ci_perf.judging.merging import ShardRun
from ci_perf.model import codec
from ci_perf.model.run import Run, Tool
from ci_perf.model.shards import MOST_SHARDS, WorkPlan, WorkUnit
from ci_perf.model.suite import PlannedWorkload
from ci_perf.system import files, git
from ci_perf.version import __version__
from ci_perf.worktree import merge_base

_SHARD = re.compile(r"([0-9]{1,9})/([0-9]{1,9})", re.ASCII)
# A unit is called after its class: with less, its name would be none.
_CLASS = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.=+-]{0,99}")
# How the units of a second wave are called, which launches pairs only.
_SECOND = "pairs-"
# What a folder of artifacts has of each node.
RUN_FILE = "run.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardOptions(RepositoryFolders):
    """How a suite is divided among nodes.

    ``shards`` is into how many parts, once for each of ``machine_classes`` if these are named.
    ``select`` names workloads, all without any. ``after`` is a run that has screened the suite on
    all nodes, without a pair: its suspects are divided, and suite, code and base are the run's.
    """

    suite: str = "smoke"
    select: tuple[str, ...] = ()
    shards: int = 1
    machine_classes: tuple[str, ...] = ()
    against: str | None = None
    after: Run | Path | None = None


def plan(options: ShardOptions, *, notify: Notify) -> WorkPlan:
    """Divide a suite by how long launches took in the committed sessions, longest first.

    The same commit, options and version of ci-perf give the same plan on every machine. Raises
    UsageError, InvalidFileError, and NothingSuspectedError: the run needs no pairs.
    """
    _check(options)
    first = _Screened() if options.after is None else _screened(options, notify)
    name, against = first.suite or options.suite, first.against or options.against or ""
    if against:
        merge_base.check(options.root, against)
    select = tuple(first.suspected) or options.select
    whole = suite.plan(options.workloads, name, selection=select, root=options.root)
    launches_s = known_launches_s(options.baselines, name)
    divided = sharding.divide(whole.workloads, launches_s, options.shards, first.launches)
    tool, source = Tool(version=__version__), git.source(Path(whole.root))
    units = tuple(
        WorkUnit(
            tool=tool,
            id=first.prefix + _identity(number, options.shards, machine_class),
            suite=whole.suite,
            source=source,
            workloads=shard.workloads,
            expected_s=round(shard.expected_s, 3),
            machine_class=machine_class,
            against=against,
            suspected={
                each: first.suspected[each] for each in shard.workloads if each in first.suspected
            },
            suspects=first.suspects,
        )
        for machine_class in options.machine_classes or (None,)
        for number, shard in enumerate(divided, 1)
        if shard.workloads
    )
    planned = WorkPlan(
        tool=tool,
        suite=whole.suite,
        source=source,
        against=against,
        selection=select,
        shards=options.shards,
        units=units,
    )
    # As its file would give it: what could not be read again is refused now.
    return codec.decode(codec.encode(planned), WorkPlan, name="the plan")


def _check(options: ShardOptions) -> None:
    """Refuse what divides nothing, or has no name. Raises UsageError."""
    if not 1 <= options.shards <= MOST_SHARDS:
        raise UsageError(
            f"--shards: expected a number from 1 to {MOST_SHARDS:,}, found {options.shards}"
        )
    if len(set(options.machine_classes)) < len(options.machine_classes):
        raise UsageError("--machine-class: expected different names, found one twice")
    for machine_class in options.machine_classes:
        if not _CLASS.fullmatch(machine_class):
            raise UsageError(
                "--machine-class: expected letters, digits and any of _ . = + -, as in fleet.toml, "
                f"found {machine_class!r}"
            )


class NothingSuspectedError(UsageError):
    """A first wave has cleared every workload, so that there is nothing left to plan."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Screened:
    """What a first wave has left to do: nothing is known without one."""

    suite: str = ""
    against: str = ""
    suspected: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    suspects: int = 0
    launches: Mapping[str, float] = field(default_factory=dict)
    prefix: str = ""


def _screened(options: ShardOptions, notify: Notify) -> _Screened:
    """Read the run of a first wave. Raises InvalidFileError and NothingSuspectedError."""
    assert options.after is not None
    (run, label), here = compare.read_run(options.after), git.source(options.root)
    how = run.interleaved
    if how is None or how.pairs:
        what = "pairs" if how else "no base"
        raise InvalidFileError(
            f"{label}: expected a run that has a base and launched no pair, found {what}; "
            "the first wave is measured with --against and --budget 0s"
        )
    if run.source.commit != here.commit:
        raise InvalidFileError(
            f"{label}: expected a run of commit {here.commit!r}, which is checked out, "
            f"found one of {run.source.commit!r}"
        )
    by = compare.basis_of(run, options, notify=notify)
    head = summarise.run(run, label="")
    by_workload = suspected(by.history, head, limits=by.rules.limits, tiers=by.rules.tiers)
    if not by_workload:
        raise NothingSuspectedError(f"{label}: no workload needs pairs of base and head")
    whole = suite.plan(options.workloads, run.suite, root=options.root)
    partners = _compared_with(by_workload, whole.workloads, run)
    return _Screened(
        suite=run.suite,
        against=how.ref,
        suspected={name: metrics for name, (metrics, _) in by_workload.items()} | partners,
        suspects=max(how.suspects, sum(len(metrics) for metrics, _ in by_workload.values())),
        # The head once, the base once to warm its caches, and both for each pair.
        launches={name: 2 + 2 * pairs for name, (_, pairs) in by_workload.items()}
        | dict.fromkeys(partners, 1),
        prefix=_SECOND,
    )


def _compared_with(
    suspects: Collection[str], workloads: Iterable[PlannedWorkload], run: Run
) -> dict[str, tuple[str, ...]]:
    """Return what suspects are compared with in their session, and is no suspect: no metrics."""
    measured = {each.workload for each in run.measured}
    groups = [measured.intersection(group) for group in sharding.together(workloads)]
    with_suspects = (group for group in groups if not group.isdisjoint(suspects))
    return {name: () for group in with_suspects for name in sorted(group - set(suspects))}


def _identity(number: int, shards: int, machine_class: str | None) -> str:
    shard = f"{number}-of-{shards}"
    return f"{machine_class}-{shard}" if machine_class else shard


def known_launches_s(baselines: Path, suite: str) -> dict[str, float]:
    """Return how long a launch of each workload took, start to end, in the newest sessions.

    The mean over the classes of machines that have measured it. Raises InvalidFileError.
    """
    known: dict[str, list[float]] = {}
    for baseline in layout.read_everything(baselines, suite):
        launches_s = [s.launch_s for s in baseline.sessions if s.launch_s is not None]
        if launches_s:
            known.setdefault(baseline.workload, []).append(launches_s[-1])
    return {workload: statistics.fmean(each) for workload, each in known.items()}


def unit_of_shard(planned: WorkPlan, shard: str, machine_class: str | None) -> WorkUnit | None:
    """Return the unit of a shard, "2/4", of a plan; `None` where that shard has no workload.

    Raises UsageError: the plan has another number of shards, or not this class of machines.
    """
    number, shards = parse_shard(shard)
    if shards != planned.shards:
        raise UsageError(
            f"--shard: expected a part of {planned.shards}, as the plan has, found {shard!r}"
        )
    if machine_class not in (classes := planned.classes()):
        named = [name for name in classes if name is not None]
        expected = f"one of the plan's: {', '.join(named)}" if named else "none, as in the plan"
        raise UsageError(f"--machine-class: expected {expected}; found {machine_class or 'none'!r}")
    wanted = _identity(number, shards, machine_class)
    return next((u for u in planned.units if u.id.removeprefix(_SECOND) == wanted), None)


def shard_of(unit: WorkUnit, shards: int) -> str:
    """Return which shard a unit is, as `parse_shard` reads it: "2/4"."""
    number = unit.id.removesuffix(f"-of-{shards}").rpartition("-")[2]
    return f"{number}/{shards}"


def parse_shard(text: str) -> tuple[int, int]:
    """Return the number of a shard, and of how many: "2/4". Raises UsageError."""
    known = _SHARD.fullmatch(text)
    number, shards = (int(part) for part in known.groups()) if known else (0, 0)
    if not 1 <= number <= shards <= MOST_SHARDS:
        raise UsageError(
            f"--shard: expected a number and of how many, as 2/4, at most {MOST_SHARDS:,}, "
            f"found {text!r}"
        )
    return number, shards


def narrowed(options: MeasureOptions, unit: WorkUnit) -> MeasureOptions:
    """Return the options of a measurement for the workloads of one unit.

    Raises UsageError: the unit is of another commit, base or version than what is here.
    """
    here = git.source(options.root)
    facts = {
        "commit": (unit.source.commit, here.commit),
        "version of ci-perf": (unit.tool.version, __version__),
        "--against": (unit.against, options.against or unit.against),
    }
    for what, (expected, actual) in facts.items():
        if expected != actual:
            raise UsageError(
                f"unit {unit.id}: expected {what} {expected!r}, as it was planned, found "
                f"{actual!r}; plan and measure the same"
            )
    return dataclasses.replace(
        options,
        suite=unit.suite,
        select=unit.workloads,
        against=unit.against or None,
        unit=unit.id,
        suspected=unit.suspected,
        suspects=unit.suspects,
        node=unit.node,
        record=options.record and not unit.suspected,  # the first wave has recorded them
    )


# --- merging


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeOptions(RepositoryFolders):
    """What is merged: runs, files of such, or folders of these, by a plan.

    ``lost`` says, by unit, why it brought no result. Baselines and suite.toml say how many suspects
    there are. ``after`` is the run of a first wave, which the pairs of these runs complete.
    """

    runs: tuple[Run | Path, ...]
    plan: WorkPlan | Path
    root: Path = Path()
    lost: Mapping[str, str] = field(default_factory=dict)
    after: Run | Path | None = None

    def planned(self) -> WorkPlan:
        """Return the plan. Raises InvalidFileError."""
        return self.plan if isinstance(self.plan, WorkPlan) else files.read(self.plan, WorkPlan)


def merge(options: MergeOptions, *, notify: Notify) -> dict[str | None, Run]:
    """Merge what nodes have measured, in any order, into one run per class of machines.

    The suspects, which share the chance of a false alarm, are counted over all nodes. Raises
    InvalidFileError: see `merging.merge`.
    """
    planned = options.planned()
    if options.after is not None:
        if len(planned.classes()) > 1:
            raise UsageError("--after: expected a plan of one class of machines, found several")
        after = dict.fromkeys(planned.classes(), options.after)
        return merge_pairs(options, after, notify=notify)
    merged = merging.merge(planned, _read(options.runs, notify), lost=options.lost)
    return {
        machine_class: _with_suspects(run, options, notify) for machine_class, run in merged.items()
    }


def merge_pairs(
    options: MergeOptions, after: Mapping[str | None, Run | Path], *, notify: Notify
) -> dict[str | None, Run]:
    """Merge the pairs of a second wave, and complete the run of the first one of each class.

    Raises InvalidFileError: see `merging.merge` and `second_wave.completed`.
    """
    planned = options.planned()
    merged = merging.merge(planned, _read(options.runs, notify), lost=options.lost)
    completed = {}
    for name, run in merged.items():
        first, label = compare.read_run(after[name])
        units = [unit for unit in planned.units if unit.machine_class == name]
        completed[name] = second_wave.completed(ShardRun(label=label, run=first), run, units)
    return completed


def _read(sources: Sequence[Run | Path], notify: Notify) -> Iterator[ShardRun]:
    """Read what is named. Raises InvalidFileError.

    One file of a folder that cannot be read must not take the others with it: nobody chose it, and
    what it should have held are failed rows.
    """
    for source in sources:
        if isinstance(source, Run) or not source.is_dir():
            yield read_shard(source)
            continue
        written = list(run_files(source))
        if not written:
            notify(f"note: {source}: expected {RUN_FILE} in it or in a folder below, found none")
        for file in written:
            try:
                yield read_shard(file)
            except InvalidFileError as error:
                notify(f"not read: {error}")


def run_files(folder: Path) -> Iterator[Path]:
    """Yield every run.json below a folder; no link is followed, so that none leads out of it."""
    for where, _, names in sorted(os.walk(folder)):
        if RUN_FILE in names:
            yield Path(where, RUN_FILE)


def read_shard(source: Run | Path) -> ShardRun:
    """Read what a node has written. Raises InvalidFileError, also for a link."""
    if isinstance(source, Path) and source.is_symlink():
        raise InvalidFileError(f"{source}: expected a file, found a link; name the file itself")
    run, label = compare.read_run(source)
    return ShardRun(label=label, run=run)


def _with_suspects(run: Run, options: MergeOptions, notify: Notify) -> Run:
    """Count the suspects of the whole run by the baselines of its class."""
    if run.interleaved is None:
        return run
    by = compare.basis_of(run, options, notify=notify)
    return merging.with_suspects(run, by.history, limits=by.rules.limits, tiers=by.rules.tiers)
