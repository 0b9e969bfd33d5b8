"""A thousand random schedules of faults: whatever happens, every unit has exactly one ending."""

import random
from collections import Counter
from typing import get_args

import pytest

from benchmarks.fleet_simulation import Cluster, Fate, Host, SimulatedUnit, Time, reader
from ci_perf.fleet import journal
from ci_perf.fleet.ledger import Ledger
from ci_perf.fleet.settings import FleetRules, World
from ci_perf.model.fleet import Ending, NodeClass, Requeued, Submitting
from tests.runs import a_run

SCHEDULES = 1000
FATES = get_args(Fate)
RUN = a_run()
# Hours of waiting are minutes here: each look at a cluster takes time.
RULES = FleetRules(queue_s=1200, overrun_unknown_s=1800)


class KilledError(BaseException):
    """The controller is gone: nothing of it runs any more."""


class Schedule:
    """What goes wrong, drawn from one seed."""

    def __init__(self, seed):
        self.draw = draw = random.Random(seed)
        self.clock = Time()
        classes = [f"c{number}" for number in range(draw.randint(1, 3))]
        self.units = {
            f"u{number}": SimulatedUnit(
                f"u{number}",
                expected_s=draw.choice([0.0, 5.0, 60.0, 300.0]),
                machine_class=draw.choice(classes),
                takes_s=draw.uniform(1, 400),
            )
            for number in range(draw.randint(0, 25))
        }
        self.classes = {name: NodeClass(nodes=draw.randint(1, 6)) for name in classes}
        # A class may have fewer nodes than its owner believes, or none at all.
        hosts = {
            name: [Host(f"{name}-n{i}") for i in range(draw.randint(0, node_class.nodes))]
            for name, node_class in self.classes.items()
        }
        weights = [draw.choice([5, 50]), *(draw.choice([0, 0, 1, 5]) for _ in FATES[1:])]
        self.refusal, self.silence, self.death, self.interrupt = (
            draw.choice([0, 0, most]) for most in (0.3, 0.3, 0.01, 0.002)
        )
        self.cluster = Cluster(
            hosts=hosts,
            units=self.units,
            fate=lambda: draw.choices(FATES, weights)[0],
            clock=self.clock,
            refuses=lambda: self.happens(self.refusal),
            is_silent=lambda: self.happens(self.silence),
            poll_s=draw.choice([3.0, 30.0]),
        )
        self.events = []
        self.newest = {}
        # Each one begins to wait anew: killed again and again, they would wait for ever.
        self.lives = 5
        self.was_interrupted = False

    def happens(self, chance):
        return self.draw.random() < chance

    def may_die(self):
        if self.lives and self.happens(self.death):
            self.lives -= 1
            raise KilledError

    def record(self, events):
        """A controller dies before or after it has written what it did."""
        self.may_die()
        self.events += events
        for event in events:
            if isinstance(event, Submitting):
                self.newest |= {attempt.unit: attempt for attempt in event.attempts}
        self.may_die()

    def sleep(self, seconds):
        self.clock.sleep(seconds)
        self.may_die()
        if not self.was_interrupted and self.happens(self.interrupt):
            self.was_interrupted = True
            # An engine that does not answer then is another test's matter.
            self.silence = 0
            raise KeyboardInterrupt

    def read(self, attempt):
        assert attempt == self.newest[attempt.unit], "the result of an older attempt was read"
        return reader(self.cluster, RUN)(attempt)

    def run(self):
        """Run controllers until one is not killed; return what the last one answers."""
        while True:
            world = World(
                engine=self.cluster,
                prepare=lambda job, _attempts: job,
                read=self.read,
                record=self.record,
                notify=lambda _line: None,
                clock=self.clock,
                sleep=self.sleep,
            )
            past = journal.replay(self.events)
            ledger = Ledger(self.units.values(), self.classes, world, RULES)
            try:
                return ledger.run(past)
            except KilledError:
                self.clock.sleep(self.draw.uniform(0, 100))


@pytest.mark.parametrize("first", range(0, SCHEDULES, 100))
def test_every_unit_has_exactly_one_ending_whatever_happens(first):
    seen = Counter()
    for seed in range(first, first + 100):
        schedule = Schedule(seed)

        endings = schedule.run()

        assert [ending.unit for ending in endings] == list(schedule.units), seed
        kinds = [e for e in schedule.events if isinstance(e, Ending)]
        # A controller that goes on after an interrupt takes up what was cancelled.
        final = Counter(e.unit for e in kinds if e.kind != "cancelled")
        assert max(final.values(), default=0) <= 1, f"{seed}: a second ending"
        assert {e.unit for e in kinds} == set(schedule.units), seed
        _check(schedule, endings, seed)
        seen.update(ending.kind for ending in endings)
    # Schedules in which nothing goes wrong, or everything, would prove nothing.
    assert min(seen[kind] for kind in ("measured", "failed", "lost")) > 10


def _check(schedule, endings, seed):
    spent = Counter(e.unit for e in schedule.events if isinstance(e, Requeued) and e.spent)
    assert max(spent.values(), default=0) <= 1, f"{seed}: a second retry"
    assert all(ending.attempts <= 2 for ending in endings), seed
    assert schedule.cluster.alive() == [], f"{seed}: left in the queue"
    failed_on = {e.unit: e.node for e in schedule.events if isinstance(e, Requeued) and e.spent}
    for attempt in schedule.cluster.known.values():
        if attempt.attempt.number == 2 and attempt.node:
            assert attempt.node != failed_on[attempt.attempt.unit], f"{seed}: on the same node"
    for ending in endings:
        if ending.kind == "measured":
            assert schedule.cluster.hosts[schedule.units[ending.unit].machine_class], seed
    if not schedule.was_interrupted:
        assert all(ending.kind != "cancelled" for ending in endings), seed
