"""Whoever replaces a clock of the process is named."""

import sys
import time
from types import ModuleType

import pytest

from ci_perf.measuring import clocks
from ci_perf.measuring.device import Device


def test_a_process_begins_with_its_own_clocks():
    assert clocks.find_replaced() == ()


@pytest.mark.parametrize("name", ["time", "perf_counter_ns", "monotonic"])
def test_a_clock_of_time_is_named(monkeypatch, name):
    monkeypatch.setattr(time, name, lambda: 0)

    assert clocks.find_replaced() == (f"time.{name}",)


def test_our_own_timing_is_named(monkeypatch):
    monkeypatch.setattr(Device, "time_block", lambda *_: None)

    assert clocks.find_replaced() == ("Device.time_block",)


class Event:
    """An event whose functions come from this file, as if it were one of torch."""

    def record(self):
        """Do nothing."""

    def synchronize(self):
        """Do nothing."""

    elapsed_time = max  # as one of C


def install(monkeypatch, file, synchronize):
    """Let this file be torch, which lies in the folder of `file`."""
    torch, cuda = ModuleType("torch"), ModuleType("torch.cuda")
    vars(torch)["__file__"] = file
    vars(cuda).update(Event=Event, synchronize=synchronize)
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setitem(sys.modules, "torch.cuda", cuda)


@pytest.mark.parametrize(
    ("file", "found"),
    [
        (__file__, ()),
        ("/elsewhere/torch/__init__.py", ("Event.record", "Event.synchronize", "synchronize")),
    ],
)
def test_a_clock_of_torch_comes_from_a_file_of_torch(monkeypatch, file, found):
    install(monkeypatch, file, Event.synchronize)

    assert clocks.find_replaced() == tuple(f"torch.cuda.{name}" for name in found)


def test_what_is_no_function_is_named(monkeypatch):
    install(monkeypatch, __file__, object())

    assert clocks.find_replaced() == ("torch.cuda.synchronize",)
