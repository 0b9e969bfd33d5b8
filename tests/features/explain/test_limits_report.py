"""The sentences on what limits a step, and the table of its operators."""

from typing import get_args

import pytest

from ci_perf.features.explain import limits_report, report
from ci_perf.model.explanation import (
    Cure,
    DeviceTimes,
    Explanation,
    HostTimes,
    IdleReason,
    OperatorTimes,
    StepLimit,
    StepLimits,
    StepProfile,
)
from ci_perf.report import tables
from ci_perf.report.phrases import plain
from tests.step_profiles import a_function


def said(limits):
    return [plain(line) for line in limits_report.describe_limits(limits)]


def test_says_how_busy_a_device_is_and_what_to_try():
    limit = StepLimit(
        reason="synchronisation",
        seconds=0.003,
        share=0.3,
        operator="aten::_local_scalar_dense",
        call="cudaStreamSynchronize",
        place=a_function("log_loss", 80, "train.py"),
        line=88,
        cures=("no_wait",),
    )

    busy, first = said(StepLimits(part="device", step_s=0.01, busy=0.62, limits=(limit,)))

    assert busy == "The GPU works 62.0 % of 10.0 ms per profiled step."
    assert first == (
        "30.0 % (3.00 ms): the host waits for the GPU, in aten::_local_scalar_dense by "
        "cudaStreamSynchronize, from log_loss train.py:88. Try: read numbers of the GPU "
        "(`.item()`, `.cpu()`, `print`, `if tensor`) once in many steps, or keep them there."
    )


def test_says_what_a_step_on_a_cpu_waits_for():
    limit = StepLimit(
        reason="data",
        seconds=0.007,
        share=0.7,
        place=a_function("read", 12, "data.py"),
        loader="process",
        cures=("workers",),
    )

    _, first = said(StepLimits(part="host", step_s=0.01, busy=0.2, limits=(limit,)))

    assert first.startswith(
        "70.0 % (7.00 ms): the step waits for its data, from read data.py:12. Try: give the "
        "DataLoader"
    )


@pytest.mark.parametrize(
    ("part", "cures", "said"),
    [
        (
            "device",
            (),
            "GPU idle 4.00 % → 11.0 % of its time: 4.00 % → 11.0 %: the host is in Python.",
        ),
        (
            "host",
            ("python",),
            (
                "Where the time of a step goes, of the base → of the head: 4.00 % → 11.0 %: "
                "Python, outside of operators. Try: take the Python out of the step, or "
                "`torch.compile` it."
            ),
        ),
    ],
)
def test_an_explanation_has_one_sentence_on_what_grew_and_names_the_traces(part, cures, said):
    limit = StepLimit(reason="outside", seconds=0.1, share=0.11, share_base=0.04, cures=cures)
    grown = StepLimits(part=part, step_s=1.0, busy=0.89, busy_base=0.96, limits=(limit,))
    explanation = Explanation(limits=grown, traces=("w.base.gz", "w.head.gz"), pairs=3)

    *_, last = report.describe(("w",), explanation)
    assert isinstance(last, tuple)
    note = plain(last)

    assert note == f"{said} Traces: w.base.gz, w.head.gz; open them in ui.perfetto.dev."


@pytest.mark.parametrize("part", ["device", "host"])
def test_says_that_nothing_keeps_a_step_waiting(part):
    assert "faster" in said(StepLimits(part=part, step_s=1.0, busy=0.95))[1]


def test_says_that_no_trace_tells_the_rest():
    limit = StepLimit(reason="data", seconds=0.6, share=0.6)

    assert said(StepLimits(part="host", step_s=1.0, limits=(limit,))) == [
        "A step takes 1.00 s; no trace tells what else it does.",
        "60.0 % (600 ms): the step waits for its data",
    ]


def test_says_why_nothing_is_known():
    assert said(StepLimits(absent="no time was left")) == [
        "What limits a step is not known: no time was left"
    ]


def test_every_cure_and_every_reason_has_words():
    reasons = [*get_args(IdleReason), "copies"]
    for part in ("device", "host"):
        for reason in reasons:
            limit = StepLimit(reason=reason, seconds=1, share=0.5, cures=get_args(Cure))
            assert said(StepLimits(part=part, step_s=1.0, busy=0.5, limits=(limit,)))


HOSTILE = "\u202e<img src=x>|::error::`@all`\n"


def test_foreign_names_are_shown_and_never_obeyed():
    limit = StepLimit(reason="operators", seconds=1, share=0.5, operator=HOSTILE, call=HOSTILE)
    page = limits_report.describe_limits(
        StepLimits(part="device", step_s=1.0, busy=0.5, limits=(limit,))
    )
    table = limits_report.build_operator_table(
        a_profile(OperatorTimes(operator=HOSTILE, calls=1, host_s=1))
    )

    shown = tables.markdown([*page, table])

    assert "\u202e" not in shown
    assert " ::error" not in shown
    assert "\n::error" not in shown


def a_profile(*operators, has_device=True, cut=0):
    device = DeviceTimes(span_s=1.0, busy_s=0.5, work=2) if has_device else None
    host = HostTimes(steps=1, step_s=1.0, operators=operators, cut=cut)
    return StepProfile(steps=2, host=host, device=device)


MANY = [
    OperatorTimes(operator=f"aten::op{number}", calls=2, host_s=number / 1e3, device_s=0.0)
    for number in range(1, 6)
]


def test_lists_the_operators_that_take_longest_on_either_side():
    launched = OperatorTimes(operator="aten::to", calls=0, host_s=0.0, device_s=0.5, wait_s=0.002)

    table = limits_report.build_operator_table(a_profile(*MANY, launched), most=2)

    assert list(table.heading) == ["Operator", "Calls", "CPU time", "GPU time", "Host waits"]
    assert [list(row) for row in table.rows] == [
        ["aten::to", "0", "0 s", "500 ms", "2.00 ms"],
        ["aten::op5", "2", "5.00 ms", "0 s", "0 s"],
        ["and 4 more", "", "", "", ""],
    ]


def test_a_run_on_a_cpu_has_no_columns_of_a_device():
    table = limits_report.build_operator_table(a_profile(*MANY, has_device=False, cut=7))

    assert list(table.heading) == ["Operator", "Calls", "CPU time"]
    assert list(table.rows[-1]) == ["and 7 more", "", ""]


def test_a_profile_without_a_trace_has_no_operators():
    assert limits_report.build_operator_table(StepProfile(steps=2)).rows == []
