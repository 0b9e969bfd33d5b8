"""The first line: pass, fail or no answer, what and how much; and its scope."""

import msgspec
import pytest

from ci_perf.model import metrics
from ci_perf.model.comparison import Interval, Signs, Verdict
from ci_perf.model.process import NO_RESULT_IN_TIME
from ci_perf.model.validity import Status, validity_of
from ci_perf.report import headline, remarks
from ci_perf.report.sheet import make_sheet
from tests.comparisons import a_change, a_comparison, a_side, an_uncompared
from tests.headlines import FAIL, PASS
from tests.headlines import NO_ANSWER as OPEN
from tests.runs import a_reason
from tests.unit.report import shapes

EQUAL = Signs(direction="equal", equal=("operators",))
BUSY = {"validity": validity_of((a_reason("host_pressure", status=Status.DEGRADED),))}
MINUS = "\N{MINUS SIGN}"


def a_loss(workload, ratio=1.4, **more):
    return a_change(workload, Verdict.REGRESSED, ratio=ratio, **more)


def likely(workload, ratio, **more):
    return a_change(workload, Verdict.LIKELY_SLOWER, ratio=ratio, **more)


def open_row(workload, ratio=1.01, **more):
    return a_change(workload, Verdict.INCONCLUSIVE, ratio=ratio, **more)


def by_history(workload, ratio):
    return open_row(workload, ratio, code="worse_by_history", drift=1.25, pairs=5)


def a_new(workload, note=""):
    return an_uncompared(workload, Verdict.NEW, note)


LATE = an_uncompared("a", Verdict.FAILED, f"{NO_RESULT_IN_TIME} of 300 s")
MEMORY = {"metric": metrics.HOST_RSS_PEAK, "code": "spread"}
ENERGY = {"metric": metrics.ENERGY, "code": "spread"}
GAIN = Interval(low=0.9, high=0.99)
CPU = {"metric": metrics.STEP_CPU}
A_GAIN = open_row("c", 0.8, code="history_alone")
LACK = "no baseline yet"


def case(line, *rows, **more):
    return line, a_comparison(*rows, **more)


@pytest.mark.parametrize(
    ("line", "comparison"),
    [
        case(
            f"{FAIL}slower: both +30.0 %, one CPU time of a step +20.0 %",
            *(a_loss("both", 1.3), a_loss("both", 1.2, **CPU), a_loss("one", 1.2, **CPU)),
        ),
        case(
            f"{PASS}no regression proven; no slowdown above 2.8 % on b; "
            "suspected from its history alone: b +1.8 %; inconclusive: a +1.0 %, d +1.0 %",
            *(open_row("a"), likely("b", 1.018), A_GAIN, open_row("d", signs=EQUAL)),
        ),
        case(
            f"{PASS}no regression proven; any slowdown is possible on a; inconclusive: a +1.0 %, "
            "b +1.0 %",
            *(open_row("a", interval=None), open_row("b")),
        ),
        case(
            f"{PASS}no regression proven; inconclusive: a {MINUS}2.0 %, b peak host memory +1.0 %",
            *(open_row("b", **MEMORY), open_row("a", 0.98, interval=GAIN)),
        ),
        case(
            f"{OPEN}likely more memory: a peak host memory +30.0 %; "
            "likely worse: b energy per item +4.0 %",
            *(
                likely("a", 1.3, **MEMORY),
                likely("b", 1.04, **ENERGY),
            ),
        ),
        case(
            f"{OPEN}looks worse, not proven: gpt +40.0 %, bert +25.0 % by its history",
            *(by_history("bert", 0.96), by_history("gpt", 1.4)),
        ),
        case(f"{PASS}slower: mlp +40.0 %", a_loss("mlp"), exit_code=0),
        case(
            f"{FAIL}looks worse, not proven: mlp +40.0 %",
            likely("mlp", 1.4),
            exit_code=1,
        ),
        case(
            f"{FAIL}does not run: b",
            LATE,
            an_uncompared("b", note="ImportError"),
            **BUSY,
        ),
        case(f"{FAIL}does not run: a", LATE, a_change()),
        case(
            f"{OPEN}likely slower: gpt +30.0 %",
            likely("gpt", 1.3, code="spread"),
            **BUSY,
        ),
        case(
            f"{OPEN}looks worse, not proven: gpt +30.0 %",
            open_row("gpt", 1.3, code="other_packages"),
            **BUSY,
        ),
        case(f"{PASS}no regression; {LACK}: new", a_change("x"), a_new("new"), a_new("x")),
        case(
            f"{OPEN}{LACK}: new; no baseline, and the base could not be launched: it",
            *(a_new("it", "ForeignCodeError: another it"), a_new("new")),
            exit_code=3,
        ),
        case(
            f"{OPEN}the notes below say why these numbers decide nothing",
            a_change(),
            exit_code=3,
        ),
    ],
)
def test_the_first_line_says_the_worst_and_calls_nothing_more_certain_than_it_is(line, comparison):
    assert "".join(headline.summarise(make_sheet(comparison))) == line


def test_a_run_that_cannot_be_trusted_blames_nobody():
    invalid = shapes.invalid()
    rows = (*invalid.rows, an_uncompared("conv", Verdict.FAILED))
    distrusted = msgspec.structs.replace(invalid, rows=rows)

    assert "".join(headline.summarise(make_sheet(distrusted))) == (
        f"{OPEN}this run cannot be trusted; does not run: conv"
    )


def test_a_part_of_the_suite_is_said_to_be_a_part():
    scope = "".join(headline.tell_scope(a_comparison(a_change(), selection=("mlp",))))

    assert ": 1 selected workload, 1 metric; a1b2c3d → d4e5f6a" in scope


def test_a_row_that_is_worse_by_its_history_alone_says_how_far():
    assert "worse than its history (+25.0 %)" in remarks.describe(by_history("bert", 0.96))


@pytest.mark.parametrize(
    ("newest", "said"),
    [
        ("2026-10-22T10:00:00Z", ""),
        ("2026-10-21T10:00:00Z", "; the newest baseline is 31 days old"),
        ("2024-02-28T23:00:00Z", "; the newest baseline is 997 days old"),
        ("", ""),
        ("9999-99-99", ""),
        ("yesterday", ""),
    ],
)
def test_the_scope_says_how_old_old_baselines_are(newest, said):
    comparison = a_comparison(a_change(), base=a_side(newest=newest))
    scope = "".join(headline.tell_scope(comparison))

    assert scope.endswith(f"a1b2c3d → d4e5f6a{said}")
