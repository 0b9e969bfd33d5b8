"""Figures of the steps of a proof that launch workloads, from launches with known times."""

import math
import random

import msgspec
import pytest

from ci_perf.errors import CiPerfError
from ci_perf.judging import proof, proof_figures
from ci_perf.model.base import Key
from ci_perf.model.proof import Probed
from tests.plans import a_plan
from tests.runs import a_measured, a_process, a_run


def values(figures):
    return {figure.name: figure.value for figure in figures}


def launches(name, *, slower=0.0, spread=0.0, rounds=18):
    noise = random.Random(name)
    times = [1e-3 * (1 + slower) * math.exp(noise.gauss(0, spread)) for _ in range(rounds)]
    return a_measured(name, *times)


def uniform():
    return random.Random(0).random


def test_a_monitor_that_costs_nothing_exceeds_nothing():
    same = [launches(name) for name in ("off", "on", "off_again")]

    assert values(proof_figures.of_monitor(*same)) == {
        "on_over_off": 1.0,
        "off_over_off": 1.0,
        "by_chance": 0.0,
        "excess": 0.0,
        "launches": 18,
    }


def test_what_a_monitor_costs_beyond_one_percent_is_its_excess():
    arms = launches("off"), launches("on", slower=0.03), launches("off_again")

    assert values(proof_figures.of_monitor(*arms))["excess"] == pytest.approx(0.02)


def test_what_chance_does_as_well_is_no_excess():
    off, again = a_measured("off", 1.0, 1.0, 1.0), a_measured("off_again", 0.96, 1.0, 1.04)
    on = a_measured("on", 1.03, 1.03, 1.03)

    figures = proof_figures.of_monitor(off, on, again)

    shown = values(figures)
    assert (shown["by_chance"], shown["excess"]) == (0.04, 0.0)
    step = proof.judged(proof.of_name("monitor"), Probed(figures=figures), 1.0)
    assert (step.outcome, step.why) == ("not_tried", "noise")
    assert "differ by 4.0 % by chance" in step.detail


def test_a_quiet_machine_can_say_what_a_monitor_costs():
    same = [launches(name) for name in ("off", "on", "off_again")]
    probed = Probed(figures=proof_figures.of_monitor(*same))

    assert proof.judged(proof.of_name("monitor"), probed, 1.0).outcome == "held"


def test_the_interval_of_a_median_widens_to_all_values_where_there_are_few():
    assert proof_figures.median_interval([3.0, 1.0, 2.0]) == (1.0, 3.0)
    assert proof_figures.median_interval([float(n) for n in range(100)]) == (40.0, 59.0)


def test_the_parts_of_a_launch_and_the_rest_make_the_whole():
    shown = values(proof_figures.of_launch("matmul", [a_process(), a_process(1)], [5.0, 6.0]))

    assert shown["matmul_launch_s"] == 5.5
    assert shown["matmul_import_s"] == 2.0
    assert sum(shown.values()) == pytest.approx(11.0)


def test_a_quiet_machine_finds_what_was_planted_beyond_the_margin_and_raises_no_alarm():
    slower = {size: launches(f"{size}", slower=size / 100, spread=0.002) for size in (2, 3, 5)}
    before, after = launches("before", spread=0.002), launches("after", spread=0.002)

    shown = values(proof_figures.of_planted(before, slower, after))

    assert (shown["pairs"], shown["false_alarms"]) == (18, 0)
    assert (shown["found_3"], shown["found_5"]) == (1, 1)
    assert shown["measured_5"] == pytest.approx(0.05, abs=0.005)


def test_a_noisy_machine_finds_nothing_and_says_so():
    slower = {5: launches("slower", slower=0.05, spread=0.3)}
    before, after = launches("before", spread=0.3), launches("after", spread=0.3)

    shown = values(proof_figures.of_planted(before, slower, after))

    assert (shown["found_5"], shown["false_alarms"]) == (0, 0)


def test_two_different_arms_without_a_plant_are_a_false_alarm():
    """Not by drift: in every other pair the head comes first."""
    before, after = launches("before", spread=0.001), launches("after", spread=0.001)
    drifting = a_measured("after", *(1e-3 * (1.1 if n % 2 else 0.9) for n in range(18)))

    assert values(proof_figures.of_planted(before, {}, after))["false_alarms"] == 0
    assert values(proof_figures.of_planted(before, {}, drifting))["false_alarms"] == 1


def noise_of(first, second=None):
    plan = a_plan("matmul.size=256", "mlp")
    other = None if second is None else a_run(*second)
    return values(proof_figures.of_noise(a_run(*first), other, plan, uniform()))


def quiet(name, slower=0.0):
    return launches(name, slower=slower, spread=0.002, rounds=4)


def test_the_noise_of_each_workload_has_its_figures_and_two_sessions_a_ratio():
    shown = noise_of(
        [quiet("matmul.size=256"), quiet("mlp")],
        [quiet("matmul.size=256", slower=0.1), quiet("mlp")],
    )

    assert shown["session_ratio"] == pytest.approx(1.1)
    assert shown["workloads"] == 2
    assert shown["spread_matmul-size-256"] > shown["spread_mlp"] > 0
    assert {"detectable_matmul-size-256", "detectable_mlp", "median_detectable"} <= shown.keys()


def test_one_session_says_nothing_of_two():
    shown = noise_of([quiet("matmul.size=256"), quiet("mlp")])

    assert "session_ratio" not in shown
    assert 0 < shown["median_detectable"] < 0.05


def test_a_workload_that_failed_in_the_second_session_is_left_out():
    shown = noise_of([quiet("matmul.size=256"), quiet("mlp")], [quiet("mlp")])

    assert shown["workloads"] == 1


def test_without_a_measured_workload_there_is_no_noise():
    with pytest.raises(CiPerfError, match="at least one workload with numbers"):
        noise_of([])


def test_a_figure_is_named_after_a_workload_whatever_its_id_holds():
    name = proof_figures.key("spread", "a.b=1.5+x" + "y" * 200)

    assert name.startswith("spread_a-b-1-5-x")
    assert msgspec.convert(name, Key) == name


def test_resident_pairs_are_compared_with_pairs_of_launches():
    def pairs(ratio, count=4):
        base, head = a_process(step_s=1e-3), a_process(1, step_s=ratio * 1e-3)
        return [(base, head) if number % 2 else (head, base) for number in range(count)]

    shown = values(proof_figures.of_pairs(pairs(1.01), pairs(1.04)))

    assert shown["resident_spread"] == pytest.approx(0.01, rel=0.01)
    assert shown["launch_spread"] == pytest.approx(0.04, rel=0.03)
    assert shown["resident_over_launch"] == pytest.approx(0.254, rel=0.01)
    assert shown["pairs"] == 4
