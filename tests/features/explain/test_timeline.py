"""Traces of a GPU that the tests make: why the device is idle, and what it works for."""

import time

import pytest

pytest.importorskip("torch")

from tests.features.explain.profiler_events import Trace


def starved_by_phase(runtime="cuda"):
    trace = Trace(runtime=runtime).kernel(0, 2, 100).phase("data", 110, 1000)
    return trace.kernel(1010, 1012, 1100)


def starved_by_loader(runtime="cuda"):
    trace = Trace(runtime=runtime).kernel(0, 2, 100)
    trace.phase("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 100, 1000)
    return trace.operator("aten::mm", 1000, 1020).kernel(1010, 1012, 1100)


def loading_in_another_thread(runtime="cuda"):
    trace = Trace(runtime=runtime).kernel(0, 2, 100).phase("data", 100, 1000)
    return trace.copy(1000, 1002, 1100, thread=200)


def data_with_operators(runtime="cuda"):
    trace = Trace(runtime=runtime).kernel(0, 2, 100).phase("data", 100, 1000)
    return trace.operator("aten::stack", 100, 990).kernel(1000, 1002, 1100)


def drained_by_item(runtime="cuda"):
    """The host reads a number, and only then goes on: it could have launched 800 earlier."""
    trace = Trace(runtime=runtime).kernel(0, 2, 900)
    trace.operator("aten::_local_scalar_dense", 95, 910)
    trace.copy(100, 900, 902, "DtoH (Device -> Pageable)", lasts=803).wait(904, 908)
    return trace.operator("aten::mm", 950, 1010).kernel(1000, 1002, 1100)


def drained_by_synchronize(runtime="cuda"):
    trace = Trace(runtime=runtime).kernel(0, 2, 900).wait(10, 901, "DeviceSynchronize")
    return trace.kernel(1000, 1002, 1100)


def waited_less_than_the_gap(runtime="cuda"):
    """Without a wait of 60 the host would be 60 earlier; the rest is Python."""
    return Trace(runtime=runtime).kernel(0, 2, 900).wait(842, 902).kernel(1000, 1002, 1100)


def many_small_launches(runtime="cuda"):
    trace = Trace(runtime=runtime).operator("aten::layer_norm", 0, 300)
    return trace.kernel(0, 2, 5).kernel(100, 102, 105).kernel(200, 202, 205)


def python_between_launches(runtime="cuda"):
    return Trace(runtime=runtime).kernel(0, 2, 5).kernel(1000, 1002, 1005)


def compiled_code_that_calls_the_driver(runtime="cuda"):
    trace = Trace(runtime=runtime).kernel(0, 2, 5, "triton_poi_fused_add_0")
    return trace.span("cuModuleLoad", 5, 99).kernel(99, 100, 110)


def queued_behind_another_stream(runtime="cuda"):
    return Trace(runtime=runtime).kernel(0, 2, 100).kernel(5, 400, 500)


def slow_to_start(runtime="cuda"):
    return Trace(runtime=runtime).kernel(0, 2, 100).kernel(100, 160, 200)


def launched_before_the_trace_in_between(runtime="cuda"):
    return Trace(runtime=runtime).kernel(0, 2, 100).kernel(None, 400, 500).kernel(450, 500, 600)


@pytest.mark.parametrize(
    ("make", "most", "idle_us"),
    [
        (starved_by_phase, "data", 912),
        (starved_by_loader, "data", 912),
        (loading_in_another_thread, "data", 902),
        (data_with_operators, "data", 902),
        (drained_by_item, "synchronisation", 100),
        (drained_by_synchronize, "synchronisation", 102),
        (waited_less_than_the_gap, "synchronisation", 102),
        (many_small_launches, "operators", 194),
        (python_between_launches, "outside", 997),
        (compiled_code_that_calls_the_driver, "operators", 95),
        (queued_behind_another_stream, "device", 300),
        (slow_to_start, "device", 60),
        (launched_before_the_trace_in_between, "unlinked", 300),
    ],
)
@pytest.mark.parametrize("runtime", ["cuda", "hip"])
def test_names_why_the_device_was_idle(make, most, idle_us, runtime):
    device = make(runtime).device()

    assert device.idle[0].reason == most
    assert round(sum(part.idle_s for part in device.idle) * 1e6) == idle_us
    assert device.span_s == pytest.approx(
        device.busy_s + sum(part.idle_s for part in device.idle), rel=1e-9
    )


def test_a_wait_is_blamed_only_for_its_part_of_the_gap_that_it_touches():
    trace = Trace().kernel(0, 2, 900).wait(10, 901).kernel(910, 912, 920).kernel(1500, 1501, 1510)

    assert waited_less_than_the_gap().idle() == {"synchronisation": 60, "outside": 40, "device": 2}
    assert trace.idle() == {"outside": 580, "synchronisation": 10, "device": 3}
    idle = drained_by_item().device().idle[0]
    assert (idle.operator, idle.call) == ("aten::_local_scalar_dense", "cudaMemcpyAsync")


def test_streams_that_overlap_are_busy_once_and_copies_alone_are_counted():
    trace = Trace().kernel(0, 2, 100).copy(1, 50, 150).kernel(2, 150, 200)

    device = trace.device(steps=2)

    assert device.busy_s == pytest.approx(99e-6)
    assert device.copying_s == pytest.approx(25e-6)
    assert device.pageable_s == pytest.approx(50e-6)
    assert device.work == 1.5


def test_work_of_steps_before_the_trace_is_not_its_time():
    trace = Trace().kernel(None, 0, 1000).kernel(1500, 1600, 1700).kernel(1550, 1700, 1800)

    device = trace.device()

    assert device.span_s == pytest.approx(200e-6)
    assert device.unlinked == 1


def test_describes_the_device_that_works_longest():
    trace = Trace().kernel(0, 2, 100, device=1).kernel(5, 400, 900, device=3)

    device = trace.device()

    assert device.span_s == pytest.approx(500e-6)


def test_times_operators_by_what_they_do_themselves():
    trace = Trace().step(1, 0, 1000).step(2, 1000, 2000)
    trace.operator("aten::linear", 0, 100).operator("aten::addmm", 20, 80).kernel(50, 200, 260)
    trace.operator("aten::item", 300, 400).wait(310, 390)

    host, _ = trace.read(steps=2)

    assert {use.operator: (use.calls, round(use.host_s * 1e6)) for use in host.operators} == {
        "aten::linear": (0.5, 20),
        "aten::addmm": (0.5, 30),
        "aten::item": (0.5, 50),
    }
    waits = {use.operator: round(use.wait_s * 1e6) for use in host.operators if use.wait_s}
    assert waits == {"aten::item": 40}
    works = {use.operator: round(use.device_s * 1e6) for use in host.operators if use.device_s}
    assert works == {"aten::addmm": 30}
    assert (host.steps, host.step_s) == (2, pytest.approx(1e-3))
    assert host.waiting_s == pytest.approx(40e-6)
    assert host.operators_s == pytest.approx(60e-6)


@pytest.mark.parametrize(
    ("iterator", "loader"),
    [("_SingleProcessDataLoaderIter", "process"), ("_MultiProcessingDataLoaderIter", "workers")],
)
def test_tells_who_loads(iterator, loader):
    trace = Trace().step(1, 0, 1000).phase(f"enumerate(DataLoader)#{iterator}.__next__", 0, 700)

    host, device = trace.read()

    assert (host.loader, round(host.data_s * 1e6)) == (loader, 700)
    assert device is None


def test_long_and_many_names_stay_small():
    trace = Trace().step(1, 0, 10_000)
    for number in range(1000):
        trace.operator(f"\u202e<b>::error::{number}" + "x" * 10_000, 10 * number, 10 * number + 5)

    host, _ = trace.read()

    assert max(len(use.operator) for use in host.operators) <= 200
    assert (len(host.operators), host.cut) == (200, 800)


def test_a_long_trace_is_read_in_time_that_grows_with_its_length():
    def takes(count):
        trace = Trace()
        for number in range(count):
            trace.operator("aten::mm", 10 * number, 10 * number + 9)
            trace.kernel(10 * number + 1, 10 * number + 5, 10 * number + 12).wait(
                10 * number + 7, 10 * number + 8
            )
        start = time.process_time()
        trace.read()
        return time.process_time() - start

    # The least of three: a collection of the garbage of all tests before takes a second.
    long, short = (min(takes(count) for _ in range(3)) for count in (4000, 500))
    assert long < 40 * max(short, 1e-3)
