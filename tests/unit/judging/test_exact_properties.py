"""What holds of exact metrics, whatever was counted: ranges decide, and one is enough."""

from hypothesis import given
from hypothesis import strategies as st

from ci_perf.judging import samples as judge
from ci_perf.model.comparison import Verdict
from ci_perf.model.samples import Sampled, SampledMetric, Samples

COUNT = SampledMetric(unit="count", kind="exact")
counts = st.lists(st.integers(0, 10**6), min_size=1, max_size=4)


def counted(base, head, **more):
    sampled = Sampled(workload="w", metric=COUNT, history=(tuple(base),), head=tuple(head), **more)
    return judge.judge(Samples(workloads=(sampled,)), base="b", head="h").verdict


@given(counts, st.randoms(use_true_random=False))
def test_equal_ranges_of_a_count_are_unchanged(values, order):
    within = [order.randint(min(values), max(values)) for _ in range(3)]

    assert counted(values, values) is Verdict.UNCHANGED
    assert counted(values, within) is Verdict.UNCHANGED


@given(counts, st.integers(1, 10**6))
def test_one_more_than_ever_counted_is_a_regression_and_one_less_a_gain(values, more):
    beyond = [max(values) + more]

    assert counted(values, beyond) is Verdict.REGRESSED
    assert counted(beyond, values) is Verdict.IMPROVED


@given(counts, counts, counts)
def test_pairs_of_counts_are_judged_as_their_two_ranges(history, base, head):
    pairs = tuple(zip(base, head, strict=False))

    assert counted(history, history, pairs=pairs) is counted(
        [before for before, _ in pairs], [after for _, after in pairs]
    )
