import json
import re

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ci_perf.model import metrics
from ci_perf.model import validity as validities
from ci_perf.model.comparison import Drifted, Verdict
from ci_perf.model.run import Source
from ci_perf.report import markdown
from tests.comparisons import (
    a_change,
    a_comparison,
    a_numerics,
    an_interleaved,
    an_uncompared,
)
from tests.runs import a_reason
from tests.unit.report import shapes, shapes_in_turns
from tests.unit.report.rendered import Page, as_html


def headline(comparison):
    return markdown.render(comparison).splitlines()[0]


@settings(max_examples=50)
@given(st.text(min_size=1, max_size=60))
def test_foreign_text_never_leaves_its_code_span(text):
    comparison = a_comparison(
        an_uncompared(text, Verdict.FAILED, text, output=text, parameters={text: text}),
        an_uncompared(text, Verdict.MISSING, text, metric=text),
        a_change(text, Verdict.REGRESSED, ratio=1.1, item_unit=text),
        a_change(text, Verdict.UNCONFIRMED, note=text),
        a_change(text, Verdict.INCONCLUSIVE, code="base_failed", note=text),
        a_change(text, code="not_confirmed", drift=1.1),
        drifted=(Drifted(workload=text, metric=text, ratio=1.1, sessions=6, since=text),),
        interleaved=an_interleaved(
            ref=text, source=Source(commit=text, branch=text, dirty=True), notes=(text,)
        ),
    )
    known, page = Page(markdown.render(shapes.regressed())), Page(markdown.render(comparison))

    assert set(page.tags) <= set(known.tags)
    assert page.open == []
    assert set(page.rows) <= {3, 9}


def test_hostile_names_make_no_link_mention_or_image():
    report = markdown.render(shapes.hostile())
    page = Page(report)

    assert not {"a", "img"} & set(page.tags)
    assert "octocat" not in page.prose
    assert "evil.example" not in page.prose
    assert not re.search("[\u202e\u200b]", as_html(report))


def test_a_failed_workload_is_visible_beside_a_regression():
    comparison = a_comparison(
        an_uncompared("conv", Verdict.FAILED), a_change(verdict=Verdict.REGRESSED, ratio=1.1)
    )

    assert "1 workload failed · 1 regression (" in headline(comparison)


def test_a_missing_workload_is_visible_beside_a_regression():
    comparison = a_comparison(
        an_uncompared("conv", Verdict.MISSING), a_change(verdict=Verdict.REGRESSED, ratio=1.1)
    )

    assert headline(comparison).startswith("### ❌ ci_perf: 1 regression · 1 workload missing (")


def test_a_metric_without_a_gate_warns_and_does_not_blame():
    comparison = a_comparison(
        a_change(verdict=Verdict.REGRESSED, ratio=1.4, gate=False),
        a_change("other"),
        verdict=Verdict.UNCHANGED,
    )

    assert headline(comparison).startswith(
        "### ✅ ci_perf: no regression · 1 warning · 1 unchanged"
    )
    assert "⚠️ | `mlp`" in markdown.render(comparison)


def test_the_headline_never_blames_for_rows_without_a_gate():
    row = a_change(verdict=Verdict.REGRESSED, ratio=1.4, gate=False)

    assert headline(a_comparison(row)).startswith("### ⚠️ ci_perf: 1 warning (")


def test_the_headline_counts_workloads_and_metrics():
    comparison = a_comparison(
        a_change("mlp"), a_change("mlp", metric=metrics.FIRST_STEP), a_change("bert")
    )

    assert headline(comparison).endswith("(`standard` on `NVIDIA H200`, 2 workloads, 3 metrics)")


def test_a_part_of_the_suite_is_said_to_be_a_part():
    assert "1 selected workload," in headline(a_comparison(a_change(), selection=("mlp",)))


def test_rows_stand_worst_first_and_the_unchanged_closest_to_their_limit():
    comparison = a_comparison(
        a_change("far", ratio=1.001),
        a_change("near", ratio=0.96),
        a_change("better", Verdict.IMPROVED, ratio=0.8),
        a_change("bad", Verdict.REGRESSED, ratio=1.1),
        a_change("worse", Verdict.REGRESSED, ratio=1.5),
        a_change("free", Verdict.REGRESSED, ratio=3.0, gate=False),
    )
    report = markdown.render(comparison)

    assert re.findall(r"^\| [^\w ]+ \| `(\w+)`", report, re.MULTILINE) == [
        "worse",
        "bad",
        "free",
        "better",
        "near",
        "far",
    ]


def test_a_suspected_loss_stands_before_a_suspected_gain_and_what_nobody_knows():
    report = markdown.render(shapes_in_turns.unconfirmed())

    rows = re.findall(r"^\| (🔎|❓) \| `(\w+)`", report, re.MULTILINE)
    assert [name for _, name in rows] == ["resnet18", "bert", "attention", "loader"]
    assert report.startswith("### 🔎 ci_perf: 3 unconfirmed · 1 inconclusive")


def test_a_row_says_how_many_launches_decided_and_what_could_be_seen():
    report = markdown.render(shapes_in_turns.who_moved()).replace("\N{NO-BREAK SPACE}", " ")

    assert "| 1 %<br>detects 2.4 % | 6 pairs | regressed: confirmed by 6 pairs |" in report
    assert "| 4 pairs | confirmed by 4 pairs: less than 2 % apart |" in report
    assert "| 15 v 3 | less than 2 % from its history |" in report


def test_an_exact_limit_is_what_can_be_seen():
    row = a_change(verdict=Verdict.REGRESSED, metric=metrics.PEAK_ALLOCATED, ratio=1.1)

    assert "detects" not in markdown.render(a_comparison(row)).split("<details>")[0]


def test_who_moved_is_said_above_the_folds():
    before = markdown.render(shapes_in_turns.stale()).split("<details>")[0]

    assert "`conv.batch=16` step time (+4.4 %)" in before
    assert "Main itself has drifted away from its baseline" in before


def test_a_fold_says_what_was_launched_in_turns():
    report = markdown.render(shapes_in_turns.undecided_pairs())
    fold = report[report.index("<summary>Environment") :]

    line = (
        "Base `a1b2c3d` (merge base of `main`) and head launched in turns: 57 pairs in 20 min 3 s "
        "of 20 min, 8 suspects; stopped when the budget was spent."
    )
    assert line in fold
    assert "- `gpt: setup of the base took 31 s`" in fold


def test_a_base_with_a_workload_file_of_its_own_is_marked():
    report = markdown.render(shapes_in_turns.new_machine())

    assert "confirmed by 6 pairs; the base ran its own workload file" in report


def test_a_moved_machine_does_not_mislead_launches_in_turns():
    before = markdown.render(shapes.canary_moved_and_paired()).split("| | Workload")[0]

    assert "what base and head show when they are launched in turns decides" in before
    assert "not judged" not in before


def test_nothing_unchanged_is_outside_a_fold():
    before_folds = markdown.render(shapes.regressed()).split("<details>")[0]

    assert "mlp_512" not in before_folds


def test_each_finding_comes_with_its_command():
    report = markdown.render(shapes.regressed())

    for command in (
        'ci-perf accept run.json --workload bert --workload resnet18 --reason "…"',
        "git rm baselines/nvidia-h200/standard/vit.json",
        "step_time_s = { margin = 0.12 }",
        "ci-perf accept run.json --workload llama",
    ):
        assert f"`{command}`" in report


def test_a_name_in_a_command_cannot_start_another_one():
    row = a_change("x; rm -rf ~", Verdict.REGRESSED, ratio=1.1)

    assert "--workload 'x; rm -rf ~' --reason" in markdown.render(a_comparison(row))


def test_a_workload_missing_against_a_run_has_no_baseline_to_delete():
    comparison = shapes.missing()
    base = msgspec.structs.replace(comparison.base, label="base/run.json")

    assert "git rm" not in markdown.render(msgspec.structs.replace(comparison, base=base))


def test_a_baseline_of_zero_shows_a_difference_instead_of_a_percentage():
    row = a_change(
        verdict=Verdict.REGRESSED, metric=metrics.GRAPH_BREAKS, base=0, head=2, limit=0.0
    )

    assert "| graph breaks | 0 | 2 | **+2** | exact |" in markdown.render(a_comparison(row))


def test_a_metric_of_a_newer_version_is_shown_as_it_is():
    row = msgspec.structs.replace(a_change(base=3, ratio=1.0), metric="watts")

    assert "| `watts` | 3 | 3 |" in markdown.render(a_comparison(row))


@pytest.mark.parametrize("shape", shapes.ALL, ids=lambda shape: shape.__name__)
def test_programs_find_the_verdict_and_every_row(shape):
    comparison = shape()
    blocks = re.findall(r"`{3,}json\n(.*?)\n`{3,}", markdown.render(comparison), re.DOTALL)
    found = json.loads(blocks[-1])

    assert found["schema"] == "ci-perf/report/1"
    assert (found["verdict"], found["exit_code"]) == (
        comparison.verdict.value,
        comparison.exit_code,
    )
    assert len(found["rows"]) == len(comparison.rows)


@pytest.mark.parametrize("verdict", [Verdict.UNCHANGED, Verdict.REGRESSED, Verdict.FAILED])
def test_a_thousand_workloads_still_fit_into_a_comment(verdict):
    names = [f"workload_with_a_rather_long_name.batch={i}" for i in range(1_000)]
    rows = [a_change(name, verdict, ratio=1.1) for name in names]
    if verdict is Verdict.FAILED:
        rows = [an_uncompared(name, verdict, "r" * 300, output="line\n" * 2_000) for name in names]
    report = markdown.render(a_comparison(*rows))

    assert len(report.encode()) <= markdown.COMMENT_BYTES
    assert "1,000 workloads" in report.splitlines()[0]
    assert " of 1,000 " in report
    assert Page(report).open == []


def test_what_is_folded_makes_room_for_what_is_not():
    regressed = [a_change(f"bad{i}", Verdict.REGRESSED, ratio=1.1) for i in range(50)]
    report = markdown.render(a_comparison(*regressed, *(a_change(f"w{i}") for i in range(900))))

    assert len(report.encode()) <= markdown.COMMENT_BYTES
    assert all(f"`bad{i}` |" in report for i in range(50))
    assert " of 900 rows shown" in report


def test_a_larger_budget_shows_more():
    rows = [a_change(f"w{i}") for i in range(500)]

    assert "w499" in markdown.render(a_comparison(*rows), max_bytes=2**20)


def test_the_headline_names_changed_numerics_before_an_improvement():
    assert headline(shapes.numerics_changed()).startswith(
        "### 🔢 ci_perf: 1 workload with changed numerics · 1 improvement"
    )


def test_numerics_without_a_gate_do_not_hide_that_the_job_failed():
    comparison = a_comparison(a_numerics(), a_change(verdict=Verdict.REGRESSED, ratio=1.1))

    assert headline(comparison).startswith(
        "### ❌ ci_perf: 1 workload with changed numerics · 1 regression"
    )


def test_the_row_of_numerics_stands_first_and_shows_the_first_loss_that_differs():
    report = markdown.render(shapes.numerics_gated())
    rows = re.findall(r"^\| ([^\w ]+) \| `(\w+)`", report, re.MULTILINE)

    assert rows[:3] == [("🔢", "bert"), ("🔢", "attention"), ("❌", "attention")]
    row = "| numerics<br>loss of step 2 | 2.29541 | 2.31837 | **up"
    assert row in report.replace("\N{NO-BREAK SPACE}", " ")


def test_one_invalid_workload_is_named_and_the_run_is_not_condemned():
    report = markdown.render(shapes.partly_invalid())

    assert report.startswith("### ❌ ci_perf: 1 regression · 1 invalid")
    assert "- `clocks_held_down` (`bert`): `for 3.1 of 5.0 s by heat`" in report
    assert "This run cannot be trusted" not in report


def test_a_machine_that_moved_is_said_before_the_table():
    before = markdown.render(shapes.canary_moved()).split("| | Workload")[0]

    assert "The machine moved" in before
    assert "matmul took 8.4 % more time" in before


def test_more_reasons_than_can_be_read_are_counted():
    reasons = tuple(a_reason(f"code_{i}") for i in range(7))
    report = markdown.render(a_comparison(validity=validities.of(reasons)))

    assert report.count("- `code_") == 5
    assert "… and 2 more" in report


def test_a_reason_that_many_workloads_met_is_one_line_that_names_them():
    reasons = tuple(a_reason(workload=f"w{i}") for i in range(8))
    report = markdown.render(a_comparison(validity=validities.of(reasons)))

    line = (
        "- `clocks_held_down` (`w0`): `nothing left`; also `w1`, `w2`, `w3`, `w4`, `w5` and 2 more"
    )
    assert line in report


def test_a_workload_that_ran_out_of_memory_says_how_much_there_was_and_what_to_do():
    report = markdown.render(shapes.out_of_memory())

    assert "use a smaller batch" in report.split("<details>")[0]
    assert "At the peak until then: 3.00 GiB of host memory, 138 GiB allocated" in report


def test_programs_find_how_far_the_numerics_are_apart():
    report = markdown.render(a_comparison(a_numerics()))

    assert '"metric": "numerics", "verdict": "numerics_changed"' in report
    assert '"difference": 0.0099, "limit": 0.001' in report


def test_a_share_that_was_zero_has_a_difference_in_points_and_no_percentage():
    row = a_change(
        verdict=Verdict.REGRESSED, metric=metrics.DATA_WAIT, base=0.0, head=0.3, limit=0.0
    )

    report = markdown.render(a_comparison(row)).replace("\N{NO-BREAK SPACE}", " ")
    assert "| 0 % | 30.0 % | **+30.0 points** | \N{EN DASH} |" in report
