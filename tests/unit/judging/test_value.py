"""Items per second and per money, ranges and ranks, of runs on several machines."""

import math

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_perf.judging import value
from ci_perf.judging.value import PricedClass
from ci_perf.model.hardware import Estimate, Price
from ci_perf.model.validity import validity_of
from tests.hardware import A100, H100, L4, a_machine_run
from tests.runs import a_failed, a_gpu_evidence, a_measured, a_reason, an_evidence


def a_class(*runs, per_hour=None, name="", **more):
    machine = name or runs[0].environment.hard.gpu_model
    price = per_hour and Price(per_hour=per_hour, as_of="2026-11-01", source="us")
    return PricedClass(
        name=machine,
        machine=more.pop("machine", machine),
        hard=runs[0].environment.hard,
        runs=runs,
        price=price,
    )


def compared(*classes, currency="EUR"):
    return value.of(classes, currency=currency)


def test_items_per_second_and_their_cost_follow_from_step_time_and_price():
    answer = compared(a_class(H100, per_hour=3.6))

    (workload,) = answer.workloads
    (figures,) = workload.figures
    # 100 items in a geometric mean of about a millisecond; 3.6 EUR an hour are 0.001 a second.
    assert figures.items_per_s.value == pytest.approx(1e5, rel=0.01)
    assert figures.per_money.value == pytest.approx(figures.items_per_s.value * 1000)
    assert figures.million_cost.value == pytest.approx(1e6 / figures.per_money.value)
    assert figures.million_cost.low == pytest.approx(1e6 / figures.per_money.high)


def test_the_range_is_students_of_the_logarithms_of_launches():
    (figures,) = compared(a_class(H100)).workloads[0].figures
    speed = figures.items_per_s

    # Four launches that differ by 0.8 %: t(0.975, 3) = 3.18 times 0.82 % / 2.
    assert math.log(speed.high / speed.value) == pytest.approx(0.0130, rel=0.05)
    assert speed.value**2 == pytest.approx(speed.low * speed.high)


def test_three_sessions_speak_for_themselves():
    days = [a_machine_run("NVIDIA H100", factor, id=f"day-{factor}") for factor in (0.9, 1.0, 1.1)]

    (of_three,) = compared(a_class(*days)).workloads[0].figures
    (of_two,) = compared(a_class(*days[:2])).workloads[0].figures

    # t(0.975, 2) = 4.3 of three means, which differ by 10 %; and of eight launches of two days.
    assert math.log(of_three.items_per_s.high / of_three.items_per_s.value) > 0.2
    assert math.log(of_two.items_per_s.high / of_two.items_per_s.value) < 0.07


def test_machines_whose_ranges_overlap_share_a_rank():
    answer = compared(a_class(A100, per_hour=2), a_class(H100, per_hour=5), a_class(L4))

    assert [each.speed_rank for each in answer.classes] == [2, 1, 2]
    assert [each.value_rank for each in answer.classes] == [1, 2, None]
    assert answer.classes[1].speed.value == pytest.approx(2.0, rel=0.001)
    assert answer.classes[1].value.value == pytest.approx(0.8, rel=0.001)
    assert answer.classes[2].value is None


def test_two_prices_of_a_machine_are_one_machine_in_the_order_of_speed():
    answer = compared(
        a_class(A100, per_hour=2),
        a_class(H100, per_hour=5, name="list", machine="h100"),
        a_class(H100, per_hour=3, name="reserved", machine="h100"),
    )

    assert [each.speed_rank for each in answer.classes] == [2, 1, 1]
    assert [each.value_rank for each in answer.classes] == [2, 3, 1]


def test_a_single_launch_has_no_range_and_beats_nobody():
    alone = a_machine_run("NVIDIA L4", 1.0)
    alone = msgspec.structs.replace(alone, measured=(a_measured("mlp", 1e-6, items_per_step=100),))

    answer = compared(a_class(H100), a_class(alone))

    assert [each.speed_rank for each in answer.classes] == [1, 1]
    assert answer.workloads[0].figures[1].items_per_s.low is None


def test_the_mean_is_of_what_all_machines_have_measured():
    only_h100 = a_measured("gpt", 1e-3, 1.1e-3)
    large = a_failed("gpt", "out of memory")
    a100 = a_machine_run("NVIDIA A100", 2.0, large)
    h100 = a_machine_run("NVIDIA H100", 1.0, only_h100)

    answer = compared(a_class(a100), a_class(h100), a_class(L4))

    gpt = next(each for each in answer.workloads if each.workload == "gpt")
    assert [each.absent for each in gpt.figures] == ["timed: out of memory", "", "not measured"]
    assert answer.classes[1].speed.value == pytest.approx(2.0, rel=0.001)


def test_without_a_shared_workload_nothing_is_ordered():
    other = a_machine_run("NVIDIA L4", 1.0)
    other = msgspec.structs.replace(other, measured=(a_measured("other", 1e-3),))

    answer = compared(a_class(H100, per_hour=1), a_class(other))

    assert [each.speed_rank for each in answer.classes] == [None, None]
    assert [each.value_rank for each in answer.classes] == [None, None]


def test_what_cannot_be_trusted_has_no_numbers():
    bad = a_machine_run("NVIDIA H100", 1.0, validity=validity_of((a_reason("clocks_held_down"),)))

    (figures,) = compared(a_class(bad)).workloads[0].figures

    assert figures.items_per_s is None
    assert figures.absent.startswith("not trusted: clocks_held_down")


def test_energy_and_mfu_are_shown_where_they_are_known():
    seen = a_measured(
        "gpt", 1e-3, 1e-3, items_per_step=100, evidence=an_evidence(a_gpu_evidence()), flops=10**11
    )
    run = a_machine_run("NVIDIA H100 80GB HBM3", 1.0, seen)

    by_name = {each.workload: each.figures[0] for each in compared(a_class(run)).workloads}

    assert by_name["mlp"].energy_j is None
    assert by_name["mlp"].mfu is None
    assert by_name["gpt"].energy_j > 0


@given(
    st.lists(
        st.tuples(st.floats(1e-3, 1e3), st.floats(1, 2)).map(
            lambda drawn: Estimate(
                value=drawn[0], low=drawn[0] / drawn[1], high=drawn[0] * drawn[1]
            )
        ),
        min_size=1,
        max_size=8,
    )
)
def test_a_rank_is_worse_only_behind_what_is_surely_better(estimates):
    ranks = [rank or 0 for rank in value.ranks(estimates)]

    assert min(ranks) == 1
    for own, rank in zip(estimates, ranks, strict=True):
        for other, others_rank in zip(estimates, ranks, strict=True):
            if rank < others_rank:
                assert not other.low > own.high
            if own.low > other.high:
                assert rank < others_rank
