"""Calls are counted as what they are, with exact bounds, and the tables say so."""

import numpy as np
import pytest
from scipy import stats

from benchmarks.verdicts import chart, promises, tables
from benchmarks.verdicts.observed import FASTER, INCONCLUSIVE, SILENT, SLOWER, Judged
from benchmarks.verdicts.scores import Rate, Score


def judged(*calls, launches=3.0):
    return Judged(np.array(calls, dtype=np.int8), np.full(len(calls), launches))


@pytest.mark.parametrize(("count", "of"), [(0, 1), (1, 1), (0, 500), (3, 500), (250, 500), (7, 9)])
def test_bounds_are_those_of_scipy(count, of):
    expected = stats.binomtest(count, of).proportion_ci(0.95, method="exact")

    assert Rate(count, of).bounds == pytest.approx((expected.low, expected.high), abs=1e-12)


def test_a_pull_request_is_alarmed_by_any_of_its_workloads_in_either_direction():
    score = Score("rule")
    score.add(0.0, judged(SILENT, SLOWER, FASTER, SILENT, SILENT, INCONCLUSIVE), suite=2)

    assert score.alarms == Rate(2, 6)
    assert score.alarmed_pull_requests == Rate(2, 3)
    assert score.inconclusive == Rate(1, 6)


def test_launches_are_counted_on_unchanged_workloads():
    score = Score("rule")
    score.add(0.0, judged(SILENT, SILENT, launches=3.0), suite=2)
    score.add(0.0, judged(SILENT, SILENT, launches=11.0), suite=2)
    score.add(0.05, judged(SLOWER, launches=39.0), suite=2)

    assert score.launches_per_workload == 7.0


def test_what_is_right_depends_on_the_direction_of_the_change():
    score = Score("rule")
    score.add(-0.05, judged(SLOWER, FASTER, SILENT, INCONCLUSIVE), suite=1)

    found = score.by_effect[-0.05]

    assert found.right == Rate(1, 4)
    assert found.wrong_sign == Rate(1, 4)
    assert found.green == Rate(1, 4)


def test_changes_of_one_size_count_together():
    score = Score("rule")
    score.add(0.05, judged(SLOWER, SLOWER), suite=1)
    score.add(-0.05, judged(FASTER, SILENT), suite=1)
    score.add(0.10, judged(SLOWER), suite=1)

    assert score.together(0.05).right == Rate(3, 4)
    assert score.all_sizes().right == Rate(4, 5)


def perfect(name="ours", launches=3.0):
    score = Score(name)
    score.add(0.0, judged(*[SILENT] * 2000, launches=launches), suite=20)
    for effect in (0.02, 0.03, 0.05):
        score.add(effect, judged(*[SLOWER] * 100), suite=20)
        score.add(-effect, judged(*[FASTER] * 100), suite=20)
    return score


def test_of_a_harsh_regime_only_false_alarms_count():
    score = Score("ours")
    score.add(0.0, judged(*[SILENT] * 2000), suite=20)

    assert tables.misses("outliers", score) == []
    assert "| - | - | - |" in tables.against_targets({"outliers": score})


def test_who_reaches_everything_misses_nothing():
    assert tables.misses("typical", perfect()) == []


def test_each_figure_that_is_missed_is_named():
    score = perfect(launches=6.5)
    score.add(0.0, judged(*[SLOWER] * 40), suite=20)
    score.add(0.03, judged(*[INCONCLUSIVE] * 50), suite=20)
    score.add(0.05, judged(*[SILENT] * 50), suite=20)

    assert tables.misses("typical", score) == [
        "false alarms",
        "3 % in 99 %",
        "5 % in 97 %",
        "4 launches",
    ]


def test_a_rule_that_keeps_its_promises_breaks_none():
    assert promises.broken({"typical": perfect(), "heavy": perfect()}) == []


def test_too_many_alarms_in_any_regime_break_the_promise():
    heavy = perfect()
    heavy.add(0.0, judged(*[SLOWER] * 40), suite=20)

    assert promises.broken({"typical": perfect(), "heavy": heavy}) == [
        "heavy: 2.0% of the unchanged pull requests raise an alarm, expected at most 1%"
    ]


def test_too_little_power_on_a_typical_machine_breaks_the_promise():
    typical, heavy = perfect(), perfect()
    for score in (typical, heavy):
        score.add(0.05, judged(*[INCONCLUSIVE] * 20), suite=20)

    assert promises.broken({"typical": typical, "heavy": heavy}) == [
        "typical: 90.9% of the changes by 5 % are found, expected at least 95%"
    ]


def test_a_table_has_a_row_per_rule_and_a_share_per_size():
    table = tables.of_rules([perfect("one"), perfect("other")]).splitlines()

    assert len(table) == 4
    assert "slower found 2/3/5 %" in table[0]
    assert table[3].startswith("| other | 0.00 % (0.00 to 0.18) | 0.00 % (0.00 to 3.62) | 100/100/")


def test_all_rows_of_a_table_have_as_many_cells_as_its_head():
    found = {"quiet": perfect()}
    for table in (
        tables.of_rules([perfect()]),
        tables.against_targets(found),
        tables.by_part({"quiet": {"open": perfect(), "held out": perfect()}}),
    ):
        assert len({line.count("|") for line in table.splitlines()}) == 1


def test_rules_in_one_place_share_a_mark_and_a_label_and_names_are_escaped():
    picture = chart.draw({"quiet": [perfect("ours"), perfect("a < b")]})

    assert picture.count("<circle") == 1
    assert ">ours 1<" in picture
    assert "a &lt; b" in picture
    assert "a < b" not in picture


def found_less(name, right):
    score = Score(name)
    score.add(0.0, judged(*[SILENT] * 200), suite=20)
    score.add(0.03, judged(*[SLOWER] * right, *[SILENT] * (100 - right)), suite=20)
    return score


def test_our_mark_is_not_shared_with_a_rule_that_only_lies_close():
    ours, one, other = found_less("ours", 96), found_less("one", 92), found_less("other", 91)

    assert ">ours<" in chart.draw({"quiet": [ours, one, other]})
    assert ">1 2<" in chart.draw({"quiet": [ours, one, other]})
