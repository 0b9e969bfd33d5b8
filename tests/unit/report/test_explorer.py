"""A history to explore: the library's scripts are known by their hashes, names are text."""

import json
import re

import msgspec
import pytest

from ci_perf.report.page import explorer
from tests.branch_histories import a_branch_history, a_line, a_workload_history, steps
from tests.unit.report import history_shapes

pytest.importorskip("bokeh")


def document(page):
    """What bokeh draws, as JSON."""
    (text,) = re.findall(r'<script type="application/json"[^>]*>(.*?)</script>', page, re.DOTALL)
    return json.loads(text)


def test_each_script_is_allowed_by_its_hash_and_nothing_else_is():
    page = explorer.render(history_shapes.two_machines()[0])

    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', page)
    scripts = re.findall(r"<script(?![^>]*json)", page)
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert policy.count("sha256-") == len(scripts)
    assert "unsafe-eval" not in policy
    assert not re.search(r"<script[^>]* src=", page)


def test_each_workload_and_machine_is_a_line_of_each_metric_that_moved():
    page = explorer.render(history_shapes.two_machines()[0])

    text = json.dumps(document(page))
    assert text.count("change since the first session") == 3
    assert text.count("embed_images, smoke, nvidia-h200") == 2 * 3


def test_two_sessions_of_one_commit_are_two_points():
    (history, _) = history_shapes.two_machines()
    (workload, *_) = history.workloads
    sessions = tuple(msgspec.structs.replace(each, commit=0) for each in workload.sessions)
    of_one_commit = msgspec.structs.replace(workload, sessions=sessions)
    (line, *_) = explorer._lines([of_one_commit], "step_time_s")

    assert len(line.changes) == len(sessions)
    assert line.changes[0] == (0, 0.0)


def test_hostile_names_are_cleaned():
    page = explorer.render(history_shapes.hostile_names()[0])

    assert "</script><img" not in page
    assert "\u202e" not in page


def test_a_history_where_nothing_moved_is_an_empty_page():
    still = a_branch_history(a_workload_history([1.0], [1.0], lines=[a_line()]))

    moved = a_branch_history(a_workload_history(*steps(5, moved_at=(3,))))

    assert "change since" not in explorer.render(still)
    assert "change since" in explorer.render(moved)
