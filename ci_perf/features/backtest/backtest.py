"""Go through the last merges, newest first: measure each, and measure again what moved."""

import hashlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from ci_perf.api_types import Notify
from ci_perf.errors import InvalidFileError, UsageError
from ci_perf.features.backtest import merges
from ci_perf.features.backtest.backtested import (
    Backtest,
    BacktestedMerge,
    BacktestEnd,
    MergeOutcome,
)
from ci_perf.features.backtest.merges import MergeLine
from ci_perf.features.backtest.sessions import MergeAnswer, MergeSessions
from ci_perf.gate import arguments, collecting, lab, measure, sources
from ci_perf.gate.options import MeasureOptions
from ci_perf.model.base import MAX_ERROR_CHARS
from ci_perf.model.environment import Machine, is_same
from ci_perf.model.run import Tool
from ci_perf.model.suite import Plan
from ci_perf.report import units
from ci_perf.session import Listener
from ci_perf.system import files, signals
from ci_perf.system.signals import Interrupts
from ci_perf.version import __version__

_SHOWN = 10
_OPEN = frozenset({MergeOutcome.OPEN, MergeOutcome.SUSPECTED})


def backtest(
    asked: Mapping[str, Any],
    *,
    ref: str,
    last: int,
    output: Path,
    notify: Notify,
    listener: Callable[[], Listener],
    **source: Any,  # noqa: ANN401  as `sources.open_source`
) -> Backtest:
    """Go on with the file `output`, or begin it, until the budget is spent.

    It is written after each merge; an interrupt ends it early. Raises UsageError: a budget in which
    no merge is decided, or what was asked wrongly; InvalidFileError: the file is of something else;
    other CiPerfErrors.
    """
    root = files.current_folder()
    line = merges.find_merges(root, ref, last)
    asked = {**asked, "against": "HEAD"}
    with (
        sources.open_source(root, asked, notify=notify, **source) as given,
        signals.note_signals() as ending,
    ):
        options = arguments.measure_options(None, {**given, "against": None})
        plan = measure.plan(options, has_tests=True)
        machine = lab.describe_machine(plan, options, ending, notify)
        begun = begin(line, options, plan, machine.environment.hard, last)
        begun = resume(begun, output) if output.exists() else begun
        come = ending.have_come
        plan = collecting.collect_plan(plan, root, runs=True, notify=notify, interrupted=come)
        sessions = MergeSessions(options, ending, notify, listener, today=plan, machine=machine)
        return Backtesting(begun, sessions, options.budget_s, output, notify, ending).go()


def begin(
    line: MergeLine, options: MeasureOptions, plan: Plan, machine: Machine, last: int
) -> Backtest:
    """Return a back-test of which nothing is known."""
    return Backtest(
        tool=Tool(version=__version__),
        repository=line.repository,
        ref=line.ref,
        suite=plan.suite,
        rules=_digest_rules(options, plan),
        asked=last,
        machine=machine,
        duration_s=0.0,
        ended="finished",
        merges=tuple(
            BacktestedMerge(commit=each.commit, parent=each.parents[0]) for each in line.merges
        ),
        notes=line.notes,
    )


def _digest_rules(options: MeasureOptions, plan: Plan) -> str:
    """Return the digest of the suite of today: its plan, and the files in its folder."""
    folder = Path(options.root, options.workloads)
    hashed = hashlib.sha256()
    for file in sorted(folder.rglob("*")) if not plan.suite.startswith("builtin:") else []:
        if file.suffix in {".py", ".toml"} and file.is_file():
            hashed.update(file.relative_to(folder).as_posix().encode() + file.read_bytes())
    entries = [
        (each.id, each.parameters, each.protocol, each.collects)
        for each in (*plan.workloads, *plan.tests)
    ]
    rules = (plan.suite, plan.selection, plan.setup, plan.limits, entries)
    hashed.update(msgspec.json.encode(rules, order="sorted"))
    return hashed.hexdigest()[:16]


def resume(begun: Backtest, path: Path) -> Backtest:
    """Return the back-test with what a file knows of its merges. Raises InvalidFileError."""
    try:
        known = files.read(path, Backtest)
    except InvalidFileError as error:
        raise InvalidFileError(f"{error}; name a new file with -o") from None
    what = {
        "an unchanged file": known.digest == known.sealed().digest,
        f"a back-test of this repository, which began with {begun.repository[:_SHOWN]}": (
            known.repository == begun.repository
        ),
        f"a back-test by the suite {begun.suite} as it is today": known.rules == begun.rules,
        "a back-test of this machine": is_same(known.machine, begun.machine),
    }
    for expected, holds in what.items():
        if not holds:
            raise InvalidFileError(
                f"{path}: expected {expected}, found another one; name a new file with -o"
            )
    answers = {each.commit.id: each for each in known.merges}
    own = {each.commit.id for each in begun.merges}
    older = tuple(each for each in known.merges if each.commit.id not in own)
    rows = tuple(answers.get(each.commit.id, each) for each in begun.merges)
    return msgspec.structs.replace(begun, merges=(*rows, *older), duration_s=known.duration_s)


@dataclass(slots=True)
class Backtesting:
    """A back-test that goes on."""

    known: Backtest
    sessions: MergeSessions
    budget_s: float
    output: Path
    notify: Notify
    ending: Interrupts
    start: float = field(default_factory=time.monotonic)
    before_s: float = field(init=False)

    def __post_init__(self) -> None:
        self.before_s = self.known.duration_s

    def go(self) -> Backtest:
        """Measure what is open, newest first."""
        files.check_target(self.output)
        count = 0
        ended: BacktestEnd = "finished"
        try:
            for at in range(len(self.known.merges)):
                while self.known.merges[at].outcome in _OPEN and ended == "finished":
                    self.ending.check()
                    if self._left_s <= 0 or not self._measure(at):
                        ended = "budget"
                    else:
                        count += 1
        except KeyboardInterrupt:
            ended = "interrupted"
        self._keep(ended)
        if ended == "budget" and not count:
            raise UsageError(
                f"--budget: expected time for one merge, found that {self.budget_s:g} s "
                "decide none; give it more, or name fewer workloads"
            )
        return self.known

    @property
    def _left_s(self) -> float:
        return self.budget_s - (time.monotonic() - self.start)

    def _measure(self, at: int) -> bool:
        """Take the next step for a merge; return False where the budget ended before its answer.

        Raises CiPerfError of the machine, and KeyboardInterrupt.
        """
        rows = list(self.known.merges)
        row = rows[at]
        is_retest = row.outcome is MergeOutcome.SUSPECTED
        retest = 1 + max(each.retest for each in rows) if is_retest else 0
        shown = f"{row.commit.id[:_SHOWN]} {row.commit.title}{', again' * is_retest}"
        left = units.duration(max(self._left_s, 0.0))
        self.notify(f"merge {at + 1} of {len(rows)}, {left} left: {shown}")
        answer = self.sessions.measure(row, left_s=self._left_s, retest=retest)
        if answer.outcome is MergeOutcome.OPEN:
            return False
        rows[at] = confirm(row, answer, retest) if is_retest else note_first(row, answer)
        self.known = msgspec.structs.replace(self.known, merges=tuple(rows))
        self._keep("interrupted")
        self.notify(f"{shown}: {rows[at].outcome.value.replace('_', ' ')}")
        return True

    def _keep(self, ended: BacktestEnd) -> None:
        """Write what is known by now."""
        whole_s = round(self.before_s + time.monotonic() - self.start, 3)
        known = msgspec.structs.replace(self.known, duration_s=whole_s, ended=ended)
        self.known = known.sealed()
        files.write(self.output, self.known)


def note_first(row: BacktestedMerge, answer: MergeAnswer) -> BacktestedMerge:
    """Return a merge with what its first session has said."""
    return msgspec.structs.replace(
        row, outcome=answer.outcome, first=answer.changes, note=answer.note[:MAX_ERROR_CHARS]
    )


def confirm(row: BacktestedMerge, answer: MergeAnswer, retest: int) -> BacktestedMerge:
    """Return a merge with what fresh pairs have said of what moved at first."""
    first = {(each.workload, each.metric, each.verdict) for each in row.first}
    changes = tuple(
        each for each in answer.changes if (each.workload, each.metric, each.verdict) in first
    )
    outcome = MergeOutcome.MOVED if changes else MergeOutcome.UNCONFIRMED
    return msgspec.structs.replace(
        row, outcome=outcome, changes=changes, retest=retest, note=answer.note[:MAX_ERROR_CHARS]
    )
