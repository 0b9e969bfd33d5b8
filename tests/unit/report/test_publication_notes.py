"""What is said beside a comparison: changed baselines, lines to copy, answers to a comment."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_perf.report import accept_help, publication, tables
from ci_perf.report.accept_help import Accepted, AcceptHint
from ci_perf.report.publication import Extras, Origin
from tests.unit.report import shapes
from tests.unit.report.rendered import Page

HINT = AcceptHint(pull=7, run=42, artifact="ci-perf", baselines="baselines", sha="a" * 40)
MLP = "baselines/m/smoke/mlp.json"
ORIGIN = Origin(url="https://github.com/octo/model/actions/runs/42", attempt=1, is_fork=False)
HOSTILE = st.text(max_size=60) | st.sampled_from(
    ["@octo/team", "<!-- ci-perf:v1 key=x -->", "</details>", "`|`\n# x", "#1", "$(id)", "\u202e"]
)


@pytest.mark.parametrize(
    ("paths", "own", "is_judged_by_base", "said"),
    [
        ([], None, True, ""),
        ([MLP], None, False, "uses the baselines of the job that measured"),
        ([MLP, "b.json"], None, True, f"changes 2 baselines (`{MLP}`, `b.json`): a reviewer"),
        ([MLP], shapes.unchanged(), True, "its own it would be: ✅ Pass: no regression."),
    ],
    ids=["none", "by the job that measured", "two", "by its own"],
)
def test_edited_baselines_are_named_with_what_they_would_say(paths, own, is_judged_by_base, said):
    notes = publication.note_edited_baselines(paths, own, is_judged_by_base=is_judged_by_base)

    assert bool(notes) is bool(paths)
    assert said in tables.join_markdown(notes)


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


def whole(comparison, max_bytes, *, end=()):
    notes = publication.note_edited_baselines([MLP], None, is_judged_by_base=True)
    extras = Extras(notes=notes, end=end)
    return publication.render_whole(comparison, ORIGIN, max_bytes=max_bytes, extras=extras)


@given(HOSTILE)
def test_no_foreign_text_leaves_its_code_span(text):
    hint = AcceptHint(pull=7, run=42, artifact=text, baselines=text, sha=text)
    extras = Extras(
        notes=publication.note_edited_baselines([text], None, is_judged_by_base=True),
        end=[accept_help.fold(hint)],
    )
    page = Page(
        publication.render_whole(shapes.unchanged(), ORIGIN, max_bytes=60_000, extras=extras)
    )
    answer = Page(publication.refuse("octocat", text, hint))

    assert page.open == answer.open == []
    assert "@" not in page.prose + answer.prose
    assert "<!--" not in page.prose + answer.prose
    assert set(answer.tags) <= {"p", "code", "pre"}


def test_what_stands_at_the_end_is_left_out_before_the_report_is():
    fold = accept_help.fold(HINT)
    least = len(whole(shapes.regressed(), 60_000).encode())
    cut = whole(shapes.regressed(), least, end=[fold])

    assert tables.join_markdown([fold]) in whole(shapes.regressed(), 60_000, end=[fold])
    assert len(cut.encode()) <= least
    assert "<summary>Environment: " in cut


def test_an_answer_says_what_was_committed():
    one = Accepted(
        action="moved on",
        path="baselines/m/smoke/mlp.json",
        before={"step_time_s": 1e-3},
        after={"step_time_s": 2e-3},
        began=("step_time_s",),
        changed_numerics=False,
    )
    page = Page(publication.reply_accepted("octocat", "b" * 40, [one]))

    assert "moved on  baselines/m/smoke/mlp.json" in page.code[2]
    assert "bbbbbbbbbbbb" in page.code[1]
    assert "GitHub starts no workflow" in page.prose


def test_a_refusal_without_another_way_ends_with_the_reason():
    assert publication.refuse("octocat", "no", None) == ("Not accepted for `octocat`: `no`.\n")
