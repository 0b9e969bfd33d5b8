"""What is said of traces."""

from pathlib import Path

from ci_perf.gate.traces import describe_traces, list_sides
from ci_perf.model.explanation import ProfiledPair, ProfiledPairs, StepProfile

KEPT = StepProfile(steps=2, trace_file="w.base.pt.trace.json.gz")
LOST = StepProfile(steps=2, missing={"trace_file": "it is too large"})


def said(base, head, folder=Path("traces")):
    pairs = ProfiledPairs(workload="w", pairs=(ProfiledPair(base=base, head=head),) * 2)
    return list(describe_traces(folder, list_sides([pairs, ProfiledPairs(workload="v")])))


def test_says_where_traces_are_and_why_some_are_not():
    assert said(KEPT, KEPT) == ["traces: traces (2 files); open them in ui.perfetto.dev"]
    assert said(KEPT, LOST) == [
        "note: w, head: no trace: it is too large",
        "traces: traces (1 file); open them in ui.perfetto.dev",
    ]
    assert said(StepProfile(steps=0, absent="it failed"), StepProfile(steps=2)) == [
        "note: w, base: no trace: it failed",
        "note: w, head: no trace: the launch left none",
        "traces: none in traces",
    ]


def test_says_nothing_where_nobody_asked():
    assert said(KEPT, LOST, folder=None) == []
