import pytest
from scipy import stats

from ci_perf.judge import student


@pytest.mark.parametrize("df", [0.5, 1, 2, 3.7, 4, 8, 30, 1000])
@pytest.mark.parametrize("tail", [0.5, 0.2, 0.05, 0.025, 1e-3, 1e-6])
def test_quantiles_agree_with_scipy(tail, df):
    assert student.upper_quantile(tail, df) == pytest.approx(
        stats.t.isf(tail, df), rel=1e-8, abs=1e-12
    )


@pytest.mark.parametrize("df", [10 ** (exponent / 5) for exponent in range(26)])
def test_quantiles_agree_with_scipy_far_beyond_what_is_asked_for(df):
    for tail in [10 ** (-exponent / 2) for exponent in range(1, 25)]:
        assert student.upper_quantile(tail, df) == pytest.approx(stats.t.isf(tail, df), rel=1e-8)


@pytest.mark.parametrize("df", [1, 4, 25])
@pytest.mark.parametrize("t", [0.0, 0.3, 2.0, 15.0])
def test_tails_agree_with_scipy(t, df):
    assert student.upper_tail(t, df) == pytest.approx(stats.t.sf(t, df), rel=1e-10)


@pytest.mark.parametrize(("tail", "df"), [(0.0, 3), (0.6, 3), (0.05, 0)])
def test_what_has_no_answer_is_refused(tail, df):
    with pytest.raises(ValueError, match="expected 0 < tail"):
        student.upper_quantile(tail, df)
