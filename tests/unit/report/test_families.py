"""Cases of one workload or test: one line in headline and table, all of them in the fold."""

import re

import pytest

from ci_perf.model import codec, metrics
from ci_perf.model.comparison import Comparison, Family, Verdict
from ci_perf.report import headline, html, markdown, phrases, table_rows, terminal
from ci_perf.report.sheet import make_sheet
from tests.comparisons import a_change, a_comparison, an_uncompared
from tests.headlines import FAIL
from tests.unit.report import shapes
from tests.unit.report.parts import a_loss
from tests.unit.report.shapes import COLOR

MINUS = "\N{MINUS SIGN}"
OF_TEN = Family(name="t", cases=10)


def some_losses(number, *, family=OF_TEN, **more):
    """Losses of +10 %, +20 % and so on."""
    return [
        a_loss(f"{family.name}.{n}", 1 + n / 10, family=family, **more)
        for n in range(1, number + 1)
    ]


def first_line(*rows):
    return headline.render(a_comparison(*rows))


def cut_folds(text):
    return re.sub("<details>.*</details>", "", text, flags=re.DOTALL)


def test_a_headline_has_one_part_for_a_family_and_names_its_range():
    line = first_line(*some_losses(3), a_loss("other", 1.05))

    assert line == f"{FAIL}slower: t (3 of 10 cases, +10.0 to +30.0 %), other +5.0 %"


def test_a_headline_counts_workloads_and_not_families_that_do_not_fit():
    far = [a_loss(name, 9.0) for name in "abc"]

    assert first_line(*far, *some_losses(4)).endswith("c +800 % and 4 more")


def findings(*rows):
    return make_sheet(a_comparison(*rows)).findings


def test_advice_names_a_family_once_and_counts_the_workloads_that_it_leaves_out():
    rows = [*some_losses(3), *(a_loss(name) for name in "abcd"), *some_losses(2, family=COLOR)]

    assert phrases.plain(phrases.name_workloads(rows)) == "t (3 cases), a, b, c, d and 2 more"


def test_one_case_of_a_family_is_named_as_any_workload():
    assert first_line(*some_losses(1)) == f"{FAIL}slower: t.1 +10.0 %"


def test_cases_that_went_apart_have_a_line_each():
    gains = [a_change(f"t.g{n}", Verdict.IMPROVED, ratio=n / 10, family=OF_TEN) for n in (5, 8)]

    groups = table_rows.group_families(findings(*some_losses(2), *gains))

    assert [table_rows.describe_cases(group) for group in groups] == [
        "2 of 10 cases, +10.0 to +20.0 %",
        f"2 of 10 cases, {MINUS}50.0 to {MINUS}20.0 %",
    ]


@pytest.mark.parametrize(
    "more",
    [{"metric": metrics.HOST_RSS_PEAK}, {"gate": False}, {"family": Family(name="u", cases=10)}],
)
def test_another_metric_gate_or_family_is_another_line(more):
    rows = [a_loss("t.1", 1.2, family=OF_TEN), a_loss("t.2", **{"family": OF_TEN, **more})]

    assert len(table_rows.group_families(findings(*rows))) == 2


def test_what_failed_and_what_is_missing_keeps_its_name_beside_its_family():
    gone = an_uncompared("t.9", Verdict.FAILED, code="missing")

    line = first_line(*some_losses(2), gone)

    assert "t (2 of 10 cases" in line
    assert "missing: t.9" in line


@pytest.mark.parametrize("code", ["untrusted", "worse_by_history"])
def test_no_range_is_told_of_cases_whose_change_is_another_one(code):
    rows = [
        a_change(f"t.{n}", Verdict.INCONCLUSIVE, code=code, drift=1.2, family=OF_TEN) for n in "ab"
    ]

    assert table_rows.describe_cases(findings(*rows)) == "2 of 10 cases"


def test_the_worst_case_stands_in_the_table_and_every_one_in_the_fold():
    text = markdown.render(shapes.families())

    assert cut_folds(text).count("test_rgb_to_xyz.") == 1
    assert "26-float32` step time (stands for 27 of 27 cases, +120 to +478 %) |" in text
    for size in range(27):
        assert re.search(rf"test_rgb_to_xyz\.{size}-float32`.*→.*\+\d+\s% \[", text)


def test_a_terminal_names_every_case_with_its_change():
    text = terminal.render(shapes.families(), width=120, color=False)

    shown = re.sub(r"\s+", " ", text)
    assert "test_color.test_rgb_to_xyz: 26-float32 +478 %, 25-float32 +464 %" in shown
    assert shown.count("-float32 +") == 27
    assert "matmul: size=512 +30.0 %, size=256 +20.0 %" in shown


def test_a_family_of_500_fits_into_a_comment_and_says_what_it_leaves_out():
    family = Family(name="t", cases=500)
    text = markdown.render(a_comparison(*some_losses(500, family=family)))

    assert len(text.encode()) <= markdown.COMMENT_BYTES
    assert "`t` (500 of 500 cases, +10.0 to +5,000 %)" in text.partition("\n")[0]
    assert "of 500 rows" in text


def test_foreign_names_are_escaped_wherever_a_family_stands():
    family = Family(name="t", cases=2)
    comparison = a_comparison(*(a_loss(f"t.<b>{n}", 1.1, family=family) for n in "xy"))

    assert "<b>" not in re.sub("`[^`]*`", "", markdown.render(comparison))
    assert "<b>" not in html.comparison(comparison)


def test_json_has_every_row_with_its_family():
    comparison = shapes.families()

    assert codec.decode(codec.encode(comparison), Comparison, name="x") == comparison
