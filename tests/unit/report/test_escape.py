import string

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ci_perf.report import escape
from tests.unit.report.rendered import Page

NASTY = st.one_of(
    st.text(max_size=100),
    st.text(alphabet="`|\\<>&@#!-[]()*_~ \n\t\u202e\u200bahw:/.1", max_size=40),
)


@given(NASTY)
@example("a|b`c\\")
@example("\\|")
@example("``")
@example("`")
@example("@octocat #1 <img src=x> https://x.y </td>")
@example("<!-- ci-perf -->")
def test_a_foreign_string_in_a_table_is_one_code_span_and_nothing_else(text):
    page = Page(f"| a | b |\n|---|---|\n| {escape.code(text)} | 1 |\n")

    shown = escape.clean(text)
    assert page.rows == [2, 2]
    assert set(page.tags) <= {"table", "thead", "tbody", "tr", "th", "td", "code"}
    assert page.code == ([shown] if shown else [])
    assert page.prose.split() == ["a", "b", "1"]


@given(NASTY.filter(lambda text: "|" not in text))
@example("a_b*c*d")
def test_a_foreign_string_in_a_sentence_is_one_code_span_and_nothing_else(text):
    page = Page(f"- before {escape.code(text)} after")

    shown = escape.clean(text)
    assert set(page.tags) <= {"ul", "li", "code"}
    assert page.code == ([shown] if shown else [])
    assert page.prose.split() == ["before", "after"]


@given(NASTY)
@example("</summary></details><img src=x>")
def test_a_foreign_string_in_a_summary_is_one_code_element_and_nothing_else(text):
    page = Page(f"<details><summary>{escape.html_code(text)} x</summary>\n\ny\n\n</details>")

    assert page.tags == ["details", "summary", "code", "p"]
    assert page.code == [escape.clean(text)]
    assert page.prose.split() == ["x", "y"]


@given(st.one_of(NASTY, st.text(alphabet="`~\n ab", max_size=80)))
@example("```\n</details>\n@octocat")
@example("~~~\n`````")
def test_nothing_in_a_fence_can_close_it(text):
    page = Page(f"{escape.fence(escape.tail(text), info='text')}\n\nafter")

    assert page.tags == ["pre", "code", "p"]
    assert page.code == [escape.tail(text) + "\n"]
    assert page.prose.split() == ["after"]


@given(NASTY)
def test_cleaned_text_is_short_printable_and_stays_as_it_is(text):
    shown = escape.clean(text)

    assert len(shown) <= escape.MAX_CHARS
    assert shown.replace(" ", "").isprintable() or not shown
    assert escape.clean(shown) == shown


@pytest.mark.parametrize(
    "hidden", ["\x00", "\x1b[31m", "\u202e", "\u2066", "\u200b", "\ufeff", "\u2028", "\ud800"]
)
def test_what_cannot_be_seen_is_gone(hidden):
    assert hidden[0] not in escape.clean(f"a{hidden}b")
    assert hidden[0] not in escape.tail(f"a{hidden}b")


@pytest.mark.parametrize(
    "filler",
    [*"\u034f\u115f\u1160\u17b4\u2800\u3164\ufe0f\uffa0", "\U000e0100", "\U0001d159"],
)
def test_a_character_that_prints_as_nothing_is_gone(filler):
    for shown in (escape.clean, escape.visible, escape.tail):
        assert shown(f"a{filler}b") == "ab"
    assert escape.code(filler) == ""


def test_a_letter_carries_at_most_two_marks():
    tall = "a" + "\u0301" * 60 + "b\u0302\u0323"

    for shown in (escape.clean, escape.visible, escape.tail):
        assert shown(tall) == "a\u0301\u0301b\u0302\u0323"


def test_fillers_between_marks_do_not_start_the_count_again():
    assert escape.clean("a\u0301\u0301\u034f\u0301") == "a\u0301\u0301"


def test_a_command_is_shown_whole():
    command = escape.Command("ci-perf accept " + "x" * 200)

    assert escape.command(command) == f"`{command}`"


def test_only_the_last_lines_are_kept_and_the_others_counted():
    lines = escape.tail("\n".join(map(str, range(1_000)))).splitlines()

    assert lines[0] == "… 970 earlier lines"
    assert lines[-1] == "999"
    assert len(lines) == 1 + escape.MAX_FENCED_LINES


@given(st.text(alphabet=string.ascii_letters + "é漢😀\n", min_size=1, max_size=100))
def test_output_never_exceeds_its_bytes(text):
    kept = escape.tail(text * (4_000 // len(text))).encode()

    assert len(kept) <= escape.MAX_FENCED_BYTES + len("… 9999 earlier lines\n".encode()) + 3


@pytest.mark.parametrize("text", ["::error::x", "a ::add-mask::x", ":::x", "##[add-mask]x"])
def test_no_line_is_a_command_to_the_runner(text):
    for shown in (escape.clean(text), escape.tail(text)):
        assert not shown.startswith("::")
        assert " ::" not in shown
        assert "##[" not in shown


def test_a_text_that_just_fits_is_shown_whole_and_one_character_more_is_cut():
    assert escape.clean("x" * escape.MAX_CHARS) == "x" * escape.MAX_CHARS
    assert escape.clean("x" * (escape.MAX_CHARS + 1)) == "x" * (escape.MAX_CHARS - 1) + "…"
    text = "first\n" + "x" * (escape.MAX_FENCED_BYTES - len("first\n\n"))
    assert escape.tail(text) == text
    assert escape.tail(text + "x").startswith("… 1 earlier lines\nxxx")


def test_a_tab_is_four_columns_wide():
    assert escape.visible("a\tb") == "a   b"


def test_of_one_line_that_is_too_long_the_end_is_shown():
    shown = escape.tail("short\n" + "x" * 10_000 + "the end")

    assert shown.startswith("… 1 earlier lines\n…xxx")
    assert shown.endswith("xxxthe end")
    assert len(shown.encode()) < escape.MAX_FENCED_BYTES + 50


def test_of_a_crash_the_innermost_calls_are_shown_and_no_list_of_modules():
    calls = [f'  File "a.py", line {number} in call_{number}' for number in range(99)]
    crash = ["Fatal Python error: Aborted", "", "Current thread (most recent call first):", *calls]
    text = "\n".join(["begun"] * 99 + crash + ["", "Extension modules: numpy.a, numpy.b"])

    for shown in (escape.tail(text), "\n".join(escape.quote_lines(text))):
        assert "Fatal Python error: Aborted" in shown
        assert "in call_0\n" in shown
        assert "in call_98" not in shown
        assert "Extension modules" not in shown


def test_of_a_long_traceback_the_frames_of_the_user_are_shown():
    def frame(path):
        return [f'  File "{path}", line 1, in forward', "    return torch.matmul(x, y)", "    ^^^^"]

    packages = [line for _ in range(20) for line in frame("/v/site-packages/torch/nn/modules.py")]
    lines = ["Traceback (most recent call last):", *frame("/v/ci_perf/measuring/worker.py")]
    lines += [*frame("model.py"), *packages, "RuntimeError: shapes", "  of several lines"]

    (*shown,) = escape.quote_lines("\n".join(lines))

    assert [line.removeprefix("  | ") for line in shown] == [
        "Traceback (most recent call last):",
        *frame("model.py"),
        "RuntimeError: shapes",
        "  of several lines",
    ]
