"""One night of a watch: look again at what is open, decide what is suspected, search for commits.

What launches comes in as an argument, so that nights can be simulated.
"""

import contextlib
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Protocol, TypeVar

import msgspec

from ci_perf.errors import CiPerfError
from ci_perf.features.watch.branch_line import BranchLine
from ci_perf.features.watch.sessions import PairsAnswer
from ci_perf.features.watch.suspects import HistoryStep, Suspect
from ci_perf.model.comparison import Change
from ci_perf.model.watch import (
    LARGEST_STEPS,
    CommitWindow,
    Creep,
    CreepStep,
    Culprit,
    LossCause,
    LossRow,
    Person,
    Since,
    Suspicion,
    Unanswered,
    Watched,
)

Key = tuple[str, str]
"""A workload and a metric."""
_Known = TypeVar("_Known", Culprit, Creep)
_KEPT = timedelta(days=30)
_SHOWN = 12
# Open commits are asked first, and leave this share of the budget to the search.
_FOR_SEARCH = 0.5


class BudgetSpentError(Exception):
    """The time for sessions is over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Searched:
    """What a search says: the commits that are ``left``, and how much worse the last one is.

    None is left where the last one is not worse. ``is_late``: the budget ended the search. ``why``
    says that an end could not be measured.
    """

    left: tuple[str, ...] = ()
    change: Change | None = None
    is_late: bool = False
    why: str = ""


class CommitLauncher(Protocol):
    """Launches commits. Both methods raise BudgetSpentError."""

    def measure_pairs(
        self, commit: str, base: str, names: list[str], *, explains: bool = False, keeps: float = 0
    ) -> PairsAnswer:
        """Let pairs of workloads `names` tell a commit from an older one.

        The share of the budget that `keeps` says is left.
        """

    def search(self, good: str, bad: str, key: Key) -> Searched:
        """Search for the commit that is to blame, after `good` and up to `bad`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """A metric that code made worse, by pairs of ``bad`` and ``good``; unknown from a file.

    ``since`` is where the search of an earlier night began.
    """

    key: Key
    good: str
    bad: str
    change: Change | None = None
    since: str = ""

    @property
    def size(self) -> float:
        """How much worse it is in limits; what an earlier night has begun comes first."""
        if self.change is None or not self.change.ratio:
            return math.inf
        return math.log(self.change.ratio) / math.log1p(max(self.change.limit, 1e-3))


@dataclass(slots=True)
class Night:
    """A night that goes on: it begins with what is ``known`` of the night before."""

    known: Watched
    line: BranchLine
    launcher: CommitLauncher
    today: str
    find_accepted: Callable[[Culprit | Creep], tuple[str, str | None] | None]
    keep: Callable[[Watched], None]
    find_owner: Callable[[str], str | None]
    is_removed: Callable[[str], bool]
    culprits: dict[str, Culprit] = field(init=False)
    creeps: dict[Key, Creep] = field(init=False)
    suspicions: dict[Key, Suspicion] = field(init=False)
    no_answer: dict[str, str] = field(default_factory=dict)
    steps: dict[Key, Sequence[HistoryStep]] = field(default_factory=dict)
    is_late: bool = False

    def __post_init__(self) -> None:
        oldest = (date.fromisoformat(self.today) - _KEPT).isoformat()
        self.culprits = {
            each.commit: each
            for each in self.known.culprits
            if each.state != "repaired" or each.checked > oldest
        }
        # Repaired ones stay, for the job that closes their issue may have failed.
        self.creeps = {key: each for each in self.known.creeps for key in each.keys}
        self.suspicions = {(each.workload, each.metric): each for each in self.known.suspicions}

    def go(self, suspects: Sequence[Suspect], unanswered: dict[str, str]) -> Watched:
        """Return what is known after this night. Raises KeyboardInterrupt: the rest is kept."""
        late = {each.workload for each in self.known.no_answer}
        self.no_answer = dict(unanswered)
        self.steps = {(each.workload, each.metric): each.steps for each in suspects}
        self.culprits = {name: self._settle(each) for name, each in self.culprits.items()}
        self.creeps = {key: self._settle(each) for key, each in self.creeps.items()}
        # What a budget has left out comes first in the next night, unless it alone takes too long.
        waiting = sorted(
            self._list_open(),
            key=lambda each: (not late.isdisjoint(_list_workloads(each)), each.checked),
        )
        try:
            if suspects or any(each.left for each in self.suspicions.values()):
                with contextlib.suppress(BudgetSpentError):
                    self._ask_again(waiting, keeps=_FOR_SEARCH)
            self._search(self._find_losses(suspects))
            self._ask_again(waiting)
        except BudgetSpentError:
            self.is_late = True
        return self._keep(complete=not self.is_late)

    def _keep(self, *, complete: bool = False) -> Watched:
        self.known = msgspec.structs.replace(
            self.known,
            complete=complete,
            culprits=tuple(self.culprits.values()),
            creeps=tuple(self.creeps[key] for key in sorted(self.creeps)),
            suspicions=tuple(self.suspicions[key] for key in sorted(self.suspicions)),
            no_answer=tuple(
                Unanswered(workload=name, why=why) for name, why in sorted(self.no_answer.items())
            ),
        )
        self.keep(self.known)
        return self.known

    # --- what earlier nights have found

    def _settle(self, known: _Known) -> _Known:
        """Return a loss with what is known of it tonight without pairs."""
        if known.state == "accepted" and known.until and known.until < self.today:
            why = f"the loss was accepted until {known.until}"
            known = msgspec.structs.replace(known, state="open", reason=why)
        if known.state != "open":
            return known
        names = _list_workloads(known)
        if all(map(self.is_removed, names)):
            why = f"{', '.join(names)}: no longer in the suite"
            return msgspec.structs.replace(known, state="accepted", reason=why, checked=self.today)
        if known.base not in self.line.places:
            lost = f"{known.base[:_SHOWN]}, before it, is no longer in the history of the branch"
            why = f"{lost}: was that rewritten?"
            return msgspec.structs.replace(known, reason=why)
        try:
            accepted = self.find_accepted(known)
        except CiPerfError as error:
            # A file of a version that nobody reads any more ends no night.
            self.no_answer |= dict.fromkeys(names, str(error))
            return known
        if accepted is not None and (accepted[1] or self.today) >= self.today:
            reason, until = accepted
            return msgspec.structs.replace(
                known, state="accepted", until=until, reason=reason, checked=self.today
            )
        return known

    def _list_open(self) -> list[Culprit | Creep]:
        """Return what pairs can be asked about."""
        every: list[Culprit | Creep] = [*self.culprits.values(), *self.creeps.values()]
        return [each for each in every if each.state == "open" and each.base in self.line.places]

    def _ask_again(self, waiting: list[Culprit | Creep], *, keeps: float = 0.0) -> None:
        """Let pairs say what is still worse; what they cannot tell stays as it is."""
        while waiting:
            known = waiting[0]  # a search may have added to it
            known = self.culprits.get(known.commit, known) if isinstance(known, Culprit) else known
            workloads = [each for each in _list_workloads(known) if not self.is_removed(each)]
            answer = self.launcher.measure_pairs(self.line.head, known.base, workloads, keeps=keeps)
            said = {answer.says(*key) for key in known.keys if key[0] in workloads}
            if "worse" not in said and said != {"alike"}:
                if answer.is_late and keeps:  # the search may leave it more
                    return
                self._note_failures(answer, workloads)
            elif isinstance(known, Culprit):
                self.culprits[known.commit] = self._answer_culprit(known, is_worse="worse" in said)
            elif "worse" in said:
                (key,) = known.keys
                self._note_creep(key, known.since, answer.changes[key], known.largest)
            else:
                self.creeps[known.keys[0]] = msgspec.structs.replace(
                    known, state="repaired", checked=self.today
                )
            del waiting[0]
            self._keep()

    def _answer_culprit(self, culprit: Culprit, *, is_worse: bool) -> Culprit:
        culprit = msgspec.structs.replace(culprit, checked=self.today)
        if is_worse:
            return culprit
        head, revert = self.line.head, self.line.find_revert(culprit.commit)
        how = f", reverted by {revert[:_SHOWN]}" if revert else ""
        why = f"pairs of {head[:_SHOWN]} and {culprit.parent[:_SHOWN]} agree{how}"
        return msgspec.structs.replace(culprit, state="repaired", good_again=head, reason=why)

    # --- what is suspected

    def _find_losses(self, suspects: Sequence[Suspect]) -> list[Loss]:
        """Let pairs decide whether code moved: with the commit before the step, then the first."""
        losses, waiting = self._resume(), dict[Key, list[str]]()
        searched = {each.key for each in losses}
        for each in suspects:
            key = each.workload, each.metric
            if key not in searched:
                waiting[key] = self._list_goods(each)
        self.suspicions = {
            key: each for key, each in self.suspicions.items() if key in {*searched, *waiting}
        }
        while waiting:
            good = next(iter(waiting.values()))[0]
            keys = [key for key, goods in waiting.items() if goods[0] == good]
            losses += self._decide(good, keys, waiting)
            self._keep()
        return losses

    def _resume(self) -> list[Loss]:
        """Return what is searched already, as far as the branch has the commits yet."""
        losses = []
        for key, each in list(self.suspicions.items()):
            places = self.line.places
            left = () if self.is_removed(key[0]) else each.left
            if left and all(map(places.get, left)):  # the first commit has no parent
                good = self.line.parent(each.left[0])
                since = each.good if each.good in places else good
                losses.append(Loss(key=key, good=good, bad=each.left[-1], since=since))
            else:
                self.suspicions[key] = msgspec.structs.replace(each, left=())
        return losses

    def _list_goods(self, suspect: Suspect) -> list[str]:
        """Return the commits that HEAD is compared with, one after the other."""
        key = suspect.workload, suspect.metric
        before = self.suspicions.get(key)
        answered = [before.bad] if before and before.answer != "searching" else []
        known = self._list_culprits(key)
        since = [each.commit if each.state != "repaired" else each.good_again for each in known]
        floor = max((self.line.places.get(each, 0) for each in since), default=0)
        last = max([floor, *(self.line.places.get(each, 0) for each in answered)])
        places = [self.line.places[each] for each in suspect.goods]
        if self._is_creeping(key):
            places = places[:1]
        # What a culprit or its repair explains is not searched again.
        later = [max(places[0], last), *(at for at in places[1:] if at > floor)]
        return [self.line.commits[at] for at in dict.fromkeys(later)]

    def _list_culprits(self, key: Key) -> list[Culprit]:
        return [each for each in self.culprits.values() if key in each.keys]

    def _is_creeping(self, key: Key) -> bool:
        return key in self.creeps and self.creeps[key].state == "open"

    def _is_explained(self, key: Key) -> bool:
        """Whether a commit or a creep is known that makes a metric worse."""
        known = self._list_culprits(key)
        return self._is_creeping(key) or any(each.state != "repaired" for each in known)

    def _decide(self, good: str, keys: list[Key], waiting: dict[Key, list[str]]) -> list[Loss]:
        """Return what is worse than `good`; what is not waits for its next commit, or is done."""
        head = self.line.head
        answer = PairsAnswer(same=frozenset(name for name, _ in keys))
        if good != head:
            answer = self.launcher.measure_pairs(head, good, sorted({name for name, _ in keys}))
        losses = []
        for key in keys:
            said = answer.says(*key)
            suspicion = Suspicion(workload=key[0], metric=key[1], good=good, bad=head)
            if said == "worse":
                losses.append(Loss(key=key, good=good, bad=head, change=answer.changes[key]))
                commits = self._between(good, head)
                suspicion = msgspec.structs.replace(suspicion, answer="code", left=commits)
            elif said == "alike":
                waiting[key].pop(0)
                suspicion = msgspec.structs.replace(
                    suspicion, answer="code" if self._is_explained(key) else "machine"
                )
            else:
                self._note_failures(answer, [key[0]])
            if said != "alike" or not waiting[key]:
                self.suspicions[key] = suspicion
                del waiting[key]
        return losses

    def _between(self, good: str, bad: str) -> tuple[str, ...]:
        places = self.line.places
        return self.line.commits[places[good] + 1 : places[bad] + 1]

    # --- the commits

    def _search(self, losses: list[Loss]) -> None:
        """Find the commit of each loss, the largest first; other losses may be its own, too."""
        while losses:
            losses.sort(key=lambda each: -each.size)
            loss = losses.pop(0)
            left, change = self._between(loss.good, loss.bad), loss.change
            if len(left) > 1:
                searched = self.launcher.search(loss.good, loss.bad, loss.key)
                if searched.why:
                    self.no_answer[loss.key[0]] = searched.why
                    continue
                left, change = searched.left, searched.change or change
                self._set_left(loss, left)
                if searched.is_late:
                    raise BudgetSpentError
            if not left and self._is_explained(loss.key):  # what was left of a loss is small
                continue
            if len(left) != 1:
                self.no_answer[loss.key[0]] = (
                    f"one of {len(left)} commits made it worse, and none of them can be measured: "
                    f"{left[0][:_SHOWN]} to {left[-1][:_SHOWN]}"
                    if left
                    else f"{loss.bad[:_SHOWN]} was worse than {loss.good[:_SHOWN]}, and is no more"
                )
                if not left:
                    self._forget(loss)
                continue
            self._accuse(left[0], loss, change, losses)

    def _accuse(self, commit: str, loss: Loss, change: Change | None, losses: list[Loss]) -> None:
        """Let fresh pairs of a commit and its parent show whether it is the culprit."""
        parent = self.line.parent(commit)
        others = [each for each in losses if commit in self._between(each.good, each.bad)]
        workloads = sorted({each.key[0] for each in (loss, *others)})
        answer = self.launcher.measure_pairs(commit, parent, workloads, explains=True)
        said = answer.says(*loss.key)
        if said == "worse":
            blamed = [each for each in (loss, *others) if answer.says(*each.key) == "worse"]
            # The suite of the commit may not gate what HEAD's does.
            worse = [*(answer.changes[each.key] for each in blamed), *answer.losses]
            self._add_culprit(commit, loss, worse)
            losses[:] = [each for each in losses if each not in blamed]
            for each in blamed:
                self._set_left(each, ())
                rest = list(self._find_rest(each, commit, answer.changes[each.key]))
                losses += rest
                # The night may end before all is explained.
                if rest or each.change is None:
                    self._forget(each)
                if rest:
                    self._set_left(rest[0], self._between(rest[0].good, rest[0].bad))
        elif said == "alike" and change is not None and loss.good != parent:
            own, known = answer.changes.get(loss.key), list[CreepStep]()
            if own and own.ratio and (own.interval.low if own.interval else own.ratio) > 1:
                known = [self._make_step(HistoryStep(parent, commit, own.ratio))]
            since = Since(commit=loss.good, day=self.line.described[loss.good].date[:10])
            # An open one has begun earlier, and its own pairs say how large it is.
            if self.creeps.get(loss.key) not in self._list_open():
                self._note_creep(loss.key, since, change, known)
            self._set_left(loss, ())
        elif said == "alike":
            if not self._is_explained(loss.key):
                self.no_answer[loss.key[0]] = (
                    f"a search ended at {commit[:_SHOWN]}, and its pairs with its parent agree"
                )
            self._forget(loss)
        else:
            self._note_failures(answer, [loss.key[0]])
        self._keep()

    def _forget(self, loss: Loss) -> None:
        """Let the history of the next night ask anew: the answers of this one are not the whole."""
        self.suspicions.pop(loss.key, None)
        self._keep()

    def _find_rest(self, loss: Loss, commit: str, own: Change) -> Iterable[Loss]:
        """Yield where more than a limit of a loss may be left: before its culprit, and after it."""
        whole = loss.change.ratio if loss.change else None
        is_explained = not (whole and own.ratio) or whole / own.ratio <= 1 + own.limit
        if is_explained and not loss.since:
            return
        parent = self.line.parent(commit)
        for good, bad in ((loss.since or loss.good, parent), (commit, loss.bad)):
            if self._between(good, bad):
                yield Loss(key=loss.key, good=good, bad=bad)

    def _set_left(self, loss: Loss, left: tuple[str, ...]) -> None:
        workload, metric = loss.key
        new = Suspicion(workload=workload, metric=metric, good=loss.good, bad=loss.bad)
        known = self.suspicions.get(loss.key, new)
        self.suspicions[loss.key] = msgspec.structs.replace(known, left=left, answer="code")
        self._keep()

    def _add_culprit(self, commit: str, loss: Loss, worse: Sequence[Change]) -> None:
        described, parent = self.line.described[commit], self.line.parent(commit)
        window: Suspicion | Loss = self.suspicions.get(loss.key, loss)
        if window.good not in self.line.places or window.bad not in self.line.places:
            window = loss
        before = self.culprits.get(commit)
        rows = {(row.workload, row.metric): row for row in (before.rows if before else ())}
        rows |= {(each.workload, each.metric): _row_of(each) for each in worse}
        self.culprits[commit] = Culprit(
            commit=commit,
            parent=parent,
            author=Person(name=described.author),
            subject=described.title,
            window=CommitWindow(
                good=window.good,
                bad=window.bad,
                commits=len(self._between(window.good, window.bad)),
            ),
            rows=tuple(rows.values()),
            cause=next(filter(None, map(_cause_of, worse)), None),
            owner=self.find_owner(loss.key[0]),
            first_seen=before.first_seen if before else self.today,
            checked=self.today,
        )

    def _note_creep(
        self, key: Key, since: Since, change: Change, known: Sequence[CreepStep]
    ) -> None:
        ratio, before = change.ratio or 1.0, self.creeps.get(key)
        self.creeps[key] = Creep(
            workload=key[0],
            metric=key[1],
            since=since,
            change=ratio,
            low=change.interval.low if change.interval else ratio,
            high=change.interval.high if change.interval else ratio,
            largest=self._list_largest(key, since, known),
            owner=self.find_owner(key[0]),
            reason=before.reason if before and before.since == since else "",
            checked=self.today,
        )

    def _list_largest(
        self, key: Key, since: Since, known: Sequence[CreepStep]
    ) -> tuple[CreepStep, ...]:
        """Return the largest steps that pairs or the history show, each of the fewest commits."""
        begin = self.line.places[since.commit]
        steps = [
            self._make_step(each)
            for each in self.steps.get(key, ())
            if begin <= self.line.places[each.good] < self.line.places[each.bad]
        ]
        told, largest = set[int](), list[CreepStep]()
        for step in sorted([*known, *steps], key=lambda each: each.commits):
            last = self.line.places.get(step.commit, -1)
            window = {*range(last, last - step.commits, -1)}
            if last > begin and told.isdisjoint(window):
                told |= window
                largest.append(step)
        return tuple(sorted(largest, key=lambda each: -each.change)[:LARGEST_STEPS])

    def _make_step(self, step: HistoryStep) -> CreepStep:
        return CreepStep(
            commit=step.bad,
            subject=self.line.described[step.bad].title,
            change=step.change,
            commits=len(self._between(step.good, step.bad)),
        )

    def _note_failures(self, answer: PairsAnswer, workloads: Iterable[str]) -> None:
        self.is_late = self.is_late or answer.is_late
        why = "the budget ended before" if answer.is_late else "pairs decided nothing"
        for name in workloads:
            self.no_answer[name] = answer.failures.get(name, why)


def _list_workloads(known: Culprit | Creep) -> list[str]:
    return sorted({name for name, _ in known.keys})


def _row_of(change: Change) -> LossRow:
    interval = change.interval
    return LossRow(
        workload=change.workload,
        metric=change.metric,
        change=change.ratio,
        low=interval.low if interval else None,
        high=interval.high if interval else None,
        baseline=change.base,
        now=change.head,
    )


def _cause_of(change: Change) -> LossCause | None:
    causes = change.explanation.causes if change.explanation else ()
    first = next((each for each in causes if each.place), None)
    if first is None or first.place is None:
        return None
    what = f" of {first.operators[0].operator}" if first.operators else ""
    calls = f"{first.calls_base:g} → {first.calls_head:g} calls{what}"
    return LossCause(text=calls, function=first.place.function, file=first.place.file)
