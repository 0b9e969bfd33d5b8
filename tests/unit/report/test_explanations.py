"""What stands below the table of a row that moved."""

import msgspec
import pytest

from ci_perf.model import metrics
from ci_perf.model.comparison import Verdict
from ci_perf.model.explanation import Explanation
from ci_perf.report import explanations, markdown
from ci_perf.report.phrases import plain
from tests.comparisons import a_change, a_comparison
from tests.counts import a_cause, a_function

NEW = a_cause("new", "Net.forward", ("new", "aten::sin", 0, 8))


def explained(explanation, **row):
    row = {"verdict": Verdict.REGRESSED, "ratio": 1.081} | row
    (shown,) = explanations.of([a_change("bert", explanation=explanation, **row)])
    return shown


def said(*causes, **more):
    shown = explained(Explanation(causes=causes, **more))
    return plain((*shown.title, *shown.rest))


def cells(cause):
    (line,) = explained(Explanation(causes=(cause,))).lines
    return [plain(cell) for cell in line]


@pytest.mark.parametrize(
    ("row", "title"),
    [
        ({}, "Why bert is 8.1 % slower"),
        ({"ratio": 0.9, "verdict": Verdict.IMPROVED}, "Why bert is 10.0 % faster"),
        ({"metric": metrics.PEAK_ALLOCATED, "base": 1e9}, "Why bert takes 8.1 % more memory"),
        ({"metric": metrics.STEP_CPU}, "Why bert, CPU time of a step, has moved by +8.1 %"),
    ],
)
def test_the_title_asks_why_the_metric_moved(row, title):
    assert plain(explained(Explanation(), **row).title) == title


def test_a_difference_is_called_the_only_one_where_it_is():
    assert "the only thing that a step does differently" in said(NEW)
    assert "the only thing" not in said(NEW, NEW)
    assert "the only thing" not in said(NEW, others=(NEW,))
    assert "the only thing" not in said(NEW, varying=1)


def test_no_sentence_claims_a_cause():
    assert "because" not in said(NEW) + said(NEW, NEW) + said() + said(trouble="x")


def test_equal_steps_leave_time_waiting_and_what_is_not_counted():
    assert "the same operators and functions, equally often" in said()
    assert "in how long they take, in waiting, or in what is not counted" in said()


def test_a_side_without_counts_says_why():
    assert said(trouble="no time was left") == (
        "Why bert is 8.1 % slower is not known: no time was left"
    )


@pytest.mark.parametrize(
    ("calls", "what"),
    [
        ((0, 2), "calls it; the base does not"),
        ((2, 0), "does not call it"),
        ((1, 2), "calls it more often"),
        ((2, 1), "calls it less often"),
    ],
)
def test_a_called_function_is_told_in_words(calls, what):
    numbers = f"{calls[0]} → {calls[1]}"

    assert cells(a_cause("calls", calls=calls)) == ["Net.forward src/net.py:12", what, numbers]


@pytest.mark.parametrize(("further", "said"), [(1, "1 more differs"), (2, "2 more differ")])
def test_operators_that_are_not_named_are_counted(further, said):
    _, what, _ = cells(msgspec.structs.replace(NEW, further=further))

    assert what == f"new: aten::sin; {said}"


def test_where_it_is_says_phase_pass_and_side():
    where, _, _ = cells(msgspec.structs.replace(NEW, phase="data", is_backward=True, in_head=False))

    assert where == "Net.forward src/net.py:12, phase data, backward, in the base"


def test_the_line_is_seen_at_the_end_of_a_long_path():
    place = a_function("f", 1, "deep/" * 60 + "net.py")
    where, _, _ = cells(a_cause("new", "f", ("new", "aten::sin", 0, 8), place=place, line=1234))

    assert where.startswith("f …")
    assert where.endswith("deep/net.py:1234")
    assert len(where) < 90


def test_operators_beyond_every_function_have_words_for_a_place():
    assert cells(a_cause(place=None))[0] == "outside of the repository's functions"


def test_a_row_takes_twelve_lines_at_most_and_ten_rows_are_explained():
    every = Explanation(causes=(NEW,) * 5, others=(NEW,) * 10, further=90, varying=3)
    rows = [a_change(f"w{i}", Verdict.REGRESSED, explanation=every) for i in range(30)]
    text = markdown.render(a_comparison(*rows))
    first, second = (text.index(f"**Why `w{i}`") for i in (0, 1))

    assert text.count("**Why") == 10
    assert text[first:second].count("\n") <= 12


def test_explanations_are_cut_before_a_report_is_too_long():
    long = a_cause(
        "new",
        "f" * 200,
        *((("new", "\N{SNOWMAN}" * 200, 0, 1),) * 4),
        place=a_function("\N{SNOWMAN}" * 200, 1, "\N{SNOWMAN}" * 900),
    )
    rows = [
        a_change(f"w{i}", Verdict.REGRESSED, explanation=Explanation(causes=(long,) * 5))
        for i in range(60)
    ]
    text = markdown.render(a_comparison(*rows))

    assert len(text.encode()) <= markdown.COMMENT_BYTES
    assert 0 < text.count("**Why") < 10
