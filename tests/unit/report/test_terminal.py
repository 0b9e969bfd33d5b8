import re

import pytest
from rich.cells import cell_len

from ci_perf.model.comparison import Verdict
from ci_perf.report import cells, terminal, units
from ci_perf.report.sheet import make_sheet
from tests import headlines
from tests.comparisons import a_change, a_comparison, an_uncompared
from tests.unit.report import shapes, shapes_in_turns, shapes_of_profiles

ESCAPE = "\x1b"


@pytest.mark.parametrize("shape", shapes.THREE, ids=lambda shape: shape.__name__)
def test_a_comparison_can_be_shown_without_colour(shape):
    text = terminal.render(shape(), width=120, color=False)

    assert text.startswith((headlines.FAIL, headlines.NO_ANSWER))
    assert ESCAPE not in text
    assert "ci-perf 0.1.0" in text.splitlines()[-1] + text.splitlines()[-2]


def test_a_terminal_shows_the_same_numbers_as_markdown():
    text = terminal.render(shapes.regressed(), width=200, color=False)

    assert re.search(r"resnet18 +41\.2 → 43\.7 ms +\+6\.1 % \[\+5\.1, \+7\.1\]", text)


def test_epochs_gpus_and_compilation_are_shown_below_the_verdicts():
    text = terminal.render(shapes_of_profiles.profiled(), width=120, color=False)

    assert re.search(r"resnet18\.compile=eager +2\.46k → 3\.12k images/s +20\.3 s → 16\.0 s", text)
    assert re.search(r"GPU-1 +96\.0 % +\N{EN DASH} +31\.0 GiB", text)
    assert "5,274 steps" in text


def test_colour_is_only_there_when_asked_for():
    assert f"{ESCAPE}[1;31m" in terminal.render(shapes.regressed(), width=120, color=True)


def test_foreign_text_is_neither_markup_nor_an_escape_code():
    row = a_change("[red]x[/red]\x1b[2J", Verdict.REGRESSED, ratio=1.1)
    gone = an_uncompared("gone", Verdict.FAILED, "[link=https://x]", code="missing")

    text = terminal.render(a_comparison(row, gone), width=200, color=False)

    assert "[red]x[/red] [2J" in text
    assert "[link=https://x]" in text
    assert ESCAPE not in text


@pytest.mark.parametrize("width", [20, 41, 60, 80])
@pytest.mark.parametrize("color", [False, True])
def test_no_printed_line_is_a_command_to_the_runner(width, color):
    name = "aaaaaaaa::error::" * 5
    rows = (an_uncompared(name, Verdict.FAILED, "::add-mask::x", output="::stop-commands::x"),)
    text = terminal.render(a_comparison(*rows), width=width, color=color)

    plain = re.sub(rf"{ESCAPE}\[[0-9;]*m", "", text)
    assert not [line for line in plain.splitlines() if line.lstrip().startswith("::")]


@pytest.mark.parametrize("width", [60, 80, 100])
def test_a_narrow_terminal_cuts_no_name_of_a_workload(width):
    names = [f"infer_network.batch={n}" for n in (16, 1024)]
    rows = [a_change(name, Verdict.REGRESSED, ratio=1.9) for name in names]

    text = terminal.render(a_comparison(*rows), width=width, color=False)

    table = text.split('"…"', 1)[1]
    assert "…" not in table
    assert {"16", "1024"} <= set(re.findall("[0-9]+", table))


@pytest.mark.parametrize(("width", "is_shown"), [(40, False), (80, True), (160, True)])
def test_a_terminal_has_a_column_of_evidence_where_there_is_room(width, is_shown):
    text = terminal.render(shapes_in_turns.who_moved(), width=width, color=False)

    assert ("Workload " in text) is is_shown
    assert "6 pairs" in text


def test_a_terminal_says_who_moved_and_what_was_launched_in_turns():
    text = " ".join(terminal.render(shapes_in_turns.stale(), width=200, color=False).split())

    assert "Different from the history, but not from the base launched in the same job" in text
    assert "The main branch has drifted away" in text
    assert "Base a1b2c3d (merge base of main) and head launched alternately: 81 pairs" in text


@pytest.mark.parametrize("width", [30, 60, 72, 80, 90, 100, 119, 120, 141, 160])
@pytest.mark.parametrize(
    "shape", [shapes.regressed, shapes_in_turns.who_moved, shapes.machine_moved]
)
def test_no_number_is_cut_whatever_the_width(shape, width):
    comparison = shape()
    lines = terminal.render(comparison, width=width, color=False).splitlines()
    shown = " ".join(" ".join(lines).split())

    assert max(map(cell_len, lines)) <= width
    for finding in make_sheet(comparison).findings:
        if finding.is_quiet:
            continue
        words = cells.describe(finding.row)
        # A cell may go on in a second line, but only between its words.
        for word in f"{words.values} {words.change} {words.limit}".split():
            assert word in shown or word == units.NOTHING


def test_with_little_room_an_interval_stands_in_a_second_line():
    lines = terminal.render(shapes.regressed(), width=80, color=False).splitlines()

    (second,) = (number for number, line in enumerate(lines) if "first step" in line)
    assert lines[second - 1].split()[-6:] == ["+90.0", "%", "65", "%", "9", "pairs"]
    assert lines[second].split() == ["first", "step", "[+89.0,", "+91.0]"]


def test_where_no_table_has_room_every_row_is_a_sentence():
    text = " ".join(terminal.render(shapes.regressed(), width=50, color=False).split())

    assert (
        "❌ resnet18, step time: Base → head 41.2 → 43.7 ms, Change +6.1 % [+5.1, +7.1], "
        "Limit 2 %, Evidence 9 pairs" in text
    )
