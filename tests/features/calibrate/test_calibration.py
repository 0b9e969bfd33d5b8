"""Choosing by launches of the same code; the noise is made by hand, from a seed."""

import math
import random
import statistics

import msgspec
import pytest

from ci_perf.errors import CiPerfError
from ci_perf.features.calibrate import calibration
from ci_perf.judging.confirm import Confirmation, share_alpha
from ci_perf.judging.policy import (
    CALM_LOOKS,
    LAUNCH_PRIOR_DF,
    LOOKS,
    PRIOR_DF_CAP,
    PolicyKind,
    policy_of,
)
from ci_perf.model.run import Measured
from ci_perf.session import with_calibration
from tests.plans import a_plan, a_planned
from tests.runs import a_failed, a_measured, a_reason, a_run
from tests.smyth import prior as prior_by_scipy

LAUNCHES = 6


def uniform(seed=0):
    return random.Random(seed).random


def a_launch(median, p25, fastest):
    """Five blocks: the fastest, the one at 25 %, the middle one, and two slower ones."""
    return [fastest, p25, median, 1.1 * median, 1.2 * median]


def noisy(name, *, median=0.0, p25=0.0, fastest=0.0, launches=LAUNCHES, seed=0):
    """A workload whose statistics differ between launches by these standard deviations."""
    noise = random.Random(f"{name} {seed}")
    return a_measured(
        name,
        *(
            a_launch(
                1e-3 * math.exp(noise.gauss(0, median)),
                0.5e-3 * math.exp(noise.gauss(0, p25)),
                0.2e-3 * math.exp(noise.gauss(0, fastest)),
            )
            for _ in range(launches)
        ),
    )


def alike(spread, *, workloads=10, **more):
    """A suite of workloads that all repeat equally well, by any statistic."""
    return [
        noisy(f"w{i}", median=spread, p25=spread, fastest=spread, **more) for i in range(workloads)
    ]


def calibrated(*measured, plan=None, seed=0, **run):
    plan = plan or a_plan(
        *(workload.workload for workload in measured if isinstance(workload, Measured))
    )
    return calibration.calibrate(a_run(*measured, **run), plan, uniform(seed))


# --- statistic


def test_on_a_machine_where_all_repeat_alike_the_median_speaks():
    assert calibrated(*alike(0.01)).statistic == "median"


@pytest.mark.parametrize(
    ("p25", "fastest", "expected"),
    [
        (0.05, 0.05, "median"),
        (0.045, 0.045, "median"),
        (0.02, 0.05, "p25"),
        (0.02, 0.019, "p25"),
        (0.05, 0.02, "min"),
        (0.02, 0.005, "min"),
    ],
)
def test_a_statistic_that_sees_less_must_be_quieter_by_a_quarter(p25, fastest, expected):
    # Many launches of few workloads: confirmations are simulated for each workload.
    suite = [noisy(f"w{i}", median=0.05, p25=p25, fastest=fastest, launches=80) for i in range(4)]

    assert calibrated(*suite).statistic == expected


def test_one_workload_that_is_wild_does_not_choose_for_all():
    wild = noisy("wild", median=0.3, p25=0.03, fastest=0.03)

    assert calibrated(wild, *alike(0.01, workloads=20)).statistic == "median"


def test_a_machine_without_any_noise_keeps_the_median():
    assert calibrated(*alike(0.0)).statistic == "median"


# --- limit


@pytest.mark.parametrize(
    ("spread", "expected"), [(0.005, 0.01), (0.014, 0.02), (0.019, 0.03), (0.03, 0.05), (0.2, 0.5)]
)
def test_the_limit_is_the_smallest_that_decides(spread, expected):
    machine = calibrated(*alike(spread))

    assert machine.limit == expected
    assert machine.inconclusive <= calibration.MOST_INCONCLUSIVE


def test_a_machine_that_holds_no_limit_gets_the_largest_and_is_told():
    machine = calibrated(*alike(2.0))

    assert machine.limit == calibration.LIMITS[-1]
    assert machine.inconclusive > calibration.MOST_INCONCLUSIVE


# --- what is said of a workload


def test_the_spread_of_pairs_is_drawn_towards_the_suite_as_scipy_would():
    suite = [noisy(f"w{i}", median=0.002 * (1 + i)) for i in range(8)]
    own = []
    for workload in suite:
        logs = [math.log(process.timed.block_s[2]) for process in workload.processes]
        own.append(
            statistics.fmean((b - a) ** 2 for a, b in zip(logs[::2], logs[1::2], strict=True))
        )
    shared, df = prior_by_scipy(own, [3] * 8, *LAUNCH_PRIOR_DF)

    plan = a_plan(*(a_planned(workload.workload, statistic="median") for workload in suite))
    workloads = calibrated(*suite, plan=plan).workloads

    expected = [math.sqrt((3 * variance + df * shared) / (3 + df)) for variance in own]
    assert [workload.pairs for workload in workloads.values()] == pytest.approx(expected, rel=0.01)


def test_slow_drift_spreads_the_launches_and_not_the_pairs():
    drifting = a_measured("w", *(a_launch(*[1e-3 * 1.02 ** (i // 2)] * 3) for i in range(8)))

    (workload,) = calibrated(drifting).workloads.values()

    assert workload.launches["median"] > 0.02
    assert workload.pairs == pytest.approx(0.0, abs=1e-9)


def test_the_smallest_detectable_change_is_that_of_a_confirmation_with_this_spread():
    machine = calibrated(*alike(0.01, workloads=5))

    for workload in machine.workloads.values():
        confirmation = Confirmation(
            policy=policy_of(PolicyKind.TIME, machine.limit),
            alpha=share_alpha(5),
            prior_variance=workload.pairs**2 / 2,
            prior_df=min(workload.pairs_df, PRIOR_DF_CAP),
        )
        expected = math.expm1(confirmation.smallest_detectable())
        assert workload.smallest_detectable == pytest.approx(expected, rel=0.02)


def test_a_quiet_workload_is_expected_to_take_the_first_look_and_a_wild_one_to_the_last():
    workloads = calibrated(*alike(0.0), noisy("wild", median=0.3, p25=0.3, fastest=0.3)).workloads

    assert workloads["w0"].expected_pairs == CALM_LOOKS[1]
    assert workloads["wild"].expected_pairs > LOOKS[-2]


def test_two_modes_are_said_of_the_workload_that_has_them():
    fast, slow = a_launch(1e-3, 1e-3, 1e-3), a_launch(1.1e-3, 1.1e-3, 1.1e-3)
    workloads = calibrated(
        a_measured("w", *[fast, slow] * 3), noisy("calm", median=0.001)
    ).workloads

    assert {name: workload.two_modes for name, workload in workloads.items()} == {
        "w": True,
        "calm": False,
    }


def test_the_statistic_of_suite_toml_speaks_where_it_is_set():
    suite = [noisy(f"w{i}", median=0.05, p25=0.05, fastest=0.005) for i in range(10)]
    plan = a_plan(a_planned("w0", statistic="p25"), *(f"w{i}" for i in range(1, 10)))

    machine = calibrated(*suite, plan=plan)

    assert machine.statistic == "min"
    assert {name: workload.statistic for name, workload in machine.workloads.items()} == {
        "w0": "p25",
        **{f"w{i}": "min" for i in range(1, 10)},
    }
    assert machine.workloads["w0"].step_time_s == pytest.approx(0.5e-3, rel=0.1)


def test_the_same_launches_always_give_the_same_document():
    suite = alike(0.01)

    assert calibrated(*suite) == calibrated(*suite)


def test_the_document_says_when_of_what_and_under_what_doubts_it_was_made():
    run = {"id": "abcdefabcdef", "validity": _doubted("busy_host")}
    provenance = calibrated(*alike(0.01), **run).provenance

    assert (provenance.run, provenance.suite) == ("abcdefabcdef", "smoke")
    assert provenance.distrust == ("busy_host",)


def _doubted(code):
    from ci_perf.model import validity

    return validity.validity_of((a_reason(code, status=validity.Status.DEGRADED),))


def test_without_a_workload_that_was_measured_there_is_nothing_to_choose_by():
    with pytest.raises(CiPerfError, match="at least one workload with numbers, found none of 1"):
        calibrated(a_failed("w"), plan=a_plan("w"))


# --- what a calibration changes


def test_a_calibration_sets_the_statistic_where_suite_toml_does_not():
    plan = a_plan("free", a_planned("bound", statistic="median"))
    suite = [noisy(f"w{i}", median=0.05, p25=0.05, fastest=0.005) for i in range(10)]

    resolved = with_calibration(plan, calibrated(*suite))

    assert [workload.protocol.statistic for workload in resolved.workloads] == ["min", "median"]


def test_launches_that_differ_more_need_not_be_timed_as_long():
    suite = [noisy(f"w{i}", median=0.05, p25=0.05, fastest=0.04) for i in range(10)]

    resolved = with_calibration(a_plan("w0", "unknown"), calibrated(*suite))

    assert [workload.protocol.launch_spread for workload in resolved.workloads] == pytest.approx(
        [0.05] * 2, rel=0.5
    )


def test_without_a_calibration_a_plan_stays_as_it_is():
    plan = a_plan("w")

    assert with_calibration(plan, None) is plan


# --- which of three cases the machine is


def with_cpu_time(spread, *, wall, launches=20, outliers=0.0, workloads=3):
    """Workloads whose wall differs by one spread and CPU time by another one."""
    draw = random.Random(7)

    def block(sd):
        wild = 10 if draw.random() < outliers else 1
        return (1e-3 * math.exp(wild * draw.gauss(0, sd)),) * 5

    def workload(name):
        measured = a_measured(name, *(block(wall) for _ in range(launches)))
        return msgspec.structs.replace(
            measured,
            processes=tuple(
                msgspec.structs.replace(
                    process, timed=msgspec.structs.replace(process.timed, cpu_s=block(spread))
                )
                for process in measured.processes
            ),
        )

    return [workload(f"w{i}") for i in range(workloads)]


@pytest.mark.parametrize(
    ("cpu", "wall", "noise"),
    [(0.001, 0.005, "quiet"), (0.01, 0.2, "crowded"), (0.2, 0.2, "shared_host")],
)
def test_cpu_time_helps_only_where_the_wall_is_noisy_and_cpu_time_is_not(cpu, wall, noise):
    machine = calibrated(*with_cpu_time(cpu, wall=wall))

    assert machine.noise == noise
    assert machine.launches_cpu == pytest.approx(cpu, rel=0.5)
    assert machine.launches["median"] == pytest.approx(wall, rel=0.5)


def test_a_noisy_machine_without_cpu_time_cannot_be_crowded():
    assert calibrated(*alike(0.2, workloads=3)).noise == "shared_host"


def test_only_heavy_tails_on_a_noisy_machine_are_trimmed():
    heavy = with_cpu_time(0.02, wall=0.02, outliers=0.15, launches=40)
    normal = with_cpu_time(0.2, wall=0.2)

    assert calibrated(*heavy).trimmed
    assert not calibrated(*normal).trimmed
    assert not calibrated(*with_cpu_time(0.001, wall=0.001, outliers=0.15)).trimmed
