"""Which functions hold more memory, or leave some behind in each step."""

import msgspec
import pytest

from ci_perf.features.explain import causes
from ci_perf.features.explain.model import Allocation, MemoryUse
from ci_perf.model import metrics
from ci_perf.model.comparison import Verdict
from tests.comparisons import a_change
from tests.features.explain.cause_rows import explained, left, shown, step
from tests.features.explain.step_profiles import a_function, a_use, timed_pairs

MIB = 2**20
LARGER = a_change(
    "w", Verdict.REGRESSED, metric=metrics.PEAK_ALLOCATED, base=10 * MIB, head=20 * MIB
)


def holding(*allocations, **more):
    return step(memory=MemoryUse(peak_bytes=100 * MIB, allocations=allocations, **more))


def an_allocation(function, peak, **more):
    return Allocation(
        operator="aten::clone", caller=a_function(function), line=12, peak_bytes=peak, **more
    )


def test_a_row_of_memory_names_who_holds_it():
    head = holding(an_allocation("search", 9 * MIB), an_allocation("tidy", 64))
    explanation = explained(holding(), head, LARGER)
    (cause,) = explanation.causes

    assert shown(explanation) == [("holds_more", "search")]
    assert (cause.bytes_base, cause.bytes_head, cause.line) == (0, 9 * MIB, 12)
    assert cause.share.share == pytest.approx(0.9)
    assert left(explanation) == ["tidy"]


def test_what_each_step_leaves_behind_grows():
    head = holding(an_allocation("log", 4 * MIB, growth_bytes=65536))
    (cause,) = explained(holding(), head, LARGER).causes

    assert (cause.kind, cause.bytes_base, cause.bytes_head) == ("grows", 0, 65536)


def test_memory_comes_first_in_its_row_and_only_a_leak_is_named_in_one_of_time():
    added = a_use("aten::sin", 4, "added", call_s=2e-3)
    held = holding(
        an_allocation("search", 9 * MIB), an_allocation("log", 0, growth_bytes=64 * 2**10)
    )
    head = msgspec.structs.replace(held, operators=(*held.operators, added))

    assert shown(explained(holding(), head, LARGER)) == [("holds_more", "search")]
    assert left(explained(holding(), head, LARGER)) == ["log", "added"]
    assert shown(explained(holding(), head)) == [("new", "added")]
    assert left(explained(holding(), head)) == ["log"]


def test_without_a_row_causes_of_time_and_of_memory_stand_together():
    added = a_use("aten::sin", 4, "added", call_s=2e-3)
    held = holding(an_allocation("search", 9 * MIB))
    head = msgspec.structs.replace(held, operators=(*held.operators, added))

    explanation = causes.explain(timed_pairs(holding(), head), is_gain=False)

    assert shown(explanation) == [("new", "added"), ("holds_more", "search")]


@pytest.mark.parametrize(
    "sides",
    [
        (step(), holding(an_allocation("search", 9 * MIB))),
        (holding(cut=3), holding(an_allocation("search", 9 * MIB))),
    ],
)
def test_bytes_that_one_side_does_not_know_are_no_evidence(sides):
    base, head = sides

    assert shown(explained(base, head, LARGER)) == []
