"""What is said beside a comparison: changed baselines, lines to copy."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_perf.report import accept_help, headline, markdown, tables
from ci_perf.report.accept_help import AcceptHint
from ci_perf.report.escape import Sentence
from ci_perf.report.sentences import say
from ci_perf.report.sheet import make_sheet
from tests import headlines
from tests.unit.report import shapes
from tests.unit.report.rendered import Page

HINT = AcceptHint(pull=7, run=42, artifact="ci-perf", baselines="baselines", sha="a" * 40)
MLP = "baselines/m/smoke/mlp.json"
HOSTILE = st.text(max_size=60) | st.sampled_from(
    ["@octo/team", "<!-- ci-perf:v1 key=x -->", "</details>", "`|`\n# x", "#1", "$(id)", "\u202e"]
)


def note_edits(*paths, own=(), is_judged_by_base=True):
    files = [(Sentence(path),) for path in paths]
    return say("edited_baselines", paths=files, own=own, is_judged_by_base=is_judged_by_base)


@pytest.mark.parametrize(
    ("note", "said"),
    [
        (note_edits(MLP, is_judged_by_base=False), "uses the baselines of the job that measured"),
        (note_edits(MLP, "b.json"), f"changes 2 baselines (`{MLP}`, `b.json`): a reviewer"),
        (
            note_edits(MLP, own=headline.summarise(make_sheet(shapes.unchanged()))),
            f"its own it would be: {headlines.PASS}",
        ),
    ],
    ids=["by the job that measured", "two", "by its own"],
)
def test_edited_baselines_are_named_with_what_they_would_say(note, said):
    assert said in tables.join_markdown([note])


def test_the_lines_to_copy_name_what_is_not_usual():
    hint = AcceptHint(pull=7, run=42, artifact="of a matrix", baselines="perf/base lines")

    assert accept_help.commands(hint).replace(" --", "\n--").splitlines() == [
        "gh pr checkout 7",
        "ci-perf accept",
        "--run 42",
        "--artifact 'of a matrix'",
        "--baselines 'perf/base lines'",
        '--reason "…"',
        "git add 'perf/base lines' && git commit -m 'Accept new baselines' && git push",
    ]


def test_a_comment_is_offered_only_for_a_commit_that_could_be_accepted_so():
    without = AcceptHint(pull=7, run=42, artifact="x", baselines="b")
    with_commit, unknown = (tables.join_markdown([accept_help.fold(h)]) for h in (HINT, without))

    assert f"/ci-perf accept {'a' * 40} " in with_commit
    assert "/ci-perf" not in unknown


@given(HOSTILE)
def test_no_foreign_text_leaves_its_code_span(text):
    hint = AcceptHint(pull=7, run=42, artifact=text, baselines=text, sha=text)
    end: list[tables.Block] = [
        accept_help.fold(hint),
        say("refused", login="octocat", reason=Sentence(text)),
    ]
    page = Page(markdown.render(shapes.unchanged(), notes=[note_edits(text)], end=end))

    assert page.open == []
    assert "@" not in page.prose
    assert "<!--" not in page.prose
    assert not {"a", "img", "h1"} & set(page.tags)


def test_what_stands_at_the_end_is_left_out_before_the_report_is():
    fold, shape = accept_help.fold(HINT), shapes.regressed()
    least = len(markdown.render(shape).encode())
    cut = markdown.render(shape, max_bytes=least, end=[fold])

    assert tables.join_markdown([fold]) in markdown.render(shape, end=[fold])
    assert len(cut.encode()) <= least
    assert "<summary>Environment: " in cut
