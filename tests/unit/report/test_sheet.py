"""The findings of a comparison: made once, and read by every part of a report."""

import sys

import pytest

from ci_perf.model import comparison as judged
from ci_perf.report import html, markdown, page, terminal
from tests.unit.report import shapes

FORMS = {
    "markdown": markdown.render,
    "cut": lambda comparison: markdown.render(comparison, max_bytes=2_000),
    "terminal": lambda comparison: terminal.render(comparison, width=100, color=False),
    "html": html.comparison,
    "page": page.render,
}


def count_calls(function, action):
    calls = 0

    def see(frame, event, _):
        nonlocal calls
        calls += event == "call" and frame.f_code is function.__code__

    sys.setprofile(see)
    try:
        action()
    finally:
        sys.setprofile(None)
    return calls


@pytest.mark.parametrize("shape", shapes.ALL, ids=lambda shape: shape.__name__)
@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_a_report_asks_each_row_once_how_bad_it_is(form, shape):
    comparison = shape()

    calls = count_calls(judged.severity_of, lambda: form(comparison))

    assert calls == len(comparison.rows)
