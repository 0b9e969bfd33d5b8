"""Exact metrics, and what ranges decide, beside a launched base."""

import pytest

from ci_perf.model import metrics as m
from ci_perf.model.comparison import Verdict
from ci_perf.model.process import DeviceWork
from ci_perf.model.suite import Limit, Limits
from tests.comparisons import verdicts_of
from tests.histories import (
    a_pair,
    in_turns,
    judged,
    row_of,
    said,
    undecided,
)
from tests.runs import (
    MIB,
    STEADY,
    a_device_memory,
    a_measured,
    a_run,
    an_environment,
)


def with_memory(run_of, peak):
    return run_of(a_measured("w", *STEADY, device=a_device_memory(peak_allocated_bytes=peak)))


def of_memory(peak):
    return with_memory(a_run, peak)


def device_pairs(base, head, count=4):
    return [
        a_pair(
            1e-3,
            1e-3,
            base={"device": a_device_memory(peak_allocated_bytes=base)},
            device=a_device_memory(peak_allocated_bytes=head),
        )
        for _ in range(count)
    ]


def test_an_exact_loss_that_the_base_has_too_is_not_this_change():
    history = [of_memory(100 * MIB)] * 3
    head = in_turns(of_memory(200 * MIB), device_pairs(200 * MIB, 200 * MIB))
    comparison = judged(history, head)

    assert said(comparison, "peak_allocated_bytes") == (Verdict.UNCHANGED, "baseline_moved")
    assert row_of(comparison, "peak_allocated_bytes").drift == pytest.approx(2.0)


def test_an_exact_loss_that_the_base_has_too_may_come_of_packages_that_both_sides_share():
    def packed(mib, packages):
        environment = an_environment(packages=packages * 16)
        return with_memory(lambda workload: a_run(workload, environment=environment), mib * MIB)

    head = in_turns(packed(200, "1"), device_pairs(200 * MIB, 200 * MIB), dependencies=("uv.lock",))
    comparison = judged([packed(100, "0")] * 3, head)

    verdict = said(comparison, "peak_allocated_bytes")
    assert verdict == (Verdict.INCONCLUSIVE, "other_packages")
    assert row_of(comparison, "peak_allocated_bytes").ratio == pytest.approx(2.0)


@pytest.mark.parametrize("side", ["base", "head"])
def test_pairs_of_which_one_side_lacks_a_metric_say_nothing_of_it(side):
    """Its history does: there the loss is proven."""
    memory = {"device": a_device_memory(peak_allocated_bytes=200 * MIB)}
    measured = {"base": {"base": memory}, "head": memory}[side]
    head = in_turns(of_memory(200 * MIB), [a_pair(1e-3, 1e-3, **measured) for _ in range(6)])

    row = row_of(judged([of_memory(100 * MIB)] * 3, head), "peak_allocated_bytes")

    assert (row.verdict, row.pairs) == (Verdict.REGRESSED, 0)


@pytest.mark.parametrize("metric", ["peak_allocated_bytes", "peak_reserved_bytes"])
@pytest.mark.parametrize(
    ("more_mib", "verdict"), [(1.9, Verdict.UNCHANGED), (2.1, Verdict.REGRESSED)]
)
def test_memory_may_differ_by_one_block_of_the_allocator(metric, more_mib, verdict):
    base, head = (
        a_run(a_measured("w", *STEADY, device=a_device_memory(**{metric: round(peak)})))
        for peak in (10 * MIB, (10 + more_mib) * MIB)
    )

    assert row_of(judged([base] * 3, head), metric).verdict is verdict


def test_an_exact_suspect_is_launched_as_often_as_the_first_look_asks():
    history = [of_memory(100 * MIB)] * 3
    few = in_turns(of_memory(200 * MIB), device_pairs(100 * MIB, 200 * MIB, count=3))
    enough = in_turns(of_memory(200 * MIB), device_pairs(100 * MIB, 200 * MIB))

    assert undecided(history, few)[0] == ("w",)
    assert undecided(history, enough)[0] == ()
    assert said(judged(history, enough), "peak_allocated_bytes")[0] is Verdict.REGRESSED


def test_a_profile_of_the_gpu_asks_for_no_more_pairs_than_have_one():
    """Later launches are not profiled: their pairs would be launched for nothing."""
    waits = DeviceWork(launched=10, host_waits=1)
    history = [a_run(a_measured("w", *STEADY, device_work=DeviceWork(launched=10)))] * 3
    head = a_run(a_measured("w", *STEADY, device_work=waits))

    def with_pairs(count):
        pair = a_pair(1e-3, 1e-3, device_work=waits, base={"device_work": DeviceWork(launched=10)})
        return in_turns(head, [pair] * count)

    assert undecided(history, with_pairs(1))[0] == ("w",)
    assert undecided(history, with_pairs(2))[0] == ()
    assert said(judged(history, with_pairs(2)), "host_waits")[0] is Verdict.REGRESSED


def test_what_is_noisy_and_judged_by_ranges_needs_as_many_pairs_as_the_first_look():
    """One pair of an A/A run differs as launches do: it proves nothing."""
    wait = Limit(relative=0.05, gate=True)
    limits = Limits(default={"compile_cold_s": wait})

    def head(count):
        slower = [
            a_pair(
                1e-3, 1e-3, graphs=1, first_step_s=12.0, base={"graphs": 1, "first_step_s": 10.0}
            )
            for _ in range(count)
        ]
        return in_turns(a_run(a_measured("w", *STEADY, graphs=1, first_step_s=12.0)), slower)

    def verdict(count):
        return said(judged([], head(count), limits=limits), "compile_cold_s")

    assert verdict(1) == (Verdict.INCONCLUSIVE, "too_few_pairs")
    assert verdict(4) == (Verdict.REGRESSED, "beyond_limit")


@pytest.mark.parametrize(
    ("base", "head", "moved"),
    [
        ({}, {"host_waits": 1}, {"host_waits": Verdict.REGRESSED}),
        ({"graph_replays": 1}, {}, {"graph_replays": Verdict.REGRESSED}),
        ({}, {"graph_replays": 1}, {"graph_replays": Verdict.IMPROVED}),
        ({"spills": 0}, {"spills": 8}, {"spills": Verdict.REGRESSED}),
        ({}, {"launched": 11}, {"kernels": Verdict.REGRESSED}),
        ({}, {"absent": "refused"}, {"kernels": Verdict.FAILED}),
    ],
)
def test_counts_of_the_device_are_exact(base, head, moved):
    sides = [
        a_run(a_measured("a", *STEADY, device_work=DeviceWork(**{"launched": 10, **work})))
        for work in (base, head)
    ]

    found = verdicts_of(judged(*sides), "a")

    counts = {metric.name for metric in m.OF_PROFILE}
    assert {
        name: verdict
        for name, verdict in found.items()
        if name in counts and verdict is not Verdict.UNCHANGED
    } == moved
