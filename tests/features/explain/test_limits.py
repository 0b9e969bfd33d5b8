"""What limits a step: by its share in one profile, and by its growth from base to head."""

from typing import get_args

import msgspec
import pytest

from ci_perf.errors import InvalidFileError
from ci_perf.features.explain import causes, report
from ci_perf.features.explain.limits import find_growth, find_limits
from ci_perf.model import codec, metrics
from ci_perf.model.comparison import Change, Verdict
from ci_perf.model.explanation import (
    DeviceIdle,
    DeviceTimes,
    FunctionUse,
    HostTimes,
    IdleReason,
    OperatorTimes,
    ProfiledPair,
    StepProfile,
)
from tests.comparisons import a_change
from tests.step_profiles import a_function, a_use, both


def on_a_device(*uses, loader="", functions=(), pageable=0.0, copying=0.0, **reasons):
    """A step of one second on a device that is idle for so many seconds by reason."""
    return StepProfile(
        steps=2,
        operators=uses,
        functions=functions,
        host=HostTimes(steps=1, step_s=1.0, loader=loader),
        device=DeviceTimes(
            span_s=1.0,
            busy_s=1.0 - sum(reasons.values()),
            copying_s=copying,
            pageable_s=pageable,
            work=10,
            idle=tuple(
                DeviceIdle(reason=reason, idle_s=reasons[reason], operator="aten::item")
                for reason in get_args(IdleReason)
                if reason in reasons
            ),
        ),
    )


def on_a_host(*operators, functions=(), **times):
    """A step of one second without any device."""
    host = HostTimes(steps=1, step_s=1.0, operators=operators, **times)
    return StepProfile(steps=2, functions=functions, host=host)


def timed(name, own_s, **more):
    return FunctionUse(function=a_function(name), calls=1, own_s=own_s, **more)


def reasons(limits):
    return [limit.reason for limit in limits.limits]


@pytest.mark.parametrize(
    ("profile", "reason", "cures"),
    [
        (on_a_device(data=0.6, loader="process"), "data", ("workers",)),
        (on_a_device(data=0.6, loader="workers"), "data", ("more_workers",)),
        (on_a_device(data=0.6), "data", ("load_ahead",)),
        (
            on_a_device(data=0.6, loader="process", pageable=0.1),
            "data",
            ("workers", "pin_memory"),
        ),
        (on_a_device(synchronisation=0.3, data=0.1), "synchronisation", ("no_wait",)),
        (on_a_device(operators=0.3, outside=0.2), "operators", ("small_operators", "graphs")),
        (on_a_device(outside=0.3), "outside", ("python",)),
        (on_a_device(device=0.3), "device", ("graphs",)),
        (on_a_device(unlinked=0.3), "unlinked", ()),
        (on_a_device(copying=0.3, pageable=0.3), "copies", ("pin_memory",)),
        (on_a_device(copying=0.3), "copies", ("overlap_copies",)),
        (on_a_host(data_s=0.7, loader="process"), "data", ("workers",)),
        (on_a_host(data_s=0.7, loader="workers"), "data", ("more_workers",)),
        (on_a_host(data_s=0.7), "data", ("load_ahead",)),
        (on_a_host(operators_s=0.2), "outside", ("python",)),
        (
            on_a_host(
                OperatorTimes(operator="aten::add", calls=80_000, host_s=0.4), operators_s=0.9
            ),
            "operators",
            ("small_operators",),
        ),
    ],
)
def test_names_what_limits_a_step_and_its_cure(profile, reason, cures):
    first = find_limits(profile).limits[0]

    assert (first.reason, first.cures) == (reason, cures)


@pytest.mark.parametrize(
    "profile",
    [
        on_a_device(data=0.04, device=0.03),
        on_a_host(OperatorTimes(operator="aten::mm", calls=2, host_s=0.9), operators_s=0.97),
    ],
)
def test_a_step_that_works_is_limited_by_nothing_else(profile):
    limits = find_limits(profile)

    assert limits.limits == ()
    assert limits.busy > 0.9


def test_names_the_line_that_waits_for_the_device():
    often, seldom = (
        a_use("aten::item", calls, function, line=line)
        for calls, function, line in ((4, "log_loss", 88), (1, "accuracy", 12))
    )

    limit = find_limits(on_a_device(seldom, often, synchronisation=0.5)).limits[0]

    assert (limit.place, limit.line) == (a_function("log_loss"), 88)


def test_names_the_function_that_loads():
    functions = (
        timed("Net.forward", 0.3),
        timed("tidy", 0.1, phase="data"),
        timed("read", 0.55, phase="data"),
    )

    limit = find_limits(on_a_host(data_s=0.7, functions=functions)).limits[0]

    assert limit.place == a_function("read")


def test_names_the_function_in_which_python_takes_longest():
    functions = (timed("read", 0.9, phase="data"), timed("check", 0.2), timed("Net.forward", 0.1))

    limit = find_limits(on_a_device(outside=0.4, functions=functions)).limits[0]

    assert limit.place == a_function("check")


@pytest.mark.parametrize(
    ("profile", "why"),
    [
        (StepProfile(steps=0, absent="it failed"), "it failed"),
        (StepProfile(steps=2, missing={"trace": "no time was left"}), "no time was left"),
        (
            StepProfile(
                steps=2, host=HostTimes(steps=2, step_s=0.1), missing={"device": "CUPTI is refused"}
            ),
            "CUPTI is refused",
        ),
        (StepProfile(steps=2), "the profile has no trace of torch's profiler"),
        (on_a_host().__class__(steps=2, host=HostTimes(steps=0, step_s=0.0)), "the profile has"),
    ],
)
def test_says_why_nothing_is_known(profile, why):
    limits = find_limits(profile)

    assert limits.part == ""
    assert limits.absent.startswith(why)


def pairs(*shares):
    """One pair for each share of synchronisation in base and head, the rest being equal."""
    return [
        ProfiledPair(
            base=on_a_device(synchronisation=base, outside=0.2),
            head=on_a_device(synchronisation=head, outside=0.2),
        )
        for base, head in shares
    ]


def test_compares_sides_by_what_grew_most():
    base = on_a_device(data=0.3, outside=0.1, device=0.05)
    head = on_a_device(data=0.3, outside=0.15, device=0.05, synchronisation=0.2)

    grown = find_growth([ProfiledPair(base=base, head=head)] * 3)

    assert grown is not None
    assert reasons(grown) == ["synchronisation", "outside"]
    assert [(part.share_base, part.share) for part in grown.limits] == [(0, 0.2), (0.1, 0.15)]
    assert grown.busy_base == pytest.approx(0.55)
    assert grown.busy == pytest.approx(0.3)


def test_takes_the_median_over_pairs():
    grown = find_growth(pairs((0.1, 0.2), (0.11, 0.3), (0.0, 0.7)))

    assert grown is not None
    assert (grown.limits[0].share_base, grown.limits[0].share) == (0.1, 0.3)


@pytest.mark.parametrize(
    "shares",
    [
        [(0.1, 0.1)] * 3,
        [(0.1, 0.12)] * 3,
        [(0.2, 0.1)] * 3,
        [(0.1, 0.3), (0.1, 0.3), (0.2, 0.1)],
        [(0.1, 0.3), (0.1, 0.3), (0.29, 0.6)],
        [(0.1, 0.3)] * 2,
        [],
    ],
)
def test_nothing_grew_unless_three_pairs_say_so(shares):
    assert find_growth(pairs(*shares)) is None


def test_a_function_that_loads_is_no_python_of_the_step():
    def outside(name):
        profile = on_a_host(functions=(timed(name, 0.5),), data_s=0.3, loader="workers")
        return next(each for each in find_limits(profile).limits if each.reason == "outside")

    assert (outside("Net.forward").place, outside("Net.forward").cures) == (
        a_function("Net.forward"),
        ("python",),
    )
    assert (outside("Slow.__getitem__").place, outside("Slow.__getitem__").cures) == (None, ())


def test_a_side_without_a_device_is_not_compared_with_one():
    for base in (on_a_host(), StepProfile(steps=2)):
        assert find_growth([ProfiledPair(base=base, head=on_a_device(data=0.5))] * 3) is None


def test_a_step_without_a_trace_is_judged_by_the_functions_that_load():
    functions = (timed("read", 0.6, phase="data"), timed("Net.forward", 0.3))
    known = StepProfile(steps=2, step_s=1.0, functions=functions)

    limits = find_limits(known)

    assert (limits.part, limits.busy, reasons(limits)) == ("host", 0.0, ["data"])
    assert limits.limits[0].share == pytest.approx(0.6)
    assert limits.limits[0].place == a_function("read")
    nothing = find_limits(msgspec.structs.replace(known, functions=functions[1:]))
    assert nothing.absent == "the profile has no trace of torch's profiler"


STARVED = [ProfiledPair(base=on_a_device(data=0.1), head=on_a_device(data=0.6))] * 3


def test_an_explanation_says_what_grew_and_names_the_traces():
    base, head = (
        msgspec.structs.replace(side, trace_file=f"w.{name}.pt.trace.json.gz", step_s=step_s)
        for name, side, step_s in (("base", STARVED[0].base, 1.0), ("head", STARVED[0].head, 2.0))
    )
    profiled = both(base, head, pairs=3)

    loss, gain = (causes.explain(profiled, is_gain=is_gain) for is_gain in (False, True))

    assert loss.limits is not None
    assert reasons(loss.limits) == ["data"]
    assert loss.traces == ("w.base.pt.trace.json.gz", "w.head.pt.trace.json.gz")
    assert gain.limits is None


def test_growth_of_memory_is_explained_by_nothing_that_only_times_show():
    base, head = (
        msgspec.structs.replace(side, step_s=1.0) for side in (STARVED[0].base, STARVED[0].head)
    )

    def limits_of(metric):
        row = a_change(verdict=Verdict.REGRESSED, metric=metric)
        starved = both(base, head, workload="mlp", pairs=3)
        (explained,) = causes.attach_explanations([row], [starved], on_device=["mlp"])
        assert isinstance(explained, Change)
        return explained.explanation and explained.explanation.limits

    assert limits_of(metrics.STEP_TIME) is not None
    assert limits_of(metrics.HOST_RSS_PEAK) is None


@pytest.mark.parametrize("count", [1, 3])
def test_a_check_says_that_the_profiler_was_refused_the_gpu(count):
    refused = msgspec.structs.replace(
        on_a_host(), step_s=1.0, missing={"device": "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES"}
    )
    slower = msgspec.structs.replace(refused, step_s=2.0)

    explanation = causes.explain(both(refused, slower, pairs=count), is_gain=False)

    assert explanation.limits is not None
    assert not explanation.limits.limits
    *_, note = report.describe((), explanation)
    assert isinstance(note, tuple)
    assert "What limits a step is not known: CUPTI_ERROR_INSUFFICIENT_PRIVILEGES." in "".join(note)


def test_longer_names_than_a_launch_writes_are_refused():
    use = FunctionUse(function=a_function("x" * 201), calls=1)

    with pytest.raises(InvalidFileError, match=r"functions\[0\]"):
        codec.decode(codec.encode(StepProfile(steps=2, functions=(use,))), StepProfile, name="it")


@pytest.mark.parametrize(
    "times",
    [
        {"span_s": 0.0, "busy_s": 1e9},
        {"span_s": 1e-9, "busy_s": 1e9, "copying_s": 1e9, "pageable_s": 1e9},
        {"span_s": 1e9, "busy_s": 0.0},
    ],
)
def test_times_that_contradict_each_other_end_in_an_answer(times):
    lying = StepProfile(
        steps=2,
        device=DeviceTimes(work=0, idle=(DeviceIdle(reason="data", idle_s=1e9),) * 9, **times),
        host=HostTimes(steps=0, step_s=1e-9, data_s=1e9, operators_s=1e9, waiting_s=1e9),
    )

    assert len(find_limits(lying).limits) <= 6
    assert find_growth([ProfiledPair(base=lying, head=lying)] * 3) is None
