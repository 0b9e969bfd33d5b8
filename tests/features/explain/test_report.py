"""What stands below the table of a row that moved."""

import msgspec
import pytest

from ci_perf.features.explain import report
from ci_perf.model import metrics
from ci_perf.model.comparison import Verdict
from ci_perf.model.explanation import Explanation
from ci_perf.report import markdown
from ci_perf.report.phrases import plain
from ci_perf.report.tables import Table
from tests.comparisons import a_change, a_comparison
from tests.step_profiles import a_cause, a_function

NEW = a_cause("new", "Net.forward", ("new", "aten::sin", 0, 8))


def explained(explanation, **row):
    """The title with what follows it, the rows of the table, and the note."""
    row = {"verdict": Verdict.REGRESSED, "ratio": 1.081} | row
    first, *below = report.explain_rows([a_change("bert", explanation=explanation, **row)])
    rows = [line for block in below if isinstance(block, Table) for line in block.rows]
    (note,) = [block for block in below if isinstance(block, tuple)] or [()]
    assert isinstance(first, tuple)
    return plain(first), rows, plain(note)


def said(*causes, **more):
    return explained(Explanation(causes=causes, **more))[0]


def cells(cause):
    """Where, what, and the numbers of both sides."""
    _, (line,), _ = explained(Explanation(causes=(cause,)))
    return [plain(cell) for cell in line][1:]


def test_the_title_names_a_metric_that_is_neither_step_time_nor_memory():
    title, _, _ = explained(Explanation(), metric=metrics.STEP_CPU)

    assert title.startswith("Why bert, CPU time of a step, has moved by +8.1 %: ")


def test_a_difference_is_called_the_only_one_where_it_is():
    assert "the only thing that a step does differently" in said(NEW)
    assert "the only thing" not in said(NEW, NEW)
    assert "the only thing" not in said(NEW, others=(NEW,))
    assert "the only thing" not in said(NEW, varying=1)


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


@pytest.mark.parametrize(
    ("cause", "what", "numbers"),
    [
        (
            a_cause("slower", "f", ("slower", "my::scale", 6, 6), calls=(6, 6)),
            "same work, slower: my::scale",
            "6 → 6",
        ),
        (
            a_cause("slower", calls=(1, 1)),
            "as many calls, and the function itself takes longer",
            "1 → 1",
        ),
        (
            a_cause("calls", "f", ("new", "json.dumps", 0, 2), calls=(0, 1)),
            "calls it; the base does not; new: json.dumps",
            "0 → 1",
        ),
    ],
)
def test_every_other_kind_has_words_and_numbers(cause, what, numbers):
    assert cells(cause)[1:] == [what, numbers]


def test_changes_that_take_no_time_are_no_cause():
    assert said(others=(NEW,)).endswith("explains a change in this direction.")


def test_a_cause_says_pass_and_side_and_counts_operators_that_are_not_named():
    where, what, _ = cells(msgspec.structs.replace(NEW, is_backward=True, in_head=False, further=1))

    assert where == "Net.forward src/net.py:12, backward, in the base"
    assert what == "new: aten::sin; 1 more differs"


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
