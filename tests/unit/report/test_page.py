"""A comparison as a page: every row stands there as it was judged; nothing foreign is obeyed."""

import base64
import hashlib
import itertools
import re

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ci_perf.errors import InvalidFileError, UsageError
from ci_perf.judging import summarise
from ci_perf.model import codec, metrics
from ci_perf.model.comparison import Comparison, Interval, Verdict
from ci_perf.report import page
from ci_perf.report.page import launches, scales
from tests.comparisons import a_change, a_comparison, a_numerics
from tests.histories import a_pair, in_turns
from tests.runs import a_measured, a_run
from tests.unit.report import colour_blindness, page_shapes, rendered, shapes_of_profiles

STEP_TIME = "step_time_s"


def test_what_a_report_folds_of_epochs_parts_and_gpus_stands_on_the_page():
    text = page.render(shapes_of_profiles.profiled())

    rendered.Elements(text)
    text = text.replace("\N{NO-BREAK SPACE}", " ")
    for said in ("Time of an epoch:", "2.46k → 3.12k images/s", "Parts of a step:", "5,274 steps"):
        assert said in text


def drawn(axis, row):
    picture = axis.draw(row)
    assert picture is not None
    return picture


def rendered_with_run(shape):
    comparison, run, base = shape()
    return comparison, page.render(comparison, run=run, base=base)


@pytest.mark.parametrize("shape", page_shapes.ALL, ids=lambda shape: shape.__name__)
def test_a_page_has_no_script_and_no_address_and_its_style_has_the_hash_that_it_allows(shape):
    _, text = rendered_with_run(shape)
    elements = rendered.Elements(text)

    assert elements.open == []
    assert "\u202e" not in text
    for tag, attributes in elements.seen:
        assert tag not in {"script", "img", "iframe", "a", "link", "object", "form"}
        assert not {"style", "src", "onload", "onerror"} & attributes.keys()
        assert attributes.get("href", "#").startswith("#")
    style = text.partition("<style>")[2].partition("</style>")[0]
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert f"style-src &#39;sha256-{digest}&#39;" in text or f"'sha256-{digest}'" in text


def test_the_page_of_a_run_shows_every_launch_and_who_came_first():
    comparison, run, base = page_shapes.with_a_run()

    drawn = launches.collect(run, base)["mlp", "step_time_s"]

    assert (len(drawn.sessions), len(drawn.head), len(drawn.pairs)) == (1, 3, 6)
    assert drawn.count == 3 + 3 + 12
    assert [first for _, _, first in drawn.pairs] == ["base", "head"] * 3
    text = page.render(comparison, run=run, base=base)
    assert "18 launches, in their order" in text


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


def test_the_left_mark_of_a_pair_was_launched_first():
    in_turns = launches.Launches(pairs=((0.010, 0.012, "base"), (0.010, 0.012, "head")))

    picture = launches.draw(in_turns, STEP_TIME)

    assert picture is not None
    shapes_from_left = [mark.shape for mark in sorted(picture.marks, key=lambda mark: mark.x)]
    assert shapes_from_left == ["base", "head", "head", "base"]


def test_a_run_of_another_comparison_is_refused():
    with pytest.raises(UsageError, match="found run another; name the"):
        page.render(a_comparison(a_change()), run=a_run(a_measured("mlp", 1.0), id="another"))


def test_a_command_for_many_workloads_stands_there_whole():
    names = [f"{'w' * 190}{index:010}" for index in range(3)]

    text = page.render(
        a_comparison(*(a_change(name, Verdict.REGRESSED, ratio=2) for name in names))
    )

    words = re.sub(r"<[^>]*>", "", text)
    _, _, command = words.partition("ci-perf accept run.json ")
    assert re.findall("--workload (w+[0-9]+)", command) == names


def test_launches_are_drawn_only_where_both_sides_have_some():
    comparison, run, base = page_shapes.with_a_run()
    every = launches.collect(run, base)["mlp", STEP_TIME]
    head, sessions = {"head": every.head}, {"sessions": every.sessions}

    are_drawn = [
        launches.draw(launches.Launches(**sides), STEP_TIME) is not None
        for sides in (head, sessions, head | sessions, {"pairs": every.pairs})
    ]

    assert are_drawn == [False, False, True, True]
    without = page.render(comparison, base=base)
    assert "in their order" not in without
    assert "in their order" in page.render(comparison, run=run, base=base)


def test_a_row_without_a_ratio_has_no_mark_unless_it_moved():
    still, grown = (
        a_change("mlp", metric=metrics.GRAPH_BREAKS, base=0, head=head, limit=0.0)
        for head in (0, 2)
    )
    axis = scales.make_axis([still, grown])

    assert drawn(axis, still).marks == ()
    assert [mark.shape for mark in drawn(axis, grown).marks] == ["beyond-right"]
    assert "0 → 2" in page.render(a_comparison(grown)).replace("\N{NO-BREAK SPACE}", " ")


def test_a_note_of_10000_characters_is_cut_and_a_name_of_as_many_is_refused():
    text = page.render(a_comparison(a_change("mlp", Verdict.REGRESSED, note="n" * 10_000)))
    named = codec.encode(a_comparison(a_change("w" * 10_000)))

    assert "n" * 499 + "…" in text
    assert "n" * 501 not in text
    with pytest.raises(InvalidFileError):
        codec.decode(named, Comparison, name="comparison.json")


def test_colours_differ_for_the_two_common_kinds_of_colour_blindness():
    light, dark = (dict(re.findall(r"--(\w+):(#\w+)", scheme)) for scheme in _schemes())

    for colours in (light, light | dark):
        for first, second in itertools.combinations(("worse", "better", "open", "same"), 2):
            for kind in colour_blindness.KINDS:
                assert colour_blindness.distance(colours[first], colours[second], kind) > 20
        for first, second in itertools.combinations(("limit", "gain", "calm"), 2):
            for kind in colour_blindness.KINDS:
                assert colour_blindness.distance(colours[first], colours[second], kind) > 5


def _schemes():
    style = page.render(a_comparison()).partition("<style>")[2].partition("</style>")[0]
    return re.findall(r":root\{(.*?)\}", style)


def test_without_a_run_the_page_says_what_it_lacks():
    assert "made without the run" in page.render(a_comparison(a_change()))


def test_a_change_beyond_the_axis_is_an_arrow_and_keeps_its_number():
    row = a_change("mlp", Verdict.REGRESSED, ratio=40.0, interval=None)
    axis = scales.make_axis([row])

    assert drawn(axis, row).marks[0].shape == "beyond-right"
    assert "+3,900 %" in page.render(a_comparison(row))


@pytest.mark.parametrize(("high", "is_drawn"), [(1.3, True), (6.5, True), (7.5, False)])
def test_an_interval_is_drawn_whole_or_not_at_all(high, is_drawn):
    row = a_change("mlp", ratio=1.1, interval=Interval(low=0.9, high=high))
    axis = scales.make_axis([row, a_change("other")])

    assert (axis.draw(row) is not None) is is_drawn
    assert not is_drawn or axis.place(high - 1) < 98


def test_a_row_without_an_interval_is_a_mark_alone():
    picture = drawn(scales.make_axis([]), a_change("mlp", interval=None))

    assert [line.kind for line in picture.lines] == ["axis"]
    assert len(picture.marks) == 1


numbers = st.floats(1e-9, 1e9)
# As far as a file of a run may go: `Amount`.
amounts = st.floats(0, 1e19)


@settings(max_examples=100, derandomize=True, deadline=None)
@given(numbers, numbers, st.floats(0, 5))
def test_what_is_drawn_is_what_decided(low, width, limit):
    """The whole bar lies on ground of a loss where the interval lies beyond half the limit."""
    row = a_change("mlp", ratio=low + width / 2, limit=limit)
    row = msgspec.structs.replace(row, interval=Interval(low=low, high=low + width))
    axis = scales.make_axis([row])

    picture = axis.draw(row)
    if picture is None:
        assert low + width - 1 > axis.end
        return
    bar = next(line for line in picture.lines if line.kind == "interval")

    assert bar.x1 == axis.place(low - 1)
    assert bar.x2 == axis.place(low + width - 1)
    bands = picture.bands
    for band in bands:
        assert 0 <= band.x <= band.x + band.width <= 100.01
    for band in (each for each in bands if each.kind == "limit"):
        assert band.x == axis.place(limit / 2)
        if low - 1 > limit / 2:
            assert bar.x1 >= band.x


@settings(max_examples=60, derandomize=True, deadline=None)
@given(st.lists(st.floats(0.01, 100), max_size=5), st.floats(0, 5))
def test_a_larger_change_lies_further_right_and_the_numbers_of_the_axis_apart(ratios, limit):
    axis = scales.make_axis([a_change("mlp", ratio=ratio, limit=limit) for ratio in ratios])

    places = [axis.place(change / 50) for change in range(-60, 61)]
    assert places == sorted(places)
    assert axis.place(0) == 50
    ticks = sorted(caption.x for caption in axis.draw_ticks().captions)
    assert all(after - before >= 11.9 for before, after in itertools.pairwise(ticks))


def test_a_change_of_thirty_per_cent_and_a_limit_of_two_are_both_seen():
    axis = scales.make_axis([a_change("mlp", ratio=1.3, limit=0.02)])

    picture = drawn(axis, a_change("mlp", ratio=1.3, limit=0.02))

    assert picture.marks[0].shape == "head"
    assert axis.place(0.02) - axis.place(0) > 5


@settings(max_examples=60, derandomize=True, deadline=None)
@given(st.lists(st.lists(amounts, max_size=4).map(tuple), max_size=4), st.data())
def test_any_numbers_are_drawn_within_the_picture(sessions, data):
    head = data.draw(st.lists(amounts, max_size=5).map(tuple))

    picture = launches.draw(launches.Launches(sessions=tuple(sessions), head=head), STEP_TIME)

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

    for name in names:
        run = in_turns(run, [a_pair(1.0 + at / 1e3, 1.0) for at in range(18)], workload=name)
    base = summarise.run(run, label="baselines")
    sessions = [
        msgspec.structs.replace(subject, sessions=subject.sessions * 12)
        for subject in base.subjects
    ]
    base = msgspec.structs.replace(base, subjects=tuple(sessions))

    assert len(page.render(comparison, run=run, base=base).encode()) < 600_000
