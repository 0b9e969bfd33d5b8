"""What is said beside a comparison: changed baselines, lines to copy, answers to a comment."""

from hypothesis import given
from hypothesis import strategies as st

from ci_perf.report import accept_help, publication
from ci_perf.report.accept_help import Accepted, AcceptHint
from ci_perf.report.escape import Markdown
from ci_perf.report.publication import Extras, Origin
from tests.unit.report import shapes
from tests.unit.report.rendered import Page

WAY = AcceptHint(pull=7, run=42, artifact="ci-perf", baselines="baselines", sha="a" * 40)
MLP = "baselines/m/smoke/mlp.json"
ORIGIN = Origin(url="https://github.com/octo/model/actions/runs/42", attempt=1, is_fork=False)
HOSTILE = st.text(max_size=60) | st.sampled_from(
    ["@octo/team", "<!-- ci-perf:v1 key=x -->", "</details>", "`|`\n# x", "#1", "$(id)", "\u202e"]
)


def test_where_no_baseline_is_changed_nothing_is_said():
    assert publication.baseline_note([], None, is_judged_by_base=True) == ""


def test_both_verdicts_are_said_where_both_are_known():
    said = publication.baseline_note(
        [MLP, "other.json"], shapes.unchanged(), is_judged_by_base=True
    )

    assert f"changes 2 baselines (`{MLP}`, `other.json`): a reviewer" in said
    assert "with its own it would be: ✅ Pass: no regression." in said


def test_where_the_job_that_measured_has_judged_it_says_so():
    said = publication.baseline_note([MLP], None, is_judged_by_base=False)

    assert "uses the baselines of the job that measured" in said


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
    assert f"/ci-perf accept {'a' * 40} " in accept_help.folded(WAY)
    assert "/ci-perf" not in accept_help.folded(
        AcceptHint(pull=7, run=42, artifact="x", baselines="b")
    )


@given(HOSTILE)
def test_no_foreign_text_leaves_its_code_span(text):
    hint = AcceptHint(pull=7, run=42, artifact=text, baselines=text, sha=text)
    beside = Extras(
        note=publication.baseline_note([text], None, is_judged_by_base=True),
        folded=Markdown(accept_help.folded(hint)),
    )
    page = Page(publication.whole(shapes.unchanged(), ORIGIN, max_bytes=60_000, extras=beside))
    answer = Page(publication.reply_refused("octocat", text, hint))

    assert page.open == answer.open == []
    assert "@" not in page.prose + answer.prose
    assert "<!--" not in page.prose + answer.prose
    assert set(answer.tags) <= {"p", "code", "pre"}


def test_what_stands_beside_is_left_out_before_the_report_is():
    folded = accept_help.folded(WAY)
    beside = Extras(
        note=publication.baseline_note([MLP], None, is_judged_by_base=True),
        folded=folded,
    )
    whole = publication.whole(shapes.regressed(), ORIGIN, max_bytes=60_000, extras=beside)
    least = len(publication.whole(shapes.regressed(), ORIGIN, max_bytes=60_000).encode())
    cut = publication.whole(shapes.regressed(), ORIGIN, max_bytes=least, extras=beside)

    assert folded in whole
    assert folded not in cut or len(cut.encode()) <= least
    assert len(cut.encode()) <= least


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
    assert publication.reply_refused("octocat", "no", None) == (
        "Not accepted for `octocat`: `no`.\n"
    )
