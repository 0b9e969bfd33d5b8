"""Read the baselines along a branch, and describe every metric that gates."""

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

import msgspec

from ci_perf import hooks
from ci_perf.api_types import Location, Notify, say_nothing
from ci_perf.baselines import summaries
from ci_perf.errors import CiPerfError, UsageError
from ci_perf.features.history import (
    change_points,
    file_history,
    history_frame,
    history_page,
)
from ci_perf.features.history.branch_history import (
    BranchHistory,
    HistorySession,
    LevelChange,
    MetricTimeline,
    SkippedFile,
    WorkloadHistory,
)
from ci_perf.features.history.file_history import FileHistory, FirstCommitted
from ci_perf.gate import arguments, compare
from ci_perf.judging import trends
from ci_perf.judging.trends import MetricHistory, Threshold
from ci_perf.model import codec, metrics
from ci_perf.model.suite import is_selected
from ci_perf.model.summary import Subject
from ci_perf.system import files, git_log
from ci_perf.system.git_log import Branch, EntryState, FileVersion

if TYPE_CHECKING:
    from ci_perf.report.frame import DataFrame

# MACHINE/SUITE/WORKLOAD.json
_PARTS = 3
_PAGE, _DATA = "index.html", "history.json"


@dataclass(frozen=True, slots=True)
class LoadedHistory:
    """The history of a branch; ``document`` is the whole of it."""

    document: BranchHistory

    def to_frame(self) -> "DataFrame":
        """Return a row per session and metric: its centre, and its lowest and highest launch."""
        return history_frame.from_history(self.document).to_frame()


@dataclass(frozen=True, slots=True)
class _File:
    """One file of the folder, and its versions, newest first."""

    path: str
    versions: Sequence[FileVersion]

    @property
    def machine(self) -> str:
        return self.path.partition("/")[0]

    @property
    def workload(self) -> str:
        return PurePosixPath(self.path).stem


def history(
    *select: str,
    ref: str = "HEAD",
    root: Location | None = None,
    baselines: Location = "baselines",
    workloads: Location = "workloads",
    machines: str | Iterable[str] = (),
    notify: Notify | None = None,
) -> LoadedHistory:
    """Read every session that a branch has committed, from git alone; see `ci-perf history`.

    The result has `.document`, the history, and `.to_frame()`, a row per session and metric.
    `select` names workloads or families, `machines` folders of `baselines`; none means all. Raises
    UsageError (no repository, no such branch, no such workload or machine) and CiPerfError.
    """
    say = notify or say_nothing
    branch = git_log.branch(arguments.root_of(root), ref)
    folder = git_log.below(branch.top, arguments.below(root, baselines))
    now = datetime.now(UTC)
    versions = list(git_log.versions(branch, folder, now))
    known, skipped = _files(versions)
    if not known:
        raise CiPerfError(
            f"{ref}: expected commits that change {folder}, found none; next: "
            "`ci-perf accept run.json`, then commit the files"
        )
    commits = {version.commit.id: version.commit for version in reversed(versions)}
    selected = _select_files(known, ref, select, arguments.names_of(machines))
    readable = list(_read_files(branch, selected, skipped))
    if not readable:
        reason = skipped[0].reason if skipped else "every file was removed before it was readable"
        raise CiPerfError(f"no version of a baseline can be read; the newest one: {reason}")
    split = change_points.places if change_points.is_known() else None
    if split is None:
        say(f"no change points: ruptures is not installed; next: {change_points.INSTALL}")
    rules = arguments.below(root, workloads)
    document = BranchHistory(
        ref=branch.ref,
        commit=branch.commit,
        read_at=git_log.utc(now),
        is_shallow=branch.is_shallow,
        repository_url=branch.address,
        has_change_points=split is not None,
        commits=tuple(commits.values()),
        workloads=tuple(_histories(readable, commits, rules, split, say)),
        skipped=tuple(skipped),
    )
    return LoadedHistory(document)


def check_folder(folder: Path) -> None:
    """Check before the work that `write` can write its files. Raises CannotWriteError."""
    if folder.exists():  # else it is made once there is something to write
        files.make_folder(folder)
        for name in (_PAGE, _DATA):
            files.check_target(folder / name)


def write(history: BranchHistory, folder: Path) -> Path:
    """Write the page, and beside it the data; return it. Raises CannotWriteError."""
    files.make_folder(folder)
    lines = [line for find in hooks.find_targets("history_lines") for line in hooks.load(find)()]
    files.write_text(folder / _DATA, codec.encode(history))
    files.write_text(folder / _PAGE, history_page.render(history, lines))
    return folder / _PAGE


def _files(versions: Iterable[FileVersion]) -> tuple[list[_File], list[SkippedFile]]:
    """Tell the files of workloads from what is no file; other files of a machine are no matter."""
    of_path: dict[str, list[FileVersion]] = {}
    skipped = []
    for version in versions:
        if version.state in {EntryState.LINK, EntryState.SUBMODULE}:
            reason = f"{version.path}: expected a file, found a {version.state.value}"
            skipped.append(SkippedFile(path=version.path, commit=version.commit.id, reason=reason))
        path = PurePosixPath(version.path)
        if len(path.parts) == _PARTS and path.suffix == ".json":
            of_path.setdefault(version.path, []).append(version)
    return [_File(path, of_path[path]) for path in sorted(of_path)], skipped


def _select_files(
    known: Sequence[_File], ref: str, names: tuple[str, ...], machines: tuple[str, ...]
) -> list[_File]:
    """Return the files that were asked for. Raises UsageError for a name that none has."""
    workloads = sorted({file.workload for file in known})
    folders = sorted({file.machine for file in known})
    for name in names:
        if not any(is_selected(workload, (name,)) for workload in workloads):
            hint = codec.did_you_mean(name, workloads)
            raise UsageError(f"{ref}: has no baseline of a workload {name!r}; {hint}")
    for name in machines:
        if name not in folders:
            hint = codec.did_you_mean(name, folders)
            raise UsageError(f"--machines: {ref} has no baselines of {name!r}; {hint}")
    return [
        file
        for file in known
        if is_selected(file.workload, names) and (not machines or file.machine in machines)
    ]


@dataclass(frozen=True, slots=True)
class _Read:
    file: _File
    history: FileHistory

    @property
    def is_removed(self) -> bool:
        return self.file.versions[0].state is not EntryState.FILE


def _read_files(
    branch: Branch, selected: Iterable[_File], skipped: list[SkippedFile]
) -> Iterator[_Read]:
    """Read the files one after the other: git finds versions of a file beside each other."""
    readable = {
        file.path: [version for version in file.versions if version.state is EntryState.FILE]
        for file in selected
    }
    blobs = [version.blob for versions in readable.values() for version in versions]
    contents = git_log.contents(branch, blobs)
    for file in selected:
        versions = readable[file.path]
        stored = (
            (version.commit.id, content)
            for version, content in zip(versions, contents, strict=False)
        )
        read, failures = file_history.read(file.path, stored)
        skipped += failures
        if read is not None:
            yield _Read(file, read)
    next(contents, None)  # git has ended, and says whether it failed


def _histories(
    readable: Iterable[_Read],
    commits: Iterable[str],
    workloads: Path,
    split: trends.Split | None,
    notify: Notify,
) -> Iterator[WorkloadHistory]:
    places = {commit: place for place, commit in enumerate(commits)}
    rules: dict[str, compare.Rules] = {}
    ordered = sorted(readable, key=_machine_and_suite)
    for (_, suite), group in itertools.groupby(ordered, key=_machine_and_suite):
        if suite not in rules:
            rules[suite] = compare.rules(workloads, suite, notify=notify)
        describer = _Describer(places, trends.find_thresholds(rules[suite].limits), split)
        yield from describer.histories(list(group))


def _machine_and_suite(member: _Read) -> tuple[str, str]:
    return member.file.machine, member.history.latest.suite


@dataclass(frozen=True, slots=True)
class _Describer:
    """Describes the files of one class of machine and one suite, together as in a check."""

    commits: Mapping[str, int]
    threshold: Threshold
    split: trends.Split | None

    def histories(self, members: Sequence[_Read]) -> Iterator[WorkloadHistory]:
        """Yield one history per file; a removed one is not part of a check any more."""
        there = [member for member in members if not member.is_removed]
        lines = self._described(there)
        for member in members:
            own = self._described([member]) if member.is_removed else lines
            workload = member.history.latest.workload
            yield self._history(member, [line for line in own if line.workload == workload])

    def _described(self, members: Sequence[_Read]) -> Sequence[MetricHistory]:
        subjects = [summaries.subject(member.history.latest) for member in members]
        return trends.describe(subjects, self.threshold)

    def _history(self, member: _Read, described: Iterable[MetricHistory]) -> WorkloadHistory:
        latest = member.history.latest
        # With all sessions of the branch, and epochs that count all of them.
        whole = tuple(
            msgspec.structs.replace(each.session, epochs=dict(each.epochs))
            for each in member.history.sessions
        )
        subject = summaries.subject(msgspec.structs.replace(latest, sessions=whole))
        removal = member.file.versions[0].commit.id
        return WorkloadHistory(
            machine=member.file.machine,
            hard=latest.machine,
            suite=latest.suite,
            workload=latest.workload,
            parameters=latest.parameters,
            items_per_step=latest.items_per_step,
            item_unit=latest.item_unit,
            statistic=latest.statistic,
            removed=self.commits[removal] if member.is_removed else None,
            sessions=tuple(map(self._session, member.history.sessions)),
            metrics=tuple(self._timeline(subject, line) for line in described),
        )

    def _session(self, committed: FirstCommitted) -> HistorySession:
        session = committed.session
        return HistorySession(
            run=session.run,
            recorded_at=session.recorded_at,
            source=session.source,
            reason=session.reason,
            commit=self.commits[committed.commit],
            epochs=dict(committed.epochs),
            starts_anew=committed.starts_anew,
            processes=session.processes,
        )

    def _timeline(self, subject: Subject, line: MetricHistory) -> MetricTimeline:
        metric = metrics.metric_of(line.metric)
        levels = trends.levels(subject, metric, self.split)
        return MetricTimeline(
            metric=metric.name,
            unit=metric.unit.value,
            centre=levels[-1].centre if levels else line.centre,
            spread=line.spread,
            excludes=line.excludes,
            trend=line.trend,
            has_drifted=line.has_drifted,
            changes=tuple(
                LevelChange(
                    session=after.first,
                    before=before.centre,
                    after=after.centre,
                    accepted=after.accepted,
                )
                for before, after in itertools.pairwise(levels)
            ),
        )
