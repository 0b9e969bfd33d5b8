"""A comparison as a page: every row stands there as it was judged; nothing foreign is obeyed."""

import base64
import hashlib
import re
from html.parser import HTMLParser

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ci_perf.errors import UsageError
from ci_perf.judging import summarise
from ci_perf.model.comparison import Interval, Verdict, severity_of
from ci_perf.report import page, table_rows
from ci_perf.report.page import launches, pictures, scales
from tests.comparisons import a_change, a_comparison, a_numerics
from tests.runs import a_measured, a_run
from tests.unit.report import page_shapes, shapes

STEP_TIME = "step_time_s"
VOID = {"meta", "use", "line", "rect", "circle", "path", "br"}


class Elements(HTMLParser):
    """The elements of a page, and that each is closed."""

    def __init__(self, text):
        super().__init__()
        self.open, self.seen, self.verdicts = [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open[-2:] == ["p", "b"] and self.seen[-2] == ("p", {"class": "verdict"}):
            self.verdicts.append(data.partition(" ")[2])


def rendered(shape):
    comparison, run, base = shape()
    return comparison, page.render(comparison, run=run, base=base)


@pytest.mark.parametrize("shape", page_shapes.ALL, ids=lambda shape: shape.__name__)
def test_every_row_stands_on_the_page_with_its_verdict_the_worst_first(shape):
    comparison, text = rendered(shape)

    said = Elements(text).verdicts
    expected = [severity_of(row).value for row in table_rows.worst_first(comparison.rows)]
    folded = {"unchanged", "not gating"}
    assert said == [
        *(verdict for verdict in expected if verdict not in folded),
        *(verdict for verdict in expected if verdict in folded),
    ]


@pytest.mark.parametrize("shape", page_shapes.ALL, ids=lambda shape: shape.__name__)
def test_a_page_has_no_script_and_no_address_and_its_style_has_the_hash_that_it_allows(shape):
    _, text = rendered(shape)

    for tag, attributes in Elements(text).seen:
        assert tag not in {"script", "img", "iframe", "a", "link", "object", "form"}
        assert not {"style", "src", "onload", "onerror"} & attributes.keys()
        assert attributes.get("href", "#").startswith("#")
    style = text.partition("<style>")[2].partition("</style>")[0]
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert f"style-src &#39;sha256-{digest}&#39;" in text or f"'sha256-{digest}'" in text


def test_hostile_names_are_text():
    text = page.render(shapes.hostile())

    assert "<img" not in text
    assert "\u202e" not in text


def test_the_page_of_a_run_shows_every_launch_and_who_came_first():
    comparison, run, base = page_shapes.with_a_run()

    drawn = launches.of(run, base)["mlp", "step_time_s"]

    assert (len(drawn.sessions), len(drawn.head), len(drawn.pairs)) == (1, 3, 6)
    assert drawn.count == 3 + 3 + 12
    assert [first for _, _, first in drawn.pairs] == ["base", "head"] * 3
    text = page.render(comparison, run=run, base=base)
    assert "18 launches, in their order" in text
    for words in ("SM clock", "power", "Canaries", "2 losses of base and head"):
        assert words in text


def test_what_is_not_drawn_is_counted():
    comparison, run, _ = page_shapes.with_a_run()
    base = summarise.run(run, label="baselines")
    (subject, *others) = base.subjects
    many = msgspec.structs.replace(subject, sessions=subject.sessions * 20)

    text = page.render(
        comparison, run=run, base=msgspec.structs.replace(base, subjects=(many, *others))
    )

    assert "51 launches, in their order; 24 more are not drawn" in text


@pytest.mark.parametrize(("gate", "tone"), [(True, 'class="worse"'), (False, 'class="same"')])
def test_only_what_fails_a_job_makes_the_page_red(gate, tone):
    text = page.render(a_comparison(a_numerics(gate=gate), a_change()))

    assert f"<header {tone}>" in text
    assert ('<article class="worse">' in text) is gate


def test_the_left_mark_of_a_pair_was_launched_first():
    in_turns = launches.Launches(pairs=((0.010, 0.012, "base"), (0.010, 0.012, "head")))

    picture = launches.picture(in_turns, STEP_TIME)

    assert picture is not None
    shapes_from_left = [mark.shape for mark in sorted(picture.marks, key=lambda mark: mark.x)]
    assert shapes_from_left == ["base", "head", "head", "base"]


def test_a_run_of_another_comparison_is_refused():
    with pytest.raises(UsageError, match="found run another; name the"):
        page.render(a_comparison(a_change()), run=a_run(a_measured("mlp", 1.0), id="another"))


def test_without_a_run_the_page_says_what_it_lacks():
    assert "made without the run" in page.render(a_comparison(a_change()))


def test_a_change_beyond_the_axis_is_an_arrow_and_keeps_its_number():
    row = a_change("mlp", Verdict.REGRESSED, ratio=40.0)
    axis = scales.of([row])

    assert axis.picture(row).marks[0].shape == "beyond-right"
    assert "+3,900 %" in page.render(a_comparison(row))


def test_a_row_without_an_interval_is_a_mark_alone():
    picture = scales.of([]).picture(a_change("mlp", interval=None))

    assert [line.kind for line in picture.lines] == ["axis"]
    assert len(picture.marks) == 1


numbers = st.floats(1e-9, 1e9)
# As far as a file of a run may go: `Amount`.
amounts = st.floats(0, 1e19)


@settings(max_examples=100, derandomize=True, deadline=None)
@given(numbers, numbers, st.floats(0, 5), st.floats(0, 5))
def test_what_is_drawn_is_what_decided(low, width, limit, margin):
    """The interval reaches into the limit's ground exactly where its number does."""
    row = a_change("mlp", ratio=low + width / 2, limit=limit, margin=margin)
    row = msgspec.structs.replace(row, interval=Interval(low=low, high=low + width))
    axis = scales.of([row])
    scale = pictures.Scale(-axis.end, axis.end, 2.0, 98.0)

    bar = next(line for line in axis.picture(row).lines if line.kind == "interval")

    assert bar.x1 == scale.place(low - 1)
    assert bar.x2 == scale.place(low + width - 1)
    for band in axis.picture(row).bands:
        assert 0 <= band.x <= band.x + band.width <= 100.01


@settings(max_examples=60, derandomize=True, deadline=None)
@given(st.lists(st.lists(amounts, max_size=4).map(tuple), max_size=4), st.data())
def test_any_numbers_are_drawn_within_the_picture(sessions, data):
    head = data.draw(st.lists(amounts, max_size=5).map(tuple))

    picture = launches.picture(launches.Launches(sessions=tuple(sessions), head=head), STEP_TIME)

    if picture is not None:
        for mark in picture.marks:
            assert 0 <= mark.x <= 100
            assert 0 <= mark.y <= picture.height
        assert not re.search("nan|inf", " ".join(caption.text for caption in picture.captions))


def test_thirty_workloads_by_three_metrics_with_all_their_launches_stay_below_600_kb():
    comparison, _, _ = page_shapes.thirty_workloads()
    names = {row.workload for row in comparison.rows}
    run = a_run(*(a_measured(name, *[1.0] * 10) for name in names))
    comparison = msgspec.structs.replace(
        comparison, head=msgspec.structs.replace(comparison.head, run=run.id)
    )

    assert len(page.render(comparison, run=run)) < 600_000
