import math

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_perf.judging import comparability, summarise
from ci_perf.model.comparison import Verdict
from ci_perf.model.process import Fingerprint
from ci_perf.model.suite import Limit
from tests.runs import STEADY, a_measured, a_process, a_run

TOLERANCE = Limit(relative=1e-3, gate=False)
LOSSES = (2.3026, 2.2954, 2.2811)
finite = st.floats(-1e300, 1e300)


def a_subject(*fingerprints, losses=(), **more):
    """A workload whose processes have these fingerprints, or all the same losses."""
    measured = a_measured("w", *STEADY, losses=losses, **more)
    if fingerprints:
        processes = tuple(
            a_process(i, losses=one.losses, checksums=one.checksums, varies=one.varies)
            for i, one in enumerate(fingerprints)
        )
        measured = msgspec.structs.replace(measured, processes=processes)
    (subject,) = summarise.run(a_run(measured), label="run.json").subjects
    return subject


def judge(base, head, limit=TOLERANCE):
    return comparability.judge_numerics(base, head, limit)


def test_a_loss_that_differs_by_rounding_only_is_the_same():
    rounded = tuple(loss * (1 + 2e-7) for loss in LOSSES)
    row = judge(a_subject(losses=LOSSES), a_subject(losses=rounded))

    assert row.code == "within_limit"
    assert 0 < row.difference < 1e-6


def test_a_loss_beyond_the_tolerance_is_a_change_of_the_largest_difference():
    row = judge(a_subject(losses=(2.0, 4.0)), a_subject(losses=(2.0, 5.0)))

    assert (row.verdict, row.code) == (Verdict.NUMERICS_CHANGED, "beyond_limit")
    assert row.difference == pytest.approx(0.2)
    assert not row.gate


@pytest.mark.parametrize("head", [LOSSES[:2], (*LOSSES, 2.27), ()])
def test_another_number_of_losses_is_a_change_without_a_size(head):
    """Also none at all: a workload that no longer says what it computes has something to hide."""
    row = judge(a_subject(losses=LOSSES), a_subject(losses=head))

    assert (row.code, row.difference, row.head) == ("beyond_limit", None, head)


def test_another_number_of_checksums_is_a_change_without_a_size():
    sums = (1.0, 0.5, 2.0, 0.5)
    row = judge(a_subject(Fingerprint(checksums=sums[:2])), a_subject(Fingerprint(checksums=sums)))

    assert (row.code, row.difference, row.head) == ("beyond_limit", None, sums)


def test_the_first_process_of_the_latest_session_speaks_for_the_base():
    base, head = Fingerprint(losses=(1.0,)), Fingerprint(losses=(2.0,))

    assert judge(a_subject(base, head), a_subject(base)).code == "within_limit"


def test_losses_and_checksums_do_not_stand_in_for_each_other():
    base, head = Fingerprint(losses=(1.0, 2.0)), Fingerprint(losses=(), checksums=(1.0, 2.0))

    assert comparability.numeric_difference(base, head) is None


@pytest.mark.parametrize("base", [None, a_subject()])
def test_where_the_base_has_noted_nothing_there_is_nothing_to_say(base):
    assert judge(base, a_subject(losses=LOSSES)) is None


def test_processes_that_disagree_without_a_reason_are_named():
    head = a_subject(Fingerprint(losses=(1.0,)), Fingerprint(losses=(1.0000001,)))

    for base in (None, a_subject(losses=(1.0,))):
        row = judge(base, head)
        assert (row.verdict, row.code) == (Verdict.NUMERICS_CHANGED, "numerics_vary")
        assert (row.base, row.head) == ((1.0,), (1.0000001,))


def test_processes_that_disagree_with_a_reason_are_compared_within_the_tolerance():
    why = "atomic additions end in any order"
    head = a_subject(
        Fingerprint(losses=(1.0,), varies=why), Fingerprint(losses=(1.0001,), varies=why)
    )
    row = judge(a_subject(losses=(1.0,)), head)

    assert (row.code, row.note) == ("within_limit", why)
    assert row.difference == pytest.approx(1e-4, rel=1e-3)


def test_the_process_that_is_furthest_from_the_base_decides():
    why = "no seed reaches the kernel"
    head = a_subject(Fingerprint(losses=(1.0,), varies=why), Fingerprint(losses=(1.5,), varies=why))
    row = judge(a_subject(losses=(1.0,)), head)

    assert (row.code, row.head) == ("beyond_limit", (1.5,))


def test_a_weighted_mean_that_cancels_is_seen_against_the_size_of_its_tensor():
    """Rounding moved it by a tenth of itself, and by a millionth of what it was made of."""
    base, head = Fingerprint(checksums=(1e4, 0.1)), Fingerprint(checksums=(1e4, 0.11))

    assert comparability.numeric_difference(base, head) == pytest.approx(1e-6)


def test_numbers_near_zero_count_as_if_they_were_a_thousandth():
    assert comparability.relative_difference(1e-7, 3e-7) == pytest.approx(2e-4)
    assert comparability.relative_difference(1e-5, 2e-5) == pytest.approx(1e-2)
    assert comparability.relative_difference(0.0, 0.0) == 0.0


@given(a=finite, b=finite)
def test_a_difference_is_symmetric_finite_and_at_most_two(a, b):
    assert comparability.relative_difference(a, b) == comparability.relative_difference(b, a)
    assert 0 <= comparability.relative_difference(a, b) <= 2
    assert math.isfinite(comparability.relative_difference(a, b))


@given(st.lists(finite, max_size=6), st.lists(finite, max_size=6))
def test_a_fingerprint_never_differs_from_itself(losses, checksums):
    one = Fingerprint(losses=tuple(losses), checksums=tuple(checksums))

    assert comparability.numeric_difference(one, one) == 0.0


def test_a_fingerprint_for_which_there_was_no_time_is_no_other_fingerprint():
    before = a_subject(losses=LOSSES)
    absent = Fingerprint(absent="3 steps of 9 s were too long")
    (session,) = before.sessions
    after = msgspec.structs.replace(
        before, sessions=(msgspec.structs.replace(session, fingerprints=(absent,)),)
    )

    assert judge(before, after) is None
    assert judge(after, before) is None


def test_a_number_at_the_tolerance_is_the_same_and_the_first_beyond_it_is_named():
    limit = Limit(relative=0.25)

    same = judge(a_subject(losses=(4.0, 4.0)), a_subject(losses=(4.0, 3.0)), limit)
    other = judge(a_subject(losses=(4.0, 4.0, 4.0)), a_subject(losses=(3.0, 2.5, 1.0)), limit)

    assert (same.code, same.difference) == ("within_limit", 0.25)
    assert (other.code, other.place) == ("beyond_limit", 1)
