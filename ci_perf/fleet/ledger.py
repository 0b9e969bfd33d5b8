"""The ledger: which unit has no ending yet. Retries are ours: once, elsewhere, with a new nonce.

It knows no engine, no file and no clock of its own: all of them are given to it.
"""

import bisect
import heapq
from collections.abc import Iterable, Mapping, Sequence

from ci_perf.errors import EngineError
from ci_perf.fleet import live_attempts
from ci_perf.fleet.engine import EngineJob, Observation, Placed
from ci_perf.fleet.journal import Past
from ci_perf.fleet.live_attempts import LiveAttempt, OpenUnit
from ci_perf.fleet.reading import Unusable, Usable, WrongNode
from ci_perf.fleet.settings import FleetRules, FleetUnit, World
from ci_perf.model.fleet import (
    Attempt,
    Ending,
    EndingKind,
    Event,
    NodeClass,
    NotTaken,
    Requeued,
    Started,
    Submitted,
    Submitting,
)

# Fewer at once may be chance; the engine or its network is to blame where more than half vanish.
_MASS = 3
# A cluster that is lost and found this often without measuring anything is broken.
_MOST_PAUSES = 5


class Ledger:
    """Gives every unit exactly one ending."""

    def __init__(
        self,
        units: Iterable[FleetUnit],
        classes: Mapping[str, NodeClass],
        world: World,
        rules: FleetRules,
    ) -> None:
        self._classes, self._world, self._rules = classes, world, rules
        self._waiting: dict[str, list[tuple[float, int, OpenUnit]]] = {name: [] for name in classes}
        self._live: dict[str, LiveAttempt] = {}
        self._endings: dict[str, Ending] = {}
        self._order = 0
        self._entries = {unit.id: OpenUnit(unit) for unit in units}
        # What units have taken here, as multiples of what was expected, in ascending order.
        self._ratios: list[float] = []
        self._progress_at = dict.fromkeys(classes, world.clock())
        self._silence = ""
        self._paused_until, self._pauses = world.clock(), 0

    def run(self, past: Past | None = None) -> tuple[Ending, ...]:
        """Run until every unit has its ending; return these in the order of the units.

        Interrupted, it cancels what the engine has, and gives the rest of the units the ending
        "cancelled". Raises EngineError if a cancelled job does not end, or cannot be asked about.
        """
        try:
            self._begin(past or Past())
            while len(self._endings) < len(self._entries):
                self._submit()
                self._world.sleep(self._world.engine.poll_s)
                self._observe()
                self._give_up_idle_classes()
        except KeyboardInterrupt:
            self._cancel_all()
        return tuple(self._endings[unit] for unit in self._entries)

    # --- from a journal

    def _begin(self, past: Past) -> None:
        orphans: list[Placed] = []
        for name, entry in self._entries.items():
            entry.spent = past.spent.get(name, 0)
            entry.avoid = entry.nodes = past.nodes.get(name, ())
            attempted = past.open.get(name)
            if name in past.endings:
                self._endings[name] = past.endings[name]
            elif attempted is None:
                self._wait(entry)
            elif attempted.handle is None:
                orphans.append(Placed(attempt=attempted.attempt, handle=""))
                self._requeue(
                    entry, attempted.attempt, "nobody heard of its submission", spent=False
                )
            else:
                self._follow(entry, attempted.attempt, attempted.handle, is_recovered=True)
        if orphans:
            self._world.engine.cancel(orphans)

    # --- submitting

    def _wait(self, entry: OpenUnit) -> None:
        # Longest first: a long unit that begins last is all that everybody waits for.
        self._order += 1
        item = (-entry.unit.expected_s, self._order, entry)
        heapq.heappush(self._waiting[entry.unit.machine_class], item)

    def _submit(self) -> None:
        """Give the engine as many units as their classes have nodes."""
        if self._world.clock() < self._paused_until:
            return
        for name, node_class in self._classes.items():
            live_count = len(self._live_of(name))
            batches: dict[tuple[str, ...], list[OpenUnit]] = {}
            for _ in range(min(node_class.nodes - live_count, len(self._waiting[name]))):
                entry = heapq.heappop(self._waiting[name])[2]
                batches.setdefault(entry.avoid, []).append(entry)
            for avoid, entries in batches.items():
                self._submit_job(name, avoid, entries)

    def _live_of(self, name: str) -> list[LiveAttempt]:
        return [live for live in self._live.values() if live.entry.unit.machine_class == name]

    def _submit_job(self, name: str, avoid: tuple[str, ...], entries: Sequence[OpenUnit]) -> None:
        job_name = f"ci-perf-{self._world.new_nonce()}"
        attempts = tuple(
            Attempt(
                unit=entry.unit.id,
                number=entry.spent + 1,
                nonce=self._world.new_nonce(),
                job=job_name,
                index=index,
                avoid=avoid,
            )
            for index, entry in enumerate(entries)
        )
        self._world.record([Submitting(attempts=attempts)])
        job = EngineJob(
            name=job_name,
            file=self._world.prepare(job_name, attempts),
            class_name=name,
            node_class=self._classes[name],
            avoid=avoid,
            attempts=attempts,
        )
        try:
            handles = self._world.engine.submit(job)
        except EngineError as error:
            self._refused(job, entries, str(error))
            return
        self._world.record([Submitted(handles=dict(handles))])
        for entry, attempt in zip(entries, attempts, strict=True):
            self._follow(entry, attempt, handles[attempt.nonce])

    def _follow(
        self, entry: OpenUnit, attempt: Attempt, handle: str, *, is_recovered: bool = False
    ) -> None:
        self._live[attempt.nonce] = LiveAttempt(
            entry=entry,
            placed=Placed(attempt=attempt, handle=handle),
            submitted_at=self._world.clock(),
            is_recovered=is_recovered,
        )

    def _refused(self, job: EngineJob, entries: Sequence[OpenUnit], why: str) -> None:
        """Wait where something may change: a unit of the class ends, or the engine comes back."""
        self._world.record([NotTaken(nonces=tuple(a.nonce for a in job.attempts), reason=why)])
        self._say_silence(why)
        is_final = not self._live_of(job.class_name) and self._answers()
        for entry in entries:
            if not is_final:
                self._wait(entry)
            elif entry.spent:
                tried = live_attempts.tried(entry)
                self._end(entry, "lost", f"{tried}; no other node takes it: {why}")
            else:
                self._end(entry, "failed", f"the engine refuses it: {why}")

    def _answers(self) -> bool:
        try:
            self._world.engine.poll([])
        except EngineError:
            return False
        return True

    # --- observing

    def _observe(self) -> None:
        if not self._live:
            return
        try:
            seen = self._world.engine.poll([live.placed for live in self._live.values()])
        except EngineError as error:
            self._say_silence(str(error))
            return
        self._silence = ""
        live_count = len(self._live)
        vanished = []
        began: list[Event] = []
        for nonce, live in list(self._live.items()):
            observation = seen.get(nonce, Observation(state="lost", detail="unknown to the engine"))
            live.node = observation.node or live.node
            match observation.state:
                case "queued":
                    live.running_since = None
                case "running":
                    began += self._running(live)
                case _:
                    if not self._collected(live, observation):
                        vanished.append((live, observation))
        self._world.record(began)
        self._vanished(vanished, of=live_count)

    def _running(self, live: LiveAttempt) -> list[Event]:
        now = self._world.clock()
        self._progress_at[live.entry.unit.machine_class] = now
        if live.running_since is None:
            live.running_since = now
            self._world.notify(f"{live.entry.unit.id}: runs{live_attempts.on(live.node)}")
            return [Started(nonce=live.placed.attempt.nonce, node=live.node)]
        limit_s = self._limit_s(live.entry.unit.expected_s)
        if now - live.running_since > limit_s:
            self._cancel([live.placed])
            self._leave(live)
            where = live_attempts.on(live.node)
            why = f"ran for more than {limit_s:.0f} s{where} and was cancelled"
            self._again(live, "failed", why)
        return []

    def _limit_s(self, expected_s: float) -> float:
        """Return when a unit is taken to hang: slow is who is slow beside the others of today."""
        rules = self._rules
        if not expected_s:
            return rules.overrun_unknown_s + rules.extra_s
        ratio = max(1.0, self._ratios[len(self._ratios) // 2]) if self._ratios else 1.0
        return rules.extra_s + max(rules.overrun_least_s, rules.overrun_factor * expected_s * ratio)

    def _collected(self, live: LiveAttempt, observation: Observation) -> bool:
        """Settle an attempt whose job is over; return False where the engine has lost it."""
        attempt = live.placed.attempt
        outcome = self._world.read(attempt)
        if outcome is None and observation.state == "lost":
            return False
        if outcome is None and not self._is_settled(live):
            return True
        self._leave(live)
        match outcome:
            case Usable():
                self._pauses = 0
                if expected_s := live.entry.unit.expected_s:
                    bisect.insort(self._ratios, outcome.duration_s / expected_s)
                self._visited(live)
                self._end(live.entry, "measured", outcome.said, outcome.duration_s)
            case Unusable():
                self._visited(live)
                self._end(live.entry, "failed", outcome.reason)
            case WrongNode():
                self._again(live, "failed", live_attempts.refused(live, outcome.reason))
            case None:
                self._again(live, "lost", live_attempts.gone(live, observation))
        return True

    def _is_settled(self, live: LiveAttempt) -> bool:
        """Whether an attempt ended so long ago that its files would be here."""
        if live.over_since is None:
            live.over_since = self._world.clock()
        return self._world.clock() - live.over_since >= self._rules.settle_s

    def _vanished(self, gone: Sequence[tuple[LiveAttempt, Observation]], *, of: int) -> None:
        """Submit again what was lost; where most of it vanished at once, no node is to blame."""
        if not gone:
            return
        ours = sum(not live.is_recovered for live, _ in gone)
        is_mass = ours >= _MASS and 2 * ours > of
        is_forgiven = is_mass and self._pauses < _MOST_PAUSES
        if is_forgiven:
            pause_s = self._rules.pause_s * 2**self._pauses
            self._pauses += 1
            self._paused_until = self._world.clock() + pause_s
            self._world.notify(
                f"{len(gone)} attempts vanished at once: nothing is submitted for {pause_s:.0f} s"
            )
        # What the engine has given up may still run: another attempt must find its node free.
        self._cancel([live.placed for live, _ in gone])
        for live, observation in gone:
            self._leave(live)
            why = live_attempts.gone(live, observation)
            if is_forgiven or live.is_recovered:
                self._requeue(live.entry, live.placed.attempt, why, spent=False)
            else:
                self._again(live, "lost", why)

    def _leave(self, live: LiveAttempt) -> None:
        del self._live[live.placed.attempt.nonce]
        self._progress_at[live.entry.unit.machine_class] = self._world.clock()

    def _visited(self, live: LiveAttempt) -> None:
        live.entry.spent += 1
        if live.node:
            live.entry.nodes = (*live.entry.nodes, live.node)

    def _again(self, live: LiveAttempt, kind: EndingKind, why: str) -> None:
        """Spend an attempt; submit the unit again elsewhere, or end it as `kind`."""
        entry = live.entry
        self._visited(live)
        if entry.spent >= self._rules.attempts:
            self._end(entry, kind, f"{live_attempts.tried(entry)}; the last one: {why}")
            return
        if live.node:
            entry.avoid = tuple(sorted({*entry.avoid, live.node}))
        self._requeue(entry, live.placed.attempt, why, spent=True, node=live.node)

    def _requeue(
        self, entry: OpenUnit, attempt: Attempt, why: str, *, spent: bool, node: str = ""
    ) -> None:
        event = Requeued(nonce=attempt.nonce, unit=attempt.unit, reason=why, spent=spent, node=node)
        self._world.record([event])
        self._world.notify(f"{attempt.unit}: {why}; it is submitted again")
        self._wait(entry)

    def _end(self, entry: OpenUnit, kind: EndingKind, reason: str, duration_s: float = 0.0) -> None:
        ending = Ending(
            unit=entry.unit.id,
            kind=kind,
            reason=reason,
            nodes=entry.nodes,
            attempts=entry.spent,
            duration_s=duration_s,
        )
        assert ending.unit not in self._endings, "a second ending"
        self._world.record([ending])
        self._endings[ending.unit] = ending
        counted = f"[{len(self._endings)}/{len(self._entries)}]"
        self._world.notify(f"{counted} {ending.unit}: {live_attempts.said(ending)}")

    # --- giving up

    def _give_up_idle_classes(self) -> None:
        """End the units of a class in which nothing ran and nothing ended for too long."""
        now = self._world.clock()
        for name, waiting in self._waiting.items():
            if now - self._progress_at[name] <= self._rules.queue_s:
                continue
            ours = self._live_of(name)
            self._cancel([live.placed for live in ours])
            entries = [live.entry for live in ours] + [item[2] for item in waiting]
            waiting.clear()
            for live in ours:
                self._leave(live)
            why = f": {self._silence}" if self._silence else ""
            reason = f"no node took it in {self._rules.queue_s / 3600:.3g} h{why}"
            for entry in entries:
                self._end(entry, "failed", reason)

    def _cancel(self, placed: Sequence[Placed]) -> None:
        """Cancel what no longer counts; an engine that does not answer is asked no more for it."""
        if not placed:
            return
        try:
            self._world.engine.cancel(placed)
        except EngineError as error:
            handles = ", ".join(p.handle for p in placed)
            self._world.notify(f"{handles}: cannot be cancelled, and may still run: {error}")

    def _cancel_all(self) -> None:
        """Empty the queue, and see that it is empty. Raises EngineError."""
        left = [live.placed for live in self._live.values()]
        deadline = self._world.clock() + self._rules.cancel_s
        why = ""
        while left:
            try:
                left, why = self._cancelled(left), ""
            except EngineError as error:
                why = f" ({error})"
            if not left or self._world.clock() >= deadline:
                break
            self._wait_uninterrupted()
        for entry in self._entries.values():
            if entry.unit.id not in self._endings:
                self._end(entry, "cancelled", "interrupted")
        if left:
            raise EngineError(
                f"expected an empty queue {self._rules.cancel_s:g} s after the interrupt, found "
                f"{', '.join(p.handle for p in left)}{why}; cancel them by hand"
            )

    def _wait_uninterrupted(self) -> None:
        try:
            self._world.sleep(min(0.2, self._world.engine.poll_s))
        except KeyboardInterrupt:  # the second one: the queue is being emptied already
            return

    def _cancelled(self, placed: Sequence[Placed]) -> list[Placed]:
        """Cancel attempts; return those that the engine still has."""
        self._world.engine.cancel(placed)
        seen = self._world.engine.poll(placed)
        states = {nonce: observation.state for nonce, observation in seen.items()}
        return [p for p in placed if states.get(p.attempt.nonce) in {"queued", "running"}]

    def _say_silence(self, why: str) -> None:
        if why != self._silence:
            self._silence = why
            self._world.notify(why)
