"""The rules of the ledger, one by one, on a cluster that exists only in numbers."""

import pytest

from benchmarks.fleet_simulation import Cluster, Host, SimulatedUnit, Time, reader
from ci_perf.errors import EngineError
from ci_perf.fleet import journal
from ci_perf.fleet.ledger import Ledger
from ci_perf.fleet.reading import Usable
from ci_perf.fleet.settings import FleetRules, World
from ci_perf.model.fleet import Attempt, Event, NodeClass, Requeued, Started, Submitted, Submitting
from tests.runs import a_run

RUN = a_run()


class Stage:
    """A ledger with its cluster; `happens` are calls by the second at which they are made."""

    def __init__(self, *lengths, nodes=2, hosts=None, fates=(), expected=None):
        self.clock = Time()
        self.units = {
            f"u{i}": SimulatedUnit(f"u{i}", (expected or lengths)[i], "c", length)
            for i, length in enumerate(lengths)
        }
        self.fates = list(fates)
        self.cluster = Cluster(
            hosts={"c": [Host(f"n{i}") for i in range(nodes if hosts is None else hosts)]},
            units=self.units,
            fate=lambda: self.fates.pop(0) if self.fates else "measured",
            clock=self.clock,
        )
        self.nodes = nodes
        self.events, self.times, self.lines, self.happens = [], [], [], {}
        self.read = reader(self.cluster, RUN)

    def record(self, events):
        self.events += events
        self.times += [self.clock()] * len(list(events))

    def sleep(self, seconds):
        self.clock.sleep(seconds)
        for at in [at for at in self.happens if at <= self.clock()]:
            self.happens.pop(at)()

    def run(self, past=None, **rules):
        world = World(
            engine=self.cluster,
            prepare=lambda job, _attempts: job,
            read=self.read,
            record=self.record,
            notify=self.lines.append,
            clock=self.clock,
            sleep=self.sleep,
        )
        classes = {"c": NodeClass(nodes=self.nodes)}
        endings = Ledger(self.units.values(), classes, world, FleetRules(**rules)).run(past)
        return {ending.unit: ending for ending in endings}

    def all(self, kind):
        return [event for event in self.events if isinstance(event, kind)]

    def at(self, kind):
        """Return when such events were written."""
        timed = zip(self.times, self.events, strict=True)
        return [at for at, event in timed if isinstance(event, kind)]

    def lose(self, *nonces):
        """Let the engine forget attempts; all that run, unless named."""
        for nonce in nonces or self.cluster.alive():
            self.cluster.known[nonce].is_forgotten = True


def test_the_longest_unit_is_submitted_first():
    stage = Stage(10.0, 300.0, 100.0, nodes=1)

    stage.run()

    assert [e.attempts[0].unit for e in stage.all(Submitting)] == ["u1", "u2", "u0"]


def test_there_are_never_more_units_of_a_class_than_it_has_nodes():
    stage = Stage(*[50.0] * 20, nodes=3, hosts=10)

    stage.run()

    assert stage.cluster.most_at_once == 3


def test_a_lost_unit_is_submitted_again_within_seconds_of_the_word_of_the_engine():
    stage = Stage(100.0, fates=["node_dies"])

    endings = stage.run()

    assert endings["u0"].kind == "measured"
    assert endings["u0"].nodes == ("n0", "n1")
    (lost,), (_, again) = stage.at(Requeued), stage.at(Submitted)
    assert again - lost <= 5


def test_a_person_hears_where_a_unit_runs_and_how_it_ended():
    stage = Stage(100.0)

    stage.run()

    assert stage.lines == ["u0: runs on n0", "[1/1] u0: measured on n0"]


def test_what_the_engine_has_lost_is_cancelled_as_it_may_still_run():
    stage = Stage(100.0, fates=["node_dies"])
    cancelled = []

    def cancels(placed):
        cancelled.extend(placed)
        return True

    stage.cluster.cancels = cancels
    stage.run()

    (lost,) = stage.all(Requeued)
    assert [p.attempt.nonce for p in cancelled] == [lost.nonce]


def test_what_was_lost_while_nobody_controlled_it_spends_no_attempt():
    stage = Stage(100.0)
    attempt = Attempt(unit="u0", number=1, nonce="old", job="old-job")
    stage.read = lambda read: None if read.nonce == "old" else Usable(run=RUN, duration_s=1)
    past: list[Event] = [Submitting(attempts=(attempt,)), Submitted(handles={"old": "7"})]

    endings = stage.run(journal.replay(past))

    assert (endings["u0"].kind, endings["u0"].attempts) == ("measured", 1)
    assert [event.spent for event in stage.all(Requeued)] == [False]


def test_a_unit_that_is_lost_twice_names_both_nodes():
    ending = Stage(100.0, fates=["node_dies", "vanishes"]).run()["u0"]

    assert (ending.kind, ending.attempts, ending.nodes) == ("lost", 2, ("n0", "n1"))
    assert ending.reason.startswith("2 attempts on n0, n1; the last one: ")


def test_where_most_vanishes_at_once_no_attempt_is_spent_and_nothing_is_submitted_for_a_while():
    stage = Stage(*[100.0] * 4, nodes=4)
    stage.happens[50] = stage.lose

    endings = stage.run(pause_s=60)

    assert {ending.kind for ending in endings.values()} == {"measured"}
    assert [e.spent for e in stage.all(Requeued)] == [False] * 4
    assert "4 attempts vanished at once: nothing is submitted for 60 s" in stage.lines
    first, second = stage.at(Submitted)
    assert second - first >= 110


def test_a_cluster_that_loses_everything_again_and_again_spends_attempts_in_the_end():
    stage = Stage(*[100.0] * 4, nodes=4, fates=["vanishes"] * 100)

    endings = stage.run(pause_s=10)

    assert {ending.kind for ending in endings.values()} == {"lost"}


def test_where_one_of_many_vanishes_it_alone_spends_an_attempt():
    stage = Stage(*[100.0] * 4, nodes=4)
    stage.happens[50] = lambda: stage.lose(stage.cluster.alive()[0])

    stage.run()

    assert [e.spent for e in stage.all(Requeued)] == [True]


def test_units_that_no_node_takes_fail_after_the_deadline():
    endings = Stage(100.0, 100.0, 100.0, hosts=0).run(queue_s=7200)

    assert {e.kind for e in endings.values()} == {"failed"}
    assert {e.reason for e in endings.values()} == {"no node took it in 2 h"}


def test_a_queue_that_moves_is_waited_for_beyond_the_deadline():
    endings = Stage(*[3000.0] * 6, nodes=1).run(queue_s=3600)

    assert {e.kind for e in endings.values()} == {"measured"}


def test_what_the_engine_refuses_waits_while_others_run():
    stage = Stage(300.0, 90.0, fates=["measured", "crashed"])
    # Both are taken at once; the one that crashed is refused three times.
    answers = iter([False, True, True, True])
    stage.cluster.refuses = lambda: next(answers, False)

    endings = stage.run(settle_s=0)

    assert {e.kind for e in endings.values()} == {"measured"}
    assert "the queue is full" in stage.lines


def test_what_the_engine_refuses_while_nothing_runs_fails_with_its_words():
    stage = Stage(100.0)
    stage.cluster.refuses = lambda: True

    ending = stage.run()["u0"]

    assert (ending.kind, ending.reason) == ("failed", "the engine refuses it: the queue is full")


def test_an_engine_that_is_silent_for_an_hour_loses_nothing():
    stage = Stage(100.0, 100.0)
    stage.cluster.is_silent = lambda: 50 < stage.clock() < 3650

    endings = stage.run()

    assert {e.kind for e in endings.values()} == {"measured"}
    assert stage.all(Requeued) == []
    assert stage.lines.count("the controller does not answer") == 1


def test_an_engine_that_never_answers_again_is_given_up_in_its_own_words():
    stage = Stage(100.0)
    stage.cluster.is_silent = lambda: stage.clock() > 50

    ending = stage.run()["u0"]

    assert ending.reason == "no node took it in 2 h: the controller does not answer"


def test_a_unit_that_hangs_is_cancelled_at_four_times_its_length_and_tried_elsewhere():
    stage = Stage(100.0, fates=["hangs"])

    endings = stage.run()

    assert endings["u0"].kind == "measured"
    (again,) = stage.all(Requeued)
    assert again.reason == "ran for more than 400 s on n0 and was cancelled"
    assert stage.cluster.alive() == []


def test_on_a_slow_day_nobody_is_cancelled_for_being_slow():
    # Everything takes five times what was expected; each begins while others have already ended.
    expected = [60.0 - i for i in range(20)]
    stage = Stage(*[5 * s for s in expected], nodes=2, expected=expected)

    endings = stage.run(extra_s=0, overrun_least_s=400)

    assert {e.kind for e in endings.values()} == {"measured"}
    assert stage.all(Requeued) == []


def test_a_unit_of_unknown_length_is_given_hours():
    stage = Stage(20_000.0, expected=[0.0])

    assert stage.run(overrun_unknown_s=21_600)["u0"].kind == "measured"


def test_the_late_result_of_an_attempt_that_was_given_up_is_not_read():
    stage = Stage(100.0, 300.0)
    given_up, read_at, real = [], {}, stage.read

    def read(attempt):
        read_at[attempt.nonce] = stage.clock()
        return real(attempt)

    def lose():
        given_up.extend(n for n, s in stage.cluster.known.items() if s.attempt.unit == "u0")
        stage.lose(*given_up)

    stage.read = read
    # The engine gives the attempt up, and its node goes on: the result comes at 100 s.
    stage.happens[50] = lose
    stage.cluster.cancels = lambda _placed: False

    ending = stage.run()["u0"]

    # When it was given up it was looked at for the last time.
    assert [read_at[nonce] < 60 for nonce in given_up] == [True]
    assert (ending.kind, ending.attempts) == ("measured", 2)


def interrupt():
    raise KeyboardInterrupt


def test_an_interrupt_cancels_everything_and_sees_that_it_is_gone():
    stage = Stage(10.0, 1000.0, 1000.0, 1000.0)
    stage.happens[100] = interrupt

    endings = stage.run()

    assert {ending.kind for ending in endings.values()} == {"cancelled"}
    assert stage.cluster.alive() == []
    assert stage.clock() < 110


def test_a_job_that_does_not_end_after_an_interrupt_is_named():
    stage = Stage(1000.0)
    stage.happens[50] = interrupt
    stage.cluster.cancels = lambda _placed: False

    with pytest.raises(EngineError, match=r"expected an empty queue 10 s after .* handle-"):
        stage.run()

    # Its unit has an ending all the same.
    assert [e.kind for e in stage.events if hasattr(e, "kind")] == ["cancelled"]


def test_an_attempt_of_which_nobody_heard_is_cancelled_by_its_name_and_submitted_anew():
    stage = Stage(100.0)
    attempt = Attempt(unit="u0", number=1, nonce="old", job="old-job")
    cancelled = []

    def cancels(placed):
        cancelled.extend(placed)
        return True

    stage.cluster.cancels = cancels

    endings = stage.run(journal.replay([Submitting(attempts=(attempt,))]))

    assert endings["u0"].kind == "measured"
    assert endings["u0"].attempts == 1
    assert [(p.attempt.job, p.handle) for p in cancelled] == [("old-job", "")]


def test_an_attempt_that_ended_meanwhile_is_taken_as_it_is():
    stage = Stage(100.0)
    attempt = Attempt(unit="u0", number=1, nonce="old", job="old-job")
    stage.read = lambda read: Usable(run=RUN, duration_s=1) if read.nonce == "old" else None
    past: list[Event] = [
        Submitting(attempts=(attempt,)),
        Submitted(handles={"old": "7"}),
        Started(nonce="old", node="n0"),
    ]

    endings = stage.run(journal.replay(past))

    assert endings["u0"].kind == "measured"
    assert stage.all(Submitting) == []
