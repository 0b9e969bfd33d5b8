"""Calls of libraries as causes: what is exact, what it takes, and what is left out."""

import pytest

from ci_perf.features.explain import causes
from ci_perf.model.explanation import ProfiledPair, ProfiledPairs, Varying
from tests.features.explain.cause_rows import explained, left, shown, step
from tests.step_profiles import a_called, a_callee, a_function, a_use

ONE, THREE = (1.0,), (1.0, 1.004, 0.997)
DUMPS = a_callee("json.dumps", 2, 8e-3)
OTHER = a_called("other", own_s=1e-3)


def calling(*callees, own_s=4e-3, calls=1, uses=(), others=(OTHER,), **more):
    """A step with a function `log` that calls libraries, and one that does the same always."""
    log = a_called("log", calls, own_s=own_s, callees=callees)
    return step(*uses, called=(log, *others), **more)


@pytest.mark.parametrize("wander", [ONE, THREE])
def test_a_call_that_the_base_does_not_make_is_new_also_by_one_pair(wander):
    (cause,) = explained(calling(), calling(DUMPS, own_s=12e-3), wander=wander).causes

    assert (cause.kind, cause.evidence, cause.place.function) == ("new", "exact", "log")
    assert [(each.operator, each.calls_head) for each in cause.operators] == [("json.dumps", 2.0)]
    assert cause.delta_s == pytest.approx(8e-3, rel=0.02)


def test_a_call_that_the_head_does_not_make_is_gone():
    (cause,) = explained(calling(DUMPS, own_s=12e-3), calling(), is_gain=True).causes

    assert (cause.kind, cause.delta_s) == ("gone", pytest.approx(-8e-3, rel=0.02))


@pytest.mark.parametrize("wander", [ONE, THREE])
def test_a_call_that_takes_nothing_is_no_cause_though_its_function_wanders(wander):
    """The own time of `log` is longer by 2 % of the step; nobody knows why."""
    decode = a_called("decode", own_s=9e-3, callees=(a_callee("zlib.crc32", 64, 7e-3),))
    head = calling(a_callee("dict.get", 1, 1e-7), own_s=6e-3, others=(decode,))
    base = calling(others=(a_called("decode", own_s=2e-3),))

    assert shown(explained(base, head, wander=wander))[0] == ("new", "decode")
    assert ("new", "log") not in shown(explained(base, head, wander=wander))


SIN = a_use("aten::sin", 8, "log", call_s=1e-3)
LEN = a_callee("len", 9, 1e-6)


@pytest.mark.parametrize(
    ("base", "head", "kind", "named", "added_s"),
    [
        # Of 8 ms that the function takes more, the call takes 5: all stands in its line.
        (
            calling(),
            calling(a_callee("json.dumps", 2, 5e-3), own_s=12e-3),
            "new",
            ["json.dumps"],
            8e-3,
        ),
        # Operators come first, and the 8 ms of calls are a part of the function's own 16.
        (
            calling(),
            calling(DUMPS, LEN, uses=(SIN,), own_s=20e-3),
            "new",
            ["aten::sin", "json.dumps"],
            24e-3,
        ),
        (step(called=(OTHER,)), calling(DUMPS, own_s=12e-3), "calls", ["json.dumps"], 12e-3),
        # Calls that follow those of their function have no name.
        (
            calling(DUMPS, calls=2, own_s=8e-3),
            calling(a_callee("json.dumps", 4, 16e-3), calls=4, own_s=16e-3),
            "calls",
            [],
            8e-3,
        ),
        (calling(), calling(a_callee("json.dumps", 2), own_s=None), "new", ["json.dumps"], None),
    ],
)
def test_what_is_named_and_what_it_takes(base, head, kind, named, added_s):
    (cause,) = explained(base, head).causes

    assert (cause.kind, [each.operator for each in cause.operators]) == (kind, named)
    assert cause.delta_s == (added_s and pytest.approx(added_s, rel=0.03))


def test_a_call_that_varies_is_no_evidence():
    base = calling(varies=(Varying(operator="json.dumps", caller=a_function("log")),))
    explanation = explained(base, calling(DUMPS), wander=ONE)

    assert (shown(explanation), left(explanation)) == ([], [])


def test_calls_that_differ_between_launches_of_a_side_are_no_evidence():
    one, other = calling(DUMPS), calling(a_callee("json.dumps", 3, 8e-3))
    pairs = tuple(ProfiledPair(base=calling(), head=head) for head in (one, other, one))

    assert causes.explain(ProfiledPairs(workload="w", pairs=pairs), is_gain=False).causes == ()
