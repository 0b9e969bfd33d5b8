import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from ci_perf.measuring import distributed


class Together:
    """Two ranks as threads of this process."""

    def __init__(self):
        self.meeting = threading.Barrier(2, timeout=60)
        self.values = [0.0, 0.0]

    def ranks(self):
        return [OneOfTwo(self, rank) for rank in range(2)]


class OneOfTwo(distributed.Group):
    world_size = 2

    def __init__(self, together, rank):
        self.together, self.rank = together, rank

    def barrier(self):
        self.together.meeting.wait()

    def gather(self, value):
        self.together.values[self.rank] = value
        self.barrier()
        values = tuple(self.together.values)
        self.barrier()
        return values


class Instant:
    """A device that never keeps anybody waiting."""

    def synchronize(self):
        pass


@pytest.mark.parametrize(
    ("device", "rank", "expected"),
    [
        ("cpu", 1, "cpu"),
        ("cuda:0", 0, "cuda:0"),
        ("cuda:0", 3, "cuda:3"),
        ("cuda:2", 1, "cuda:3"),
        ("cuda", 1, "cuda:1"),
    ],
)
def test_gpus_are_dealt_out_in_order_from_the_first(device, rank, expected):
    assert distributed.device_of_rank(device, rank) == expected


def test_a_process_of_its_own_agrees_with_itself():
    alone = distributed.Group()

    assert (alone.rank, alone.world_size) == (0, 1)
    assert alone.maximum(3.5) == 3.5
    assert alone.gather(3.5) == (3.5,)
    assert alone.describe(None) is None


def test_nobody_who_is_alone_imports_torch():
    source = (
        "import sys\nfrom ci_perf.measuring import distributed\n"
        "distributed.Group().barrier()\nsys.exit('torch' in sys.modules)"
    )

    assert subprocess.run([sys.executable, "-c", source], check=False).returncode == 0


def test_the_skew_is_the_median_over_the_steps_after_the_first():
    # Apart by 9 in the first step, which does not count, then by 1, 3 and 2.
    clocks = [[0.0, 10.0, 20.0, 30.0], [9.0, 11.0, 23.0, 28.0]]

    def skew(group, times):
        clock = iter(times).__next__
        return distributed.arrival_skew(group, Instant(), lambda: None, 3, clock=clock)

    groups = Together().ranks()
    with ThreadPoolExecutor() as pool:
        assert list(pool.map(skew, groups, clocks)) == [2.0, 2.0]


def test_without_a_local_step_or_another_process_there_is_no_skew():
    (group, _) = Together().ranks()

    assert distributed.arrival_skew(group, Instant(), None, 5) is None
    assert distributed.arrival_skew(distributed.Group(), Instant(), lambda: None, 5) is None
