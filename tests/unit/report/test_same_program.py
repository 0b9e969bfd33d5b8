import pytest

from ci_perf.model.comparison import Verdict
from ci_perf.model.program import TouchedWorkloads
from ci_perf.report import markdown, same_program, tables, terminal
from tests import headlines
from tests.comparisons import a_change, a_comparison, an_uncompared
from tests.programs import a_same_program, a_touched


def a_row(workload="bert", **more):
    same = a_same_program(workload, **more)
    verdict = Verdict.UNCHANGED if same.is_proven else Verdict.INCONCLUSIVE
    code = "same_program" if same.is_proven else "unproven_program"
    return an_uncompared(workload, verdict, code=code, same=same)


@pytest.mark.parametrize(
    ("files", "words"), [(1, "1 file is the same"), (8, "8 files are the same")]
)
def test_the_remark_counts_what_is_the_same(files, words):
    assert same_program.render_remark(a_same_program(files=files)) == f"not launched: {words}"


def test_the_report_explains_it_once_in_two_sentences_and_counts_the_workloads():
    comparison = a_comparison(a_row("bert"), a_row("gpt"), a_change("mlp"))

    text = markdown.render(comparison)

    assert "Same program: 2 of 3 workloads were not launched, because every file" in text
    assert text.count("Same program:") == 1
    assert "✅ 3 unchanged" in text
    assert "not launched: 33 files are the same" in text
    assert headlines.PASS in text


def test_where_no_machine_was_asked_the_oldest_session_that_is_believed_is_named():
    old, new = "2026-12-01T03:11:17Z", "2026-12-02T03:11:17Z"
    comparison = a_comparison(a_row("bert", believed=new), a_row("gpt", believed=old))

    text = markdown.render(comparison)

    assert "no machine was asked" in text
    assert f"as in its session of {old}." in text
    assert "so are the settings" in text
    assert "no machine was asked" not in markdown.render(a_comparison(a_row()))


def test_a_report_without_such_rows_says_nothing_of_it():
    assert "Same program" not in markdown.render(a_comparison(a_change("mlp")))


def test_why_others_were_measured_is_told_beside_the_pairs():
    comparison = a_comparison(
        a_row("bert"), a_change("gpt"), touched=(a_touched("gpt"), a_touched("mlp", code="asked"))
    )

    for text in (
        markdown.render(comparison),
        terminal.render(comparison, width=100, color=False),
    ):
        words = " ".join(text.replace("`", "").split())
        assert "was measured: src/net.py differs" in words
        assert words.count("was measured") == 1


def test_what_nobody_proves_is_told_with_its_remedy():
    text = markdown.render(a_comparison(a_row(is_proven=False)))

    assert "the base branch has no record that proves it: measure it with `--all`" in text


def test_the_table_for_planning_has_what_is_measured_first():
    workloads = TouchedWorkloads(
        suite="smoke",
        base="b" * 40,
        same=(a_same_program("bert"),),
        touched=(a_touched("gpt"), a_touched("mlp", "not_recorded", "nobody has recorded it")),
    )

    text = tables.markdown(same_program.build_touched_page(workloads))

    assert text.startswith("**2 of 3 workloads of `smoke` would be measured against `bbbbbbbbbbbb`")
    lines = [line for line in text.splitlines() if line.startswith("| `")]
    assert [line.split("|")[1:3] for line in lines] == [
        [" `gpt` ", " measured "],
        [" `mlp` ", " not recorded "],
        [" `bert` ", " same program "],
    ]
    assert "Not recorded: `ci-perf check --against bbbbbbbbbbbb` records it" in text


def test_the_explanation_of_a_loss_begins_with_the_file_that_differs_though_nothing_was_profiled():
    slower = a_change("gpt", verdict=Verdict.REGRESSED)
    comparison = a_comparison(slower, a_change("mlp"), touched=(a_touched("gpt"), a_touched("mlp")))

    text = markdown.render(comparison)

    why = text.split("What the head does differently")[1].split("</details>")[0]
    assert "gpt runs other code: src/net.py differs" in why.replace("`", "").replace("*", "")
    assert "mlp" not in why


def test_a_report_without_a_row_that_moved_explains_no_difference():
    text = markdown.render(a_comparison(a_change("gpt"), touched=(a_touched("gpt"),)))

    assert "runs other code" not in text
