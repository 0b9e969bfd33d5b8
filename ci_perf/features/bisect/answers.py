"""What is known of each commit of a line, and what follows for those that run the same program."""

from dataclasses import dataclass, field

import msgspec

from ci_perf.features.bisect.bisecting import Search
from ci_perf.features.bisect.bisection import BisectedCommit, CommitAnswer
from ci_perf.gate.commits import CommitPrograms
from ci_perf.model.comparison import Change
from ci_perf.model.task import MachineDescription

_DECIDED = frozenset({CommitAnswer.LIKE_GOOD, CommitAnswer.LIKE_BAD})


@dataclass(slots=True)
class Answers:
    """The answers so far, by position; records tell which commits run the same program."""

    programs: CommitPrograms
    workload: str
    known: list[BisectedCommit] = field(init=False)
    search: Search = field(init=False)

    def __post_init__(self) -> None:
        self.known = [
            BisectedCommit(commit=each.commit, parents=len(each.parents), answer=CommitAnswer.OPEN)
            for each in self.programs.line.commits
        ]
        self.search = Search(len(self.known) - 1)

    def note(
        self,
        at: int,
        answer: CommitAnswer,
        *,
        change: Change | None = None,
        same_as: str = "",
        note: str = "",
    ) -> None:
        """Keep the answer of a commit."""
        self.known[at] = msgspec.structs.replace(
            self.known[at], answer=answer, change=change, same_as=same_as, note=note
        )
        if 0 < at < self.search.last:
            self.search = self.search.with_answer(at, answer)

    def reuse_record(self, at: int, machine: MachineDescription | None) -> None:
        """Give a commit the answer of one that was measured, where a record shows its program."""
        if machine is None:
            return
        for other, known in enumerate(self.known):
            is_measured = known.answer in _DECIDED and not known.same_as
            if is_measured and self.programs.is_same(other, at, self.workload, machine):
                self.note(at, known.answer, same_as=known.commit.id)
                self.spread(at, machine)
                return

    def spread(self, at: int, machine: MachineDescription | None) -> None:
        """Give the answer of a commit to those around it that run the same program."""
        known = self.known[at]
        if machine is None or known.answer not in _DECIDED:
            return
        measured = known.same_as or known.commit.id
        for other in self.programs.same(at, self.search.open, self.workload, machine):
            self.note(other, known.answer, same_as=measured)

    def change_at(self, at: int) -> Change | None:
        """Return what pairs have said of a commit, or of the one whose program it runs."""
        known = self.known[at]
        if known.change is not None:
            return known.change
        return next((each.change for each in self.known if each.commit.id == known.same_as), None)
