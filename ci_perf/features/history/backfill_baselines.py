"""The baselines that a backfill adds to: which commits have a session there, and one more of them.

What is added becomes the newest session, so that commits are added oldest first.
"""

import re
from dataclasses import dataclass, field
from pathlib import Path

from ci_perf.api_types import Notify
from ci_perf.baselines import layout
from ci_perf.baselines.accept import MAX_REASON_CHARS
from ci_perf.errors import RefusedError, UsageError
from ci_perf.gate import accept
from ci_perf.gate.accept import AcceptOptions
from ci_perf.gate.commits import CommitLine
from ci_perf.gate.options import MeasureOptions
from ci_perf.model import codec
from ci_perf.model.baseline import MAX_SESSIONS, Baseline
from ci_perf.model.environment import Machine, is_same
from ci_perf.model.run import Run
from ci_perf.model.suite import is_selected
from ci_perf.system import git

_HASH = re.compile(r"[0-9a-f]{7,64}")


@dataclass(slots=True, kw_only=True)
class LineBaselines:
    """What the baselines of one machine have of the commits of a line.

    ``force`` accepts what was measured under pressure. ``measured_at`` is where each workload was
    measured last.
    """

    options: MeasureOptions
    line: CommitLine
    machine: Machine
    force: bool
    notify: Notify
    measured_at: dict[str, int] = field(default_factory=dict)

    def _baselines(self) -> list[Baseline]:
        options = self.options
        return [
            each
            for each in layout.read_all(self._folder, self.machine, options.suite)
            if is_same(each.machine, self.machine) and is_selected(each.workload, options.select)
        ]

    @property
    def _folder(self) -> Path:
        return Path(self.options.root, self.options.baselines).absolute()

    def find_known(self) -> set[int]:
        """Return the positions that have a session.

        Raises UsageError where a session is of a commit that comes later, or of another line: what
        is added becomes the newest session, and checks would compare with old code.
        """
        places = {each.commit.id: at for at, each in enumerate(self.line.commits)}
        known: set[int] = set()
        for baseline in self._baselines():
            for commit in (each.source.commit for each in baseline.sessions):
                if commit not in places and not self._is_before(commit):
                    raise UsageError(
                        f"{self._folder}: expected sessions of commits before those to measure, "
                        f"found one of {baseline.workload} at {commit[:12]}; what is added becomes "
                        "the newest, and checks would compare with old code: name a folder of its "
                        "own, as --baselines perf-history, and show it with ci-perf history "
                        "--baselines perf-history"
                    )
                at = places.get(commit, 0)
                known.add(at)
                last = self.measured_at.get(baseline.workload, 0)
                self.measured_at[baseline.workload] = max(last, at)
        return known

    def _is_before(self, commit: str) -> bool:
        if not _HASH.fullmatch(commit):
            return False
        asked = ("merge-base", "--is-ancestor", commit, self.line.id(0))
        return git.run(self.line.start.top, *asked).code == 0

    def left(self) -> int:
        """Return how many sessions may be added before somebody commits the files.

        A file holds so many sessions, and git the others: none must be pushed out before that.
        """
        most = 0
        for baseline in self._baselines():
            file = layout.path(self._folder, baseline.machine, baseline.suite, baseline.workload)
            shown = git.run(file.parent, "show", f"HEAD:./{file.name}")
            known = set()
            if shown.code == 0:
                committed = codec.decode(shown.out, Baseline, name=f"{file} at HEAD")
                known = {each.run for each in committed.sessions}
            most = max(most, sum(each.run not in known for each in baseline.sessions))
        return MAX_SESSIONS - most

    def add(self, run: Run, own: MeasureOptions, at: int) -> str:
        """Add the session of a commit, which `own` has checked out; return what failed of it.

        Raises RefusedError, also where no workload has numbers.
        """
        failed = "; ".join(f"{each.workload}: {each.reason}" for each in run.failed)
        if not run.measured:
            raise RefusedError(failed)
        reason = f"Backfill of {self.line.shown(at)}"
        accept.accept(
            run,
            AcceptOptions(
                root=self.options.root,
                baselines=own.baselines,
                workloads=own.workloads,
                select=tuple(each.workload for each in run.measured),
                reason=reason[:MAX_REASON_CHARS],
                append=True,
                force=self.force,
            ),
            label=self.line.shown(at),
            notify=self.notify,
        )
        self.measured_at.update(dict.fromkeys((each.workload for each in run.measured), at))
        return failed
