import itertools

import msgspec
import pytest

from ci_perf.model.process import BreakEven, GpuUse, Profile, SideProfile, StepPhase
from ci_perf.report import profiles, tables
from tests.unit.report.rendered import Page

GIB = 2**30
EVIL = "|`<img>"


def a_side(step_time_s=0.04, **more):
    return SideProfile(step_time_s=step_time_s, **more)


def a_profile(workload="resnet", *, base=None, items_per_epoch=None, break_evens=(), **of_head):
    return Profile(
        workload=workload,
        items_per_step=8,
        item_unit="image",
        items_per_epoch=items_per_epoch,
        head=a_side(**of_head),
        base=base,
        break_evens=break_evens,
    )


def a_gpu(uuid="GPU-0", **more):
    plain = GpuUse(uuid=uuid, utilization=0.95, power_w=500.0, memory_peak_bytes=30 * GIB)
    return msgspec.structs.replace(plain, **more)


def a_break_even(*, cost_s=60.0, gain_s=0.01, is_faster=True):
    return BreakEven(
        eager="resnet.compile=eager",
        cache="empty",
        cost_s=cost_s,
        gain_s=gain_s,
        is_faster=is_faster,
    )


def shown(*found, rows=10):
    return tables.join_markdown(list(profiles.fold(found, shown=rows)))


def test_a_part_that_is_new_or_gone_has_no_time_on_the_other_side():
    part = StepPhase(host_s=0.01, device_s=None)
    text = shown(a_profile(phases={"new": part}, base=a_side(phases={"gone": part})))

    assert "| `resnet` | `gone` | 10.0 ms → \N{EN DASH} |" in text
    assert "| `resnet` | `new` | \N{EN DASH} → 10.0 ms |" in text


def test_a_compiled_workload_says_what_it_costs_gains_and_when_that_pays():
    text = shown(
        a_profile(break_evens=(a_break_even(), a_break_even(gain_s=-0.001, is_faster=False)))
    )

    minus = "\N{MINUS SIGN}"
    assert f"| cold | +60.0 s | {minus}10.0 ms | 6,001 steps | `resnet.compile=eager` |" in text
    assert "| cold | +60.0 s | +1.00 ms | not faster | `resnet.compile=eager` |" in text


@pytest.mark.parametrize(
    ("cost_s", "compiled_s"), [(60.0, 0.03), (0.0, 0.03), (-0.1, 0.03), (1, 0.0399)]
)
def test_after_break_even_the_compiled_one_is_ahead_and_one_step_before_it_is_not(
    cost_s, compiled_s
):
    """Added up step by step."""
    found = a_break_even(cost_s=cost_s, gain_s=0.04 - compiled_s)

    def total_s(first_s, step_s):
        return itertools.accumulate(itertools.chain([first_s], itertools.repeat(step_s)))

    totals = zip(total_s(0.5 + cost_s, compiled_s), total_s(0.5, 0.04), strict=False)
    ahead = next(n for n, (one, other) in enumerate(totals, start=1) if one <= other + 1e-9)
    assert f"| {ahead:,} step" in shown(a_profile(break_evens=(found,)))


def test_many_rows_are_cut_and_counted():
    text = shown(*(a_profile(f"w{n}", items_per_epoch=200) for n in range(30)), rows=3)

    assert "Time of an epoch (3 of 30 rows):" in text
    assert text.count("images/s") == 3


def test_what_a_driver_says_commands_nothing():
    page = Page(shown(a_profile(gpus=(a_gpu(EVIL),))))

    assert "img" not in page.tags
    assert any("|" in text for text in page.code)
