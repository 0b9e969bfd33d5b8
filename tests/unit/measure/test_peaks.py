"""The memory pass: whose peaks are read, and what several ranks make of them."""

import pytest

from ci_perf.measure import peaks
from ci_perf.measure.device import CpuDevice, CudaDevice
from ci_perf.measure.distributed import Solo
from tests.fakes.stream import Stream

KIB = 1024


class Ranks(Solo):
    """This rank and others, each of which has used more than the one before it."""

    def __init__(self, *more_bytes):
        self.more_bytes = more_bytes

    def gather(self, value):
        return (value, *(value if value < 0 else value + more for more in self.more_bytes))

    def maximum(self, value):
        return max(self.gather(value))


def taken(group, *, cards=1, allocator="native"):
    """Return the memory of a step that uses 1 KiB."""
    stream = Stream(allocator=allocator)
    cuda = CudaDevice(stream, 0, stream.clock, cards=cards)

    def step():
        give_back = stream.allocate(KIB)
        give_back()

    return peaks.take(cuda, step, 3, group)


def test_one_card_is_not_listed_a_second_time():
    found = taken(Solo())

    assert found.device.peak_allocated_bytes == KIB
    assert found.cards == ()


def test_every_card_of_data_parallel_is_recorded():
    found = taken(Solo(), cards=4)

    assert [card.peak_allocated_bytes for card in found.cards] == [KIB] * 4


def test_the_card_of_every_rank_is_recorded_and_the_highest_peak_counts():
    found = taken(Ranks(500, 100))

    assert [card.peak_allocated_bytes for card in found.cards] == [KIB, KIB + 500, KIB + 100]
    assert found.device.peak_allocated_bytes == KIB + 500


def test_what_no_rank_counts_is_absent():
    found = taken(Ranks(500), allocator="cudaMallocAsync")

    assert [card.alloc_retries for card in found.cards] == [None, None]
    assert found.device.out_of_memory is None


@pytest.mark.parametrize("group", [Solo(), Ranks(100)])
def test_a_cpu_has_no_cards(group):
    found = peaks.take(CpuDevice(), lambda: None, 1, group)

    assert (found.device, found.cards) == (None, ())
    assert found.host_rss_peak_bytes > KIB
