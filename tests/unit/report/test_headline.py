"""The first two lines: pass, act or unknown, what and how much; then counts."""

import msgspec
import pytest

from ci_perf.model import metrics
from ci_perf.model.comparison import Interval, Signs, Verdict
from ci_perf.model.process import NO_RESULT_IN_TIME
from ci_perf.model.validity import Status, validity_of
from ci_perf.report import headline, remarks
from tests.comparisons import a_change, a_comparison, an_uncompared
from tests.runs import a_reason
from tests.unit.report import shapes

EQUAL = Signs(direction="equal", equal=("operators",))
BUSY = validity_of((a_reason("host_pressure", status=Status.DEGRADED),))


def first_line(*rows, **more):
    return text(headline.summarise(a_comparison(*rows, **more)))


def text(phrase):
    return "".join(phrase)


def test_a_slowdown_is_named_once_whichever_clock_sees_it():
    both, one = (
        a_change(name, Verdict.REGRESSED, metric=metrics.STEP_CPU, ratio=1.2)
        for name in ("both", "one")
    )

    line = first_line(a_change("both", Verdict.REGRESSED, ratio=1.3), both, one)

    assert line == "❌ Act: slower: both +30.0 %, one CPU time of a step +20.0 %"


def test_less_scaling_is_told_as_less():
    efficiency = {"metric": metrics.SCALING_EFFICIENCY, "base": 0.9, "head": 0.72}
    row = a_change("ddp", Verdict.REGRESSED, ratio=1.25, **efficiency)

    assert first_line(row) == "❌ Act: worse: ddp scaling efficiency \N{MINUS SIGN}20.0 %"


def test_of_many_only_the_worst_are_named():
    rows = [a_change(f"w{i}", Verdict.REGRESSED, ratio=1.1 + i / 10) for i in range(5)]

    assert first_line(*rows) == "❌ Act: slower: w4 +50.0 %, w3 +40.0 %, w2 +30.0 % and 2 more"


def test_what_is_open_is_named_and_nothing_is_called_certain():
    rows = (
        a_change("a", Verdict.INCONCLUSIVE),
        a_change("b", Verdict.LIKELY_SLOWER, ratio=1.018),
        a_change("c", Verdict.INCONCLUSIVE, ratio=0.8, code="history_alone"),
        a_change("d", Verdict.INCONCLUSIVE, signs=EQUAL),
    )

    assert first_line(*rows) == (
        "✅ Pass: no regression proven; suspected from its history alone: b +1.8 %; inconclusive: "
        "a; inconclusive without a sign of a change: d"
    )


def test_a_pass_without_every_answer_says_the_worst_loss_that_no_row_has():
    rows = (
        a_change("a", Verdict.INCONCLUSIVE, signs=EQUAL, interval=Interval(low=0.98, high=1.03)),
        a_change("b", limit=0.05, interval=Interval(low=0.97, high=1.0412)),
    )

    assert first_line(rows[0]) == (
        "✅ Pass: no regression proven, and no loss above 3 %; inconclusive without a sign of a "
        "change: a"
    )
    assert "no regression proven, and no loss above 4.2 %;" in first_line(*rows)


@pytest.mark.parametrize(
    "other",
    [
        a_change("b", Verdict.INCONCLUSIVE, interval=None, ratio=1.0),
        a_change("b", Verdict.INCONCLUSIVE, ratio=1.0, interval=Interval(low=0.0, high=12.0)),
        a_change("b", Verdict.LIKELY_SLOWER, ratio=1.018),
    ],
    ids=["unknown", "absurd", "suspected"],
)
def test_a_pass_excludes_no_loss_where_one_row_does_not(other):
    line = first_line(a_change("a", Verdict.INCONCLUSIVE, ratio=1.0), other)

    assert line.startswith("✅ Pass: no regression proven; ")


def test_where_an_answer_is_required_its_lack_is_what_is_unknown():
    required = a_change("a", Verdict.INCONCLUSIVE, ratio=1.004, pairs=18, require=True)
    worse = a_change("c", Verdict.INCONCLUSIVE, ratio=1.08)

    assert first_line(required, worse) == (
        "❓ Unknown: looks worse, not proven: c +8.0 %; no answer, and one is required: a +0.4 %"
    )


def test_what_looks_worse_than_its_limit_is_one_list_whatever_lacks_for_a_proof():
    rows = (
        a_change("a", Verdict.LIKELY_SLOWER, ratio=1.12),
        a_change("b", Verdict.INCONCLUSIVE, ratio=1.08),
        a_change("near", Verdict.INCONCLUSIVE, ratio=1.01),
    )

    assert first_line(*rows) == "❓ Unknown: looks worse, not proven: a +12.0 %, b +8.0 %"


def test_what_is_worse_by_its_history_alone_says_how_far():
    by_history = {"code": "worse_by_history", "drift": 1.25, "pairs": 5}
    near, far = (
        a_change(name, Verdict.INCONCLUSIVE, ratio=ratio, **by_history)
        for name, ratio in (("bert", 0.96), ("gpt", 1.4))
    )

    assert first_line(near, far) == (
        "❓ Unknown: looks worse, not proven: gpt +40.0 %, bert +25.0 % by its history"
    )
    assert "worse than its history (+25.0 %)" in remarks.describe(near)


@pytest.mark.parametrize(
    ("verdict", "more", "exit_code", "line"),
    [
        (Verdict.REGRESSED, {"gate": False}, 0, "✅ Pass: no regression"),
        (Verdict.REGRESSED, {}, 0, "✅ Pass: slower: mlp +40.0 %"),
        (Verdict.LIKELY_SLOWER, {}, 1, "❌ Act: looks worse, not proven: mlp +40.0 %"),
    ],
    ids=["no gate", "fail_on lets it pass", "fail_on fails it"],
)
def test_gate_and_fail_on_say_whether_a_loss_asks_to_act(verdict, more, exit_code, line):
    assert first_line(a_change(verdict=verdict, ratio=1.4, **more), exit_code=exit_code) == line


def test_a_workload_that_failed_for_another_reason_is_mended_on_a_busy_machine_too():
    late = an_uncompared("a", Verdict.FAILED, f"{NO_RESULT_IN_TIME} of 300 s")
    broken = an_uncompared("b", Verdict.FAILED, "ImportError")

    assert first_line(late, broken, validity=BUSY) == "❌ Act: failed: b"
    assert first_line(late, a_change()) == "❌ Act: failed: a"


def test_a_likely_loss_is_unknown_and_says_how_large_it_looks():
    row = a_change("gpt", Verdict.LIKELY_SLOWER, ratio=1.3, code="spread")

    assert first_line(row, validity=BUSY).endswith(
        "likely slower: gpt +30.0 %; the machine was too busy for a verdict"
    )


def test_no_busy_machine_is_blamed_for_what_other_packages_hide():
    row = a_change("gpt", Verdict.INCONCLUSIVE, ratio=1.3, code="other_packages")

    assert first_line(row, validity=BUSY) == "❓ Unknown: looks worse, not proven: gpt +30.0 %"


def test_a_run_that_cannot_be_trusted_blames_nobody():
    invalid = shapes.invalid()
    rows = (*invalid.rows, an_uncompared("conv", Verdict.FAILED))

    assert text(headline.summarise(msgspec.structs.replace(invalid, rows=rows))) == (
        "❓ Unknown: this run cannot be trusted; failed or missing: conv"
    )


def test_who_was_not_judged_is_named_beside_a_pass_but_not_who_was_judged_by_pairs():
    new = (an_uncompared("new", Verdict.NEW), an_uncompared("mlp", Verdict.NEW))

    assert first_line(a_change("mlp"), *new) == (
        "✅ Pass: no regression; not judged for lack of a baseline: new"
    )
    assert first_line(a_change("mlp"), *new, exit_code=3) == (
        "❓ Unknown: not judged for lack of a baseline: new"
    )
    tried = an_uncompared("it", Verdict.NEW, "ForeignCodeError: another it")
    assert first_line(tried, *new, exit_code=3) == (
        "❓ Unknown: nothing was judged for lack of a baseline: new, mlp; nothing was judged for "
        "lack of a baseline and of a base that could be launched: it"
    )


def test_numbers_that_are_not_believed_lead_to_the_notes():
    line = first_line(a_change(), exit_code=3)

    assert line == "❓ Unknown: the notes below say why these numbers decide nothing"


def test_a_part_of_the_suite_is_said_to_be_a_part():
    counts = text(headline.count_rows(a_comparison(a_change(), selection=("mlp",))))

    assert "1 selected workload," in counts
