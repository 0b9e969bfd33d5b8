"""What is known of each commit of a line, and what follows for those that run the same program."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from ci_perf.errors import UsageError
from ci_perf.features.bisect.bisecting import Range, Search
from ci_perf.features.bisect.bisection import BisectedCommit, CommitAnswer
from ci_perf.gate.commits import CommitLine, CommitPrograms
from ci_perf.model.comparison import Change
from ci_perf.model.task import MachineDescription

_DECIDED = frozenset({CommitAnswer.LIKE_GOOD, CommitAnswer.LIKE_BAD})


@dataclass(slots=True)
class Answers:
    """The answers so far; records tell which commits run the same program."""

    line: CommitLine
    programs: CommitPrograms
    workload: str
    known: dict[int, BisectedCommit] = field(default_factory=dict)
    search: Search = field(init=False)

    def __post_init__(self) -> None:
        self.search = Search(len(self.line.commits) - 1)

    @property
    def range(self) -> Range:
        """Where the culprit may be."""
        return self.search.range

    def place(self, commit: str) -> int:
        """Return the position of a commit. Raises UsageError: it is not on this line."""
        for at in range(len(self.line.commits)):
            if self.line.id(at) == commit:
                return at
        raise UsageError(
            f"{commit}: expected a commit of the line that is searched, found another one; an "
            "earlier search has measured it: name another folder"
        )

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
        self.known[at] = self._described(at, answer, change=change, same_as=same_as, note=note)
        if 0 < at < self.search.last:
            self.search = self.search.with_answer(at, answer)

    def is_recorded(self, at: int, machine: MachineDescription | None) -> bool:
        """Whether a record shows that a commit runs the program of one whose answer is known."""
        if machine is None:
            return False
        for other, known in self.known.items():
            is_measured = known.answer in _DECIDED and not known.same_as
            if is_measured and self.programs.is_same(other, at, self.workload, machine):
                self.note(at, known.answer, same_as=known.commit.id)
                self.spread(at, machine)
                return True
        return False

    def spread(self, at: int, machine: MachineDescription | None) -> None:
        """Give the answer of a commit to those around it that run the same program."""
        answer = self.known[at].answer
        if machine is None or answer not in _DECIDED:
            return
        measured = self.known[at].same_as or self.line.id(at)
        for other in self.programs.same(at, self.search.open, self.workload, machine):
            self.note(other, answer, same_as=measured)

    def change_at(self, at: int) -> Change | None:
        """Return what pairs have said of a commit, or of the one whose program it runs."""
        known = self.known[at]
        if known.change is not None:
            return known.change
        same = (each for each in self.known.values() if each.commit.id == known.same_as)
        return next((each.change for each in same), None)

    def all(self) -> Iterator[BisectedCommit]:
        """Yield every commit of the line."""
        for at in range(len(self.line.commits)):
            yield self.known.get(at) or self._described(at, CommitAnswer.OPEN)

    def _described(
        self,
        at: int,
        answer: CommitAnswer,
        *,
        change: Change | None = None,
        same_as: str = "",
        note: str = "",
    ) -> BisectedCommit:
        of_line = self.line.commits[at]
        return BisectedCommit(
            commit=of_line.commit,
            parents=len(of_line.parents),
            answer=answer,
            same_as=same_as,
            change=change,
            note=note,
        )
