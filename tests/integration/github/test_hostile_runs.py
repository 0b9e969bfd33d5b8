"""Runs that somebody made up: what the model lets through is judged and shown, never obeyed."""

from collections import Counter
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ci_perf.errors import InvalidFileError
from ci_perf.gate import compare
from ci_perf.model import codec
from ci_perf.model.run import Run
from ci_perf.model.validity import Status
from ci_perf.pull_request import fetch, reports
from ci_perf.report import markdown
from tests.accepting import accepted
from tests.histories import a_pair, in_turns
from tests.runs import STEADY, a_failed, a_measured, a_reason, a_run, an_environment
from tests.unit.report.rendered import Page

EXAMPLES = 60
LOUD = [
    "@octo/team",
    "<!-- ci-perf:v1 key=smoke -->",
    "::error::x\n::stop-commands::y",
    "##[add-mask]x",
    "</details><img src=x onerror=y>",
    "| a | b |\n|---|---|\n`` ` ``",
    "[x](https://evil.example) #1 octo/model#2 GH-3",
    "\u202e\u200b\x1b[31m\x00",
]
TEXT = st.sampled_from(LOUD) | st.text(max_size=80)
SECONDS = st.sampled_from([1e-12, 1e-9, 1e-3, 1.0, 1e9]) | st.floats(1e-12, 1e9)


@st.composite
def runs(draw):
    """Whatever a job could have uploaded that has our types."""
    text = [draw(TEXT) for _ in range(9)]
    made = a_run(
        a_measured("mlp", *(draw(SECONDS) for _ in range(3)), parameters={"n": text[0]}),
        a_failed("cnn", text[1], output=text[2]),
        commit=text[3],
        environment=an_environment(torch=text[4], driver=text[5]),
        selection=(text[6],),
    )
    reason = msgspec.structs.replace(a_reason(status=Status.DEGRADED), detail=text[7])
    validity = msgspec.structs.replace(made.validity, status=Status.DEGRADED, reasons=(reason,))
    made = msgspec.structs.replace(made, validity=validity)
    if draw(st.booleans()):
        found = [a_pair(draw(SECONDS), draw(SECONDS)) for _ in range(draw(st.integers(1, 5)))]
        made = in_turns(made, found, workload="mlp", trouble=text[8])
    return made


@pytest.fixture(scope="module")
def baselines(tmp_path_factory):
    folder = tmp_path_factory.mktemp("base")
    accepted(folder, a_run(a_measured("mlp", *STEADY)))
    return folder


def test_whatever_a_run_says_is_judged_and_shown_or_refused(baselines):
    outcomes = Counter()

    @settings(max_examples=EXAMPLES, deadline=None)
    @given(run=runs())
    def check(run):
        shown = judged(run, baselines)
        outcomes["shown" if shown else "refused"] += 1
        if shown:
            check_page(Page(markdown.render(shown)))

    check()
    # Numbers that no machine gives are refused. If most runs were, this test would show nothing.
    assert outcomes["shown"] >= EXAMPLES // 2, outcomes


def judged(run, baselines):
    """Judge a run as the second stage does; `None` where it refuses the run."""
    rules = compare.rules(Path("nowhere"), "smoke", notify=lambda _: None)
    label = "workflow run 42"
    try:
        read = codec.decode(codec.encode(run).encode(), Run, name="artifact")
        with fetch.refuse_odd_numbers(label):
            comparison = compare.against_baselines(read, baselines, label=label, rules=rules)
        return reports.make_report(comparison, label).comparison
    except InvalidFileError:
        return None


def check_page(page):
    assert page.open == []
    assert "img" not in page.tags
    assert "a" not in page.tags
    assert not {"@octo", "<!--", "octo/model#2"} & set(page.prose.split())
    assert "\u202e" not in page.prose
