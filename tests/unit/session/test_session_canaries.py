"""When a session asks its canaries."""

from ci_perf.model.validity import Status
from tests.clocks import Clock
from tests.sessions import BOOM, Answers


def test_canaries_stand_before_between_and_after_the_rounds(measure):
    launcher = Answers()

    run = measure(launcher, "a", "b", processes=3)

    canaries, rounds = ["canaries"], [[f"a {i}", f"b {i}"] for i in range(3)]
    assert launcher.asked == [
        "describe 1",
        *canaries,
        *rounds[0],
        *canaries,
        *rounds[1],
        *canaries,
        *rounds[2],
        *canaries,
    ]
    assert [c.position for c in run.canaries] == ["before", "between", "between", "after"]
    assert run.validity.status is Status.VALID


def test_no_canary_stands_between_or_after_rounds_that_take_seconds(measure):
    run = measure(Answers(), "a", processes=3, canaries_every_s=3600.0)

    assert [canary.position for canary in run.canaries] == ["before"]


def test_canaries_stand_after_long_rounds_however_soon_after_the_ones_between(measure):
    clock = Clock()

    class Slow(Answers):
        def launch(self, task, interrupted=None):
            clock.now += 10
            return super().launch(task, interrupted)

    run = measure(Slow(), "a", "b", processes=5, canaries_every_s=30.0, clock=clock)

    positions = [canary.position for canary in run.canaries]
    assert positions == ["before", "between", "between", "after"]


def test_a_machine_without_canaries_is_asked_once_and_is_not_blamed(measure):
    launcher = Answers(canaries=[{}])

    run = measure(launcher, "a")

    assert launcher.asked.count("canaries") == 1
    assert run.validity.status is Status.VALID


def test_a_canary_that_fails_is_told_and_stops_nothing(measure):
    launcher = Answers(canaries=[{"matmul": 1e-3}, BOOM])

    run = measure(launcher, "a", processes=3)

    (reason,) = run.validity.reasons
    assert (reason.code, reason.status) == ("canary_failed", Status.DEGRADED)
    assert "between" in reason.detail
    assert "ImportError: no such thing" in reason.detail
    assert launcher.asked.count("canaries") == 2
    assert [c.position for c in run.canaries] == ["before"]
    assert len(run.measured[0].processes) == 3
