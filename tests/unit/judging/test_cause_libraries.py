"""Calls of libraries as causes: what is exact, what it takes, and what is left out."""

import pytest

from ci_perf.judging import causes
from ci_perf.model.step_profile import ProfiledPair, ProfiledPairs
from tests.step_profiles import a_called, a_library_call, a_use
from tests.unit.judging.cause_rows import FASTER, STEP_S, explained, left, shown, step

ONE = (1.0,)
LOG = a_called("log", working_s=4e-3, waiting_s=0.0)
SLOW_LOG = a_called("log", working_s=12e-3, waiting_s=0.0)
DUMPS = a_library_call("json.dumps", 2, seconds=8e-3)


def calling(*calls, log=LOG, uses=(), **more):
    return step(*uses, called=(log,), library_calls=calls, **more)


@pytest.mark.parametrize("wander", [ONE, (1.0, 1.004, 0.997)])
def test_a_call_that_the_base_does_not_make_is_new_also_by_one_pair(wander):
    (cause,) = explained(calling(), calling(DUMPS, log=SLOW_LOG), wander=wander).causes

    assert (cause.kind, cause.evidence, cause.place.function) == ("new", "exact", "log")
    assert [(change.operator, change.calls_head) for change in cause.operators] == [
        ("json.dumps", 2.0)
    ]
    assert cause.line == 12
    assert cause.delta_s == pytest.approx(8e-3, rel=0.02)
    assert bool(cause.share) is (len(wander) > 1)


def test_a_call_that_the_head_does_not_make_is_gone():
    (cause,) = explained(calling(DUMPS, log=SLOW_LOG), calling(), FASTER).causes

    assert (cause.kind, cause.delta_s) == ("gone", pytest.approx(-8e-3, rel=0.02))


@pytest.mark.parametrize("wander", [ONE, (1.0, 1.004, 0.997)])
def test_a_call_that_takes_nothing_is_no_cause_though_its_function_wanders(wander):
    """The own time of `log` is longer by 2 % of the step; nobody knows why."""
    trivial = a_library_call("dict.get", 1, seconds=1e-7)
    wanders = a_called("log", working_s=6e-3, waiting_s=0.0)
    planted = a_library_call("zlib.crc32", 64, "decode", seconds=7e-3)
    head = step(
        called=(wanders, a_called("decode", working_s=9e-3, waiting_s=0.0)),
        library_calls=(trivial, planted),
    )
    base = step(called=(LOG, a_called("decode", working_s=2e-3, waiting_s=0.0)))

    assert shown(explained(base, head, wander=wander))[0] == ("new", "decode")
    assert ("new", "log") not in shown(explained(base, head, wander=wander))


@pytest.mark.parametrize("wander", [ONE, (1.0, 1.004, 0.997)])
@pytest.mark.parametrize("part", [0.015, 0.05])
def test_operators_that_a_library_dispatches_are_counted_once(wander, part):
    """`einops.rearrange` does nothing but to dispatch one operator, which is its caller's, too."""
    seconds = part * STEP_S
    head = calling(
        a_library_call("einops.rearrange", 1, seconds=seconds),
        log=a_called("log", working_s=4e-3 + seconds, waiting_s=0.0),
        uses=(a_use("aten::permute", 1, "log", call_s=seconds),),
    )

    (cause,) = explained(calling(), head, wander=wander).causes

    assert cause.delta_s == pytest.approx(seconds, rel=0.1)


def test_what_pairs_show_beside_the_call_is_in_its_line():
    """Of 8 ms that the function takes more, the call alone takes 5."""
    dumps = a_library_call("json.dumps", 2, seconds=5e-3)
    explanation = explained(calling(), calling(dumps, log=SLOW_LOG))

    assert shown(explanation) == [("new", "log")]
    assert explanation.causes[0].delta_s == pytest.approx(8e-3, rel=0.02)


def test_a_longer_time_that_no_call_explains_stays_measured():
    trivial = a_library_call("dict.get", 1, seconds=2e-4)
    others = tuple(a_called(f"other{at}", working_s=5e-3, waiting_s=0.0) for at in range(4))
    base = step(called=(LOG, *others))
    head = step(called=(SLOW_LOG, *others), library_calls=(trivial,))
    (cause,) = explained(base, head).causes

    assert (cause.kind, cause.evidence) == ("slower", "measured")


def test_operators_come_first_and_calls_that_take_much_less_are_not_named():
    uses = (a_use("aten::sin", 8, "log", call_s=1e-3),)
    small = a_library_call("len", 9, seconds=1e-6)
    log = a_called("log", working_s=20e-3, waiting_s=0.0)
    (cause,) = explained(calling(), calling(DUMPS, small, uses=uses, log=log)).causes

    assert [change.operator for change in cause.operators] == ["aten::sin", "json.dumps"]


def test_seconds_of_operators_and_calls_are_counted_once():
    """Of 20 ms that a new function takes, 8 are operators' and 8 of `json.dumps`."""
    uses = (a_use("aten::sin", 8, "log", call_s=1e-3),)
    log = a_called("log", working_s=20e-3, waiting_s=0.0)
    (cause,) = explained(
        step(called=(a_called("other", working_s=1e-3),)), calling(DUMPS, uses=uses, log=log)
    ).causes

    assert cause.delta_s == pytest.approx(20e-3, rel=0.03)


def test_a_new_function_is_called_and_names_what_it_calls():
    (cause,) = explained(
        step(called=(a_called("other", working_s=1e-3),)), calling(DUMPS, log=SLOW_LOG)
    ).causes

    assert (cause.kind, cause.calls_head) == ("calls", 1)
    assert [(change.kind, change.operator) for change in cause.operators] == [("new", "json.dumps")]


def test_calls_that_follow_those_of_their_function_are_not_named():
    base = calling(DUMPS, log=a_called("log", 2, working_s=8e-3, waiting_s=0.0))
    head = calling(
        a_library_call("json.dumps", 4, seconds=16e-3),
        log=a_called("log", 4, working_s=16e-3, waiting_s=0.0),
    )
    (cause,) = explained(base, head).causes

    assert (cause.kind, cause.operators) == ("calls", ())


def test_calls_in_a_function_that_is_called_more_often_are_counted_once():
    """By one pair the function seems to take less: what it takes is that of its calls."""

    def side(calls, working_s):
        return step(
            a_use("aten::add", calls, "log", call_s=1e-5),
            called=(a_called("log", calls, working_s=working_s, waiting_s=0.0),),
            library_calls=(a_library_call("json.dumps", calls, seconds=calls * 1e-3),),
        )

    (cause,) = explained(side(10, 10.1e-3), side(20, 20.1e-3), wander=ONE).causes

    assert cause.delta_s == pytest.approx(10e-3, rel=0.05)


def test_watched_calls_take_what_their_function_takes_more_also_by_one_pair():
    """What was watched is ten times what the function takes when nobody watches its calls."""
    dumps = a_library_call("json.dumps", 2, seconds=120e-3)
    (cause,) = explained(calling(), calling(dumps, log=SLOW_LOG), wander=ONE).causes

    assert cause.delta_s == pytest.approx(8e-3, rel=0.02)


def test_calls_without_times_are_evidence_all_the_same():
    (cause,) = explained(calling(), calling(a_library_call("json.dumps", 2))).causes

    assert (cause.kind, cause.share) == ("new", None)


@pytest.mark.parametrize(
    "more",
    [
        {"missing": {"library_calls": "too many"}},
        {"varies": ("json.dumps in log (src/net.py)",)},
    ],
)
def test_what_was_not_counted_or_varies_is_no_evidence(more):
    base = calling(**more)
    explanation = explained(base, calling(DUMPS), wander=ONE)

    assert (shown(explanation), left(explanation)) == ([], [])


def test_calls_that_differ_between_launches_of_a_side_are_no_evidence():
    one, other = calling(DUMPS), calling(a_library_call("json.dumps", 3, seconds=8e-3))
    pairs = tuple(ProfiledPair(base=calling(), head=head) for head in (one, other, one))
    profiled = ProfiledPairs(workload="w", pairs=pairs)

    assert causes.explain(profiled, is_gain=False).causes == ()


def test_a_call_that_waits_takes_its_waiting():
    sleep = a_library_call("time.sleep", 1, working_s=0.0, waiting_s=0.1 * STEP_S)
    log = a_called("log", working_s=4e-3, waiting_s=0.1 * STEP_S, waits_in="time.sleep")
    (cause,) = explained(calling(), calling(sleep, log=log)).causes

    assert (cause.kind, cause.waits_in) == ("new", "")
    assert cause.delta_s == pytest.approx(0.1 * STEP_S, rel=0.02)
