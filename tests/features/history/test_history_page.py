"""The history of a branch as a page: nothing foreign is obeyed."""

import base64
import hashlib
import html
import itertools
import re

import pytest

from ci_perf.features.history import history_page, level_changes, timelines
from ci_perf.report.page import pictures
from tests.features.history import history_shapes
from tests.features.history.branch_histories import (
    a_change,
    a_line,
    a_workload_history,
    steps,
)


def rendered(shape):
    history = shape()
    return history, history_page.render(history)


def timeline(*sessions, changes=(), dates=None):
    each = a_workload_history(*sessions, lines=[a_line(*changes)])
    return timelines.draw(each, each.metrics[0], dates or ["2026-11-01"] * len(sessions))


@pytest.mark.parametrize("shape", history_shapes.ALL, ids=lambda shape: shape.__name__)
def test_a_page_runs_no_script_and_its_style_is_the_one_that_its_policy_knows(shape):
    _, page = rendered(shape)

    (style,) = re.findall(r"<style>(.*?)</style>", page, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert f"default-src 'none'; style-src 'sha256-{digest}'" in page
    assert "<script" not in page
    assert " style=" not in page
    assert not re.search(r"(?:src|href)=\"(?!#|https://github|\w+\.(?:json|svg)\")", page)


@pytest.mark.parametrize("shape", history_shapes.ALL, ids=lambda shape: shape.__name__)
def test_every_metric_of_every_workload_is_drawn_or_named(shape):
    history, page = rendered(shape)

    lines = [line for each in history.workloads for line in each.metrics]
    still = sum(len(said.split(", ")) for said in re.findall("Never changed: ([^<]*)", page))
    assert page.count('role="img" aria-label') == len(lines) - still


def test_each_change_stands_in_the_table_with_who_accepted_it():
    history, page = rendered(history_shapes.forty_sessions)

    words = html.unescape(re.sub(r"<[^>]+>", " ", page))
    for cause in level_changes.find_causes(history):
        assert f"https://github.com/o/r/commit/{cause.commit.id}" in page
        assert all(
            move.words.replace(" ", "\N{NO-BREAK SPACE}") in words or move.words in words
            for move in cause.moves
        )
    assert "reason 12" in words
    assert "4 changes in the last 90 days, 1 of them accepted by nobody" in words.replace(
        "\N{NO-BREAK SPACE}", " "
    )


def test_hostile_names_are_text():
    _, page = rendered(history_shapes.hostile_names)

    assert "<img" not in page
    assert "\u202e" not in page
    assert "&lt;/script&gt;" in page


def test_without_an_address_no_commit_is_a_link():
    _, page = rendered(history_shapes.two_machines)

    assert "/commit/" not in page


def test_a_removed_file_and_older_changes_are_told():
    _, page = rendered(history_shapes.removed_and_old)

    assert "Its file was removed on" in page
    assert "What moved before: 4" in page
    assert "Nothing moved in the last 90 days" in page.replace("\N{NO-BREAK SPACE}", " ")


def test_places_are_equal_whatever_their_dates():
    dates = ["2020-01-01", "2026-11-01", "2026-11-02"]
    drawn = timeline([1.0], [2.0], [3.0], dates=dates)

    xs = [mark.x for mark in drawn.picture.marks]
    assert xs[1] - xs[0] == pytest.approx(xs[2] - xs[1], abs=0.2)
    assert (drawn.first, drawn.last) == ("2020-01-01", "2026-11-02")


def test_one_session_shows_its_launches():
    drawn = timeline([1.0, 2.0, 1.5])

    assert len(drawn.picture.marks) == 1
    assert (drawn.top, drawn.bottom, drawn.last) == ("2.00 s", "1.00 s", "")


def test_a_session_that_lacks_a_metric_leaves_a_gap():
    drawn = timeline([1.0], [2.0], [{"graph_breaks": 1.0}], [1.0], [2.0])

    (centre,) = [curve for curve in drawn.picture.curves if curve.kind == "centre"]
    assert centre.path.count("M") == 2


def test_a_metric_that_no_session_has_is_not_drawn():
    assert timeline([{"graph_breaks": 1.0}]) is None


def test_older_sessions_than_the_last_500_are_counted():
    drawn = timeline(*steps(560, moved_at=(20, 300)), changes=[a_change(20), a_change(300)])

    assert "60 older ones not drawn" in drawn.words
    assert [line.kind for line in drawn.picture.lines] == ["accepted"]
    assert drawn.picture.lines[0].x1 == pytest.approx(100 * 240 / 500, abs=0.1)
    assert max(len(curve.path) for curve in drawn.picture.curves) < 8_000


def test_words_about_changes_do_not_cover_each_other():
    changes = [a_change(place, accepted=False) for place in range(2, 40, 3)]
    drawn = timeline(*steps(40), changes=changes)

    rows = {}
    for caption in drawn.picture.captions:
        left = caption.x - 21 if caption.anchor == "end" else caption.x
        rows.setdefault(caption.y, []).append(left)
    for lefts in rows.values():
        ordered = sorted(lefts)
        assert all(b - a >= 20.9 for a, b in itertools.pairwise(ordered))


def test_a_curve_is_written_in_whole_steps():
    assert pictures.curve([(0.0, 10.0), (50.0, 4.0), (100.0, 9.4)]) == "M0 10l500-6 500 5"
    assert pictures.curve([(50.0, 4.0)]) == "M500 4h0"
