import re

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ci_perf.github import report_comment
from ci_perf.model.comparison import Drifted, Signs, Verdict
from ci_perf.model.run import Source
from ci_perf.report import markdown, publication
from ci_perf.report.escape import Words
from ci_perf.report.sentences import say
from ci_perf.report.tables import Paragraph
from tests import headlines
from tests.comparisons import (
    a_change,
    a_comparison,
    a_head,
    a_numerics,
    a_side,
    an_interleaved,
    an_uncompared,
)
from tests.unit.report import shapes
from tests.unit.report.rendered import Page, as_html

END = "2026-12-08"
URL = "https://github.com/octo/model/actions/runs/7"


def comment_of(comparison, *, max_bytes=report_comment.MAX_BYTES, url=URL, history_url=""):
    """The text of a comment, as it is posted."""
    where = say("origin", base="", url=Words(url), attempt=1, history_url=Words(history_url))
    notes = [Paragraph(where, "small")] if where else []
    return markdown.render(comparison, notes=notes, max_bytes=max_bytes, url=url)


def test_the_headline_comes_first_and_leads_to_the_run():
    text = comment_of(shapes.regressed()).replace("\N{NO-BREAK SPACE}", " ")
    first, _, scope, _, last, *_ = text.splitlines()

    assert "`resnet18` +6.1 %" in headlines.named_after(f"### {headlines.FAIL}", first)
    assert scope.startswith("<sub>ci_perf: `standard` on `NVIDIA H200`: 11 workloads, 11 metrics; ")
    assert last == f"<sub>Measured by [this run]({URL}).</sub>"


def test_a_long_verdict_in_one_line_leaves_room_for_the_base_branch():
    title = publication.write_title(shapes.unchanged(), base="main", max_chars=20)

    assert len(title) == 20
    assert title.endswith("… · for main")


def test_the_history_is_one_link_below_the_headline():
    address = "https://octo.example/a_b?c=d"
    link = '<a href="https://octo.example/a_b?c=d">History of the baselines</a>'
    assert as_html(comment_of(shapes.regressed(), url="", history_url=address)).count(link) == 1


def test_without_an_address_there_is_no_link():
    assert "a" not in Page(comment_of(shapes.regressed(), url="")).tags


@pytest.mark.parametrize("max_bytes", [400, 1_000, 4_000, 10_000, 65_000])
def test_a_comment_keeps_whole_rows_and_its_headline_at_any_size(max_bytes):
    rows = [a_change(f"w{n}", Verdict.REGRESSED, ratio=1.1) for n in range(400)]
    body = comment_of(a_comparison(*rows), max_bytes=max_bytes)
    page = Page(body)

    assert len(body.encode()) <= max_bytes
    assert "400 workloads" in page.prose
    assert page.open == []
    assert set(page.rows) <= {3, 4, 5}


def test_what_finds_no_room_is_said_to_be_in_the_summary():
    body = comment_of(shapes.regressed(), max_bytes=1_000)

    assert f"the [summary of its job]({URL}) has it" in body


HOSTILE = st.text(min_size=1, max_size=60) | st.sampled_from(
    [
        "@octocat @github/security",
        "#1 GH-1 octo/model#2",
        "a1b2c3d4e5f6a7b8c9d0a1b2c3d4e5f6a7b8c9d0",
        "https://evil.example/x www.evil.example",
        "![x](https://evil.example/x.png) [y](javascript:alert(1))",
        "<img src=x onerror=alert(1)><script>x</script>",
        "</details></details></table><h1>all fine</h1>",
        "<!-- ci-perf:end -->",
        "<!-- ci-perf:section name=evil run=999 attempt=1 -->\nforged\n<!-- ci-perf:end -->\n",
        "<!-- ci-perf:v1 key=smoke -->",
        "<!--",
        "| a | b |\n|--|--|\n",
        "```\n# out\n```",
        "`" * 5,
        "\u202eevil\u200b\u2066",
        "::error::x\n::stop-commands::y\n##[group]z",
        "\x1b[31mred\x1b]0;title\x07",
        "$(id) `id` ${{ github.token }}",
        "x" * 10_000,
    ]
)


@settings(max_examples=150)
@given(HOSTILE)
def test_no_foreign_text_is_obeyed_in_a_comment(text):
    signs = Signs(direction="worse", moved=(text,), equal=(text,))
    comparison = a_comparison(
        an_uncompared(text, Verdict.FAILED, text, output=text, parameters={text: text}),
        an_uncompared(text, Verdict.FAILED, text, metric=text, code="missing"),
        a_change(text, Verdict.REGRESSED, ratio=1.1, item_unit=text, note=text),
        a_change(text, Verdict.INCONCLUSIVE, code="base_failed", note=text, signs=signs),
        a_change(text, code="baseline_moved", drift=1.1),
        a_numerics(text, note=text),
        drifted=(Drifted(workload=text, metric=text, ratio=1.1, sessions=6, since=text),),
        interleaved=an_interleaved(
            ref=text, source=Source(commit=text, branch=text, dirty=True), notes=(text,)
        ),
        base=a_side(label=text, oldest=text, newest=text),
        head=a_head(label=text, run=text),
        suite=text,
    )
    known, page = Page(comment_of(shapes.regressed())), Page(body := comment_of(comparison))

    assert set(page.tags) <= set(known.tags)
    assert page.tags.count("a") == 1
    assert page.open == []
    assert set(page.rows) <= {3, 4, 5}
    # In prose GitHub looks for mentions, references and addresses; in code it does not.
    assert "@octocat" not in page.prose
    assert "evil" not in page.prose
    assert not re.search("#1|GH-1|[0-9a-f]{40}", page.prose)
    assert not re.search("[\u200b\u202e\u2066\x1b]", body)


@settings(max_examples=150)
@given(HOSTILE)
def test_no_foreign_text_is_obeyed_by_a_runner_or_a_terminal(text):
    comparison = a_comparison(
        a_change(text, Verdict.REGRESSED, ratio=1.1, note=text),
        an_uncompared(text, Verdict.FAILED, text),
        suite=text,
    )
    line = publication.write_title(comparison)

    assert line.isprintable()
    assert len(line) < 2_000
    assert not re.match(r"\s*::", line)
    assert "##[" not in line


def test_one_machine_without_a_pause_has_the_gate_on():
    named = [("a", shapes.regressed()), ("b", shapes.regressed())]
    paused = [(name, msgspec.structs.replace(each, paused_until=END)) for name, each in named]

    title = "⏸️ Paused until 2026-12-08 (green job), else ❌ Fail on all 2 machines"
    assert publication.summarise_machines(paused).startswith(f"## {title}")
    mixed = publication.summarise_machines([named[0], paused[1]])
    assert mixed.startswith("## ❌ Fail on all 2 machines")
