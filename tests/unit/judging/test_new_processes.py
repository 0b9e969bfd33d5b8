"""Memory that new processes hold only warns; more than they explain fails the job."""

import msgspec
import pytest

from ci_perf.judging import compare, summarise
from ci_perf.model.comparison import Severity, Verdict, severity_of
from ci_perf.model.process import Memory
from tests.histories import a_pair, in_turns, judged, no_history
from tests.runs import MIB, a_measured, a_run

BASE, COPY = (300, 0, 0), (300, 300, 1)
BYTE = 1 / MIB


def a_head(base, head, *, pairs=6):
    """A head without a history, and its pairs.

    Each side is its process, and how many others hold how much, all in MiB.
    """
    launched = [
        a_pair(1e-3, 1e-3, base={"memory": a_memory(*base)}, memory=a_memory(*head))
        for _ in range(pairs)
    ]
    return in_turns(a_run(a_measured("w", 1e-3, memory=a_memory(*head))), launched)


def a_memory(own, below, count, largest=20):
    return Memory(
        host_rss_peak_bytes=own * MIB,
        below_bytes=below * MIB,
        below_by="pss" if count else "",
        below_count=count,
        below_largest_bytes=largest * MIB if count else 0,
        device=None,
    )


def row_of_memory(comparison):
    (row,) = (row for row in comparison.rows if row.metric == "host_rss_peak_bytes")
    return row


@pytest.mark.parametrize(
    ("head", "pairs"), [((300, 60, 2), 2), ((300, 60, 2), 6), ((302, 60, 2), 6), (COPY, 6)]
)
def test_memory_of_new_processes_only_warns(head, pairs):
    comparison = judged((), a_head(BASE, head, pairs=pairs))

    row = row_of_memory(comparison)
    assert row.code == "new_processes"
    assert not row.gate
    assert comparison.exit_code == 0
    if pairs == 6:
        assert severity_of(row) is Severity.WARNING


@pytest.mark.parametrize(
    ("base", "head"),
    [
        (BASE, (360, 0, 0)),
        ((300, 60, 2), (300, 120, 2)),
        ((300, 60, 2), (360, 30, 1)),
        (BASE, (300, 300 + BYTE, 1)),
        (BASE, (650, 10, 1)),
        (BASE, (590, 1, 1)),
    ],
    ids=[
        "no process below",
        "as many processes",
        "fewer processes",
        "more than a copy of the base's process",
        "a head that is larger itself raises no allowance",
        "a process that has grown itself, beside one that sleeps",
    ],
)
def test_memory_that_new_processes_do_not_explain_fails_the_job(base, head):
    comparison = judged((), a_head(base, head))

    assert row_of_memory(comparison).code == "beyond_limit"
    assert row_of_memory(comparison).gate
    assert comparison.exit_code == 1


def test_of_a_command_its_largest_process_counts():
    """Ours is small, and starts one of 500 MiB; its helper takes 400 MiB."""
    base, head = (30, 500, 1, 500), (30, 900, 2, 500)

    assert judged((), a_head(base, head)).exit_code == 0
    assert judged((), a_head(base, (30, 1050, 2, 500))).exit_code == 1


def test_memory_that_noise_leaves_open_gates_where_no_process_is_new():
    launched = [
        a_pair(1e-3, 1e-3, base={"memory": a_memory(*BASE)}, memory=a_memory(own, 0, 0))
        for own in (300, 240, 360, 300, 240)
    ]

    row = row_of_memory(judged((), in_turns(a_run(a_measured("w", 1e-3)), launched)))

    assert row.verdict is Verdict.INCONCLUSIVE
    assert row.gate


@pytest.mark.parametrize("side", [0, 1], ids=["base", "head"])
def test_a_pair_of_which_a_side_lacks_the_memory_explains_nothing(side):
    run = a_head(BASE, (300, 60, 2))
    head = summarise.run(run, label="run.json")
    (subject,) = head.subjects
    assert subject.paired
    first, *others = subject.paired.pairs
    lacking = [dict(numbers) for numbers in first]
    del lacking[side]["host_rss_peak_bytes"]
    paired = msgspec.structs.replace(subject.paired, pairs=(tuple(lacking), *others))
    subject = msgspec.structs.replace(subject, paired=paired)

    row = row_of_memory(
        compare.compare(no_history(run), msgspec.structs.replace(head, subjects=(subject,)))
    )

    assert (row.code, row.pairs) == ("new_processes", 5)
