import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_perf.errors import ExitCode
from ci_perf.judging import samples as judge
from ci_perf.judging.policy import LOOKS
from ci_perf.model import codec
from ci_perf.model.comparison import Comparison, Verdict
from ci_perf.model.samples import Sampled, SampledMetric, Samples

TIME = SampledMetric(unit="s", kind="time")
RATE = SampledMetric(unit="1/s", direction="higher", kind="time")
FLOPS = SampledMetric(unit="FLOP/s", direction="higher", kind="time")
MEMORY = SampledMetric(unit="byte", kind="host_memory")
COUNT = SampledMetric(unit="count", kind="exact")
# Sessions and launches of one machine that is quiet: as many as clear a workload on its own.
SESSIONS = (
    (1.0, 1.001, 0.999),
    (1.002, 1.001, 1.003),
    (0.999, 0.998, 1.0),
    (1.001, 1.0, 1.0),
    (0.999, 1.001, 1.0),
)
HEAD = (1.0, 1.001, 0.999)


def scaled(values, factor):
    return tuple(factor * value for value in values)


def pairs(factor, *, count=18, base=1.0):
    """Pairs of launches whose head takes `factor` times as long, give or take 0.2 %."""
    noise = (0.999, 1.001, 1.0)
    return tuple((base, base * factor * noise[i % 3]) for i in range(count))


def a_sampled(workload="w", metric=TIME, **more):
    return Sampled(workload=workload, metric=metric, **more)


def by_history(head, history=SESSIONS, **more):
    """A head that takes `head` times as long as it did."""
    return a_sampled(history=history, head=scaled(HEAD, head), **more)


def judged(*workloads, **options):
    return judge.judge(Samples(workloads=workloads), base="old", head="new", **options)


def row(*workloads):
    """What is said of the workload `w`."""
    return next(one for one in judged(*workloads).rows if one.workload == "w")


WILD = (SESSIONS[0], scaled(SESSIONS[1], 2.0), scaled(SESSIONS[2], 0.5))
TWO_SPEEDS = tuple((1.0, (0.9, 1.1)[i % 2] + i * 1e-4) for i in range(18))
SPREAD = tuple((1.0, 0.85 + 0.3 * (i * 7 % 18) / 17) for i in range(18))
# What six pairs just prove alone, they do not prove beside a hundred other suspects.
CLOSE = a_sampled(pairs=((1.0, 1.03), (1.0, 1.0451), (1.0, 1.0583)) * 2)
OTHERS = [a_sampled(f"other{i}", pairs=pairs(1.5)) for i in range(100)]


@pytest.mark.parametrize(
    ("workloads", "verdict", "code"),
    [
        ([by_history(1.0)], Verdict.UNCHANGED, "within_limit"),
        ([by_history(1.1, pairs=pairs(1.1))], Verdict.REGRESSED, "beyond_limit"),
        ([by_history(0.9, pairs=pairs(0.9))], Verdict.IMPROVED, "beyond_limit"),
        # The machine moved: the base's own code takes 10 % longer there, too.
        ([by_history(1.1, pairs=pairs(1.0, base=1.1))], Verdict.UNCHANGED, "baseline_moved"),
        ([by_history(1.0, pairs=pairs(1.1))], Verdict.UNCHANGED, "within_limit"),
        ([by_history(1.1)], Verdict.LIKELY_SLOWER, "history_alone"),
        ([by_history(0.9)], Verdict.INCONCLUSIVE, "history_alone"),
        ([by_history(2.0, SESSIONS[:2])], Verdict.LIKELY_SLOWER, "history_alone"),
        ([by_history(1.02, SESSIONS[:2])], Verdict.INCONCLUSIVE, "too_few_sessions"),
        ([by_history(1.1, WILD)], Verdict.INCONCLUSIVE, "spread"),
        ([a_sampled(pairs=pairs(1.1))], Verdict.REGRESSED, "beyond_limit"),
        ([a_sampled(pairs=pairs(1.0))], Verdict.UNCHANGED, "within_limit"),
        ([a_sampled(pairs=pairs(2.0, count=1))], Verdict.INCONCLUSIVE, "too_few_pairs"),
        ([a_sampled(pairs=TWO_SPEEDS)], Verdict.INCONCLUSIVE, "two_modes"),
        ([a_sampled(pairs=SPREAD)], Verdict.INCONCLUSIVE, "spread"),
        ([CLOSE], Verdict.REGRESSED, "beyond_limit"),
        ([CLOSE, *OTHERS], Verdict.LIKELY_SLOWER, "spread"),
    ],
)
def test_history_and_pairs_have_one_answer(workloads, verdict, code):
    found = row(*workloads)

    assert (found.verdict, found.code) == (verdict, code)


def test_a_row_has_the_ratio_of_its_pairs_and_the_base_of_today():
    slow, moved = by_history(1.1, pairs=pairs(1.1)), by_history(1.1, pairs=pairs(1.0, base=1.1))

    assert row(slow).ratio == pytest.approx(1.1, abs=0.002)
    assert row(moved).base == pytest.approx(1.1)


def test_pairs_after_the_decision_are_left_alone():
    found = row(a_sampled(pairs=pairs(1.5)))

    assert found.base_processes == found.head_processes == LOOKS[0]


@pytest.mark.parametrize(
    ("metric", "base", "head", "shown"),
    [
        (RATE, 1000, 800, (1 / 1000, 1 / 800)),  # the time that a rate means
        (FLOPS, 1e12, 8e11, (1e12, 8e11)),
    ],
)
def test_where_more_is_better_the_ratio_is_that_of_the_cost(metric, base, head, shown):
    found = row(a_sampled(metric=metric, pairs=[(base, head)] * 6))

    assert found.verdict is Verdict.REGRESSED
    assert found.ratio == pytest.approx(1.25)
    assert (found.base, found.head) == pytest.approx(shown)


@pytest.mark.parametrize(
    ("history", "head", "verdict"),
    [
        ((((3, 3)),), (3, 3), Verdict.UNCHANGED),
        (((3, 3),), (4, 4), Verdict.REGRESSED),
        (((3, 3),), (2,), Verdict.IMPROVED),
        (((3, 3),), (3, 4), Verdict.INCONCLUSIVE),
        (((0,),), (0,), Verdict.UNCHANGED),
        (((0,),), (1,), Verdict.REGRESSED),
    ],
)
def test_what_is_exact_is_judged_by_ranges(history, head, verdict):
    assert row(a_sampled(metric=COUNT, history=history, head=head)).verdict is verdict


def test_a_count_that_was_zero_has_no_ratio():
    assert row(a_sampled(metric=COUNT, history=((0,),), head=(2,))).ratio is None


def test_exact_pairs_count_more_than_an_older_history():
    moved = a_sampled(metric=COUNT, history=((3,),), head=(4,), pairs=((4, 4), (4, 4)))

    found = row(moved)
    assert found.verdict is Verdict.UNCHANGED
    assert (found.pairs, found.base_sessions) == (2, 0)


@pytest.mark.parametrize("metric", [TIME, COUNT])
def test_a_metric_with_one_side_does_not_vanish(metric):
    gone = judged(a_sampled(metric=metric, history=SESSIONS))
    new = judged(a_sampled(metric=metric, head=HEAD))

    assert [one.verdict for one in gone.rows] == [Verdict.FAILED]
    assert [one.verdict for one in new.rows] == [Verdict.NEW]
    assert gone.exit_code == new.exit_code == ExitCode.NO_ANSWER


def test_a_file_of_nothing_has_no_answer():
    assert judged().exit_code == ExitCode.NO_ANSWER


def test_a_larger_limit_looks_for_larger_changes_of_times_only():
    slightly = {"pairs": pairs(1.021)}

    assert judged(a_sampled(**slightly)).verdict is Verdict.REGRESSED
    wide = judged(a_sampled(**slightly), limit=0.05)
    assert (wide.verdict, wide.rows[0].limit) == (Verdict.UNCHANGED, pytest.approx(0.05))
    of_memory = judged(a_sampled(metric=MEMORY, **slightly), limit=0.05)
    assert of_memory.rows[0].limit == pytest.approx(0.02)


launches = st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=4)
sampled = st.builds(
    lambda history, head, pairs: a_sampled(
        history=tuple(map(tuple, history)), head=tuple(head), pairs=tuple(pairs)
    ),
    st.lists(launches, min_size=1, max_size=4),
    launches,
    st.lists(st.tuples(st.floats(1e-3, 1e3), st.floats(1e-3, 1e3)), max_size=20),
)


@given(sampled)
def test_only_pairs_blame_anybody_and_every_answer_can_be_written(found):
    comparison = judged(found)

    assert row(found).verdict is not Verdict.REGRESSED or found.pairs
    assert codec.decode(codec.encode(comparison), Comparison, name="c.json") == comparison


@pytest.mark.parametrize(
    ("metric", "shown"),
    [
        (TIME, {"step_time_s": 200.0}),
        (RATE, {"step_time_s": 0.005}),  # seconds of what was written as steps per second
        (FLOPS, {"flop_per_s": 200.0}),
    ],
)
def test_what_one_side_lacks_is_shown_in_the_unit_of_its_metric(metric, shown):
    """By the geometric mean of its launches."""
    gone = row(a_sampled(metric=metric, history=((100.0, 400.0),)))
    new = row(a_sampled(metric=metric, head=(100.0, 400.0)))

    assert (gone.code, gone.base) == ("missing", pytest.approx(shown))
    assert (new.code, new.head) == ("new", pytest.approx(shown))
