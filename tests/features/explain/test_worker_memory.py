"""Whose memory it is that tensors take, by real operators and in real launches."""

import gc
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
import torch

from ci_perf.features.explain.worker import memory
from ci_perf.features.explain.worker.origins import AuthorCode
from tests import profiled
from tests.launches import GOOD, HEAD, result_of

FLOAT = 4
HERE = Path(__file__)
# A gallery that keeps a second copy, and a step that keeps what it has found.
KEEPING = f"""{HEAD}
import torch
torch.manual_seed(0)
kept = []
class Gallery:
    def __init__(self, embeddings):
        self.embeddings = torch.nn.functional.normalize(embeddings)
        self.exact = embeddings.double()
    def search(self, query):
        with torch.no_grad():
            found = query @ self.embeddings.T
        kept.append(found.clone())
        cycle = [found]
        cycle.append(cycle)
def build(context):
    gallery = Gallery(torch.randn(1000, 64))
    model = torch.nn.Linear(64, 64)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    query = torch.randn(1, 64)
    def step():
        gallery.search(query)
        model(query).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    return Workload(step=step)
"""


def test_a_copy_that_build_makes_and_what_steps_leave_behind_are_named_by_line(tmp_path):
    source = KEEPING
    profile = result_of(profiled.launcher(tmp_path / "repository")(source))
    used = profile.memory

    def of(function, *, in_build):
        return {
            source.splitlines()[each.line - 1].strip(): (each.peak_bytes, each.growth_bytes)
            for each in used.allocations
            if each.caller and each.caller.function == function and each.in_build == in_build
        }

    assert profile.missing == {}
    assert of("Gallery.__init__", in_build=True) == {
        "self.embeddings = torch.nn.functional.normalize(embeddings)": (1000 * 64 * FLOAT, 0),
        "self.exact = embeddings.double()": (1000 * 64 * 2 * FLOAT, 0),
    }
    kept = "kept.append(found.clone())"
    assert of("Gallery.search", in_build=False)[kept][1] == 1000 * FLOAT
    # Momentum was made in the first step.
    assert of("build.<locals>.step", in_build=False)["optimizer.step()"] == (65 * 64 * FLOAT, 0)
    assert used.growth_bytes == 1000 * FLOAT
    assert used.peak_bytes == sum(each.peak_bytes for each in used.allocations)
    assert used.cut == 0


@pytest.fixture
def following():
    """Follow what the functions of this file make, which are the repository's here."""
    with memory.follow_storages(AuthorCode(str(HERE.parent)), time.monotonic() + 60) as followed:
        yield followed


def a_step(followed, step):
    """Return the peak of a step by function and operator, what it takes with it included."""
    followed.end_build()
    followed.begin()
    kept = step()
    followed.end_step()
    used = followed.read_use()
    del kept
    return {
        (each.operator, each.caller.function if each.caller else ""): each.peak_bytes
        for each in used.allocations
    }


def test_views_share_and_a_storage_is_followed_until_autograd_lets_it_go(following):
    weight = torch.ones(8, requires_grad=True)

    def saved_for_backward():
        return weight.exp().sin()[2:].view(2, 3).relu_().sum()

    sizes = a_step(following, lambda: saved_for_backward().backward())

    assert sizes["aten::exp", saved_for_backward.__qualname__] == 8 * FLOAT
    assert sizes["aten::sin", saved_for_backward.__qualname__] == 8 * FLOAT
    assert (
        sum(size for (name, _), size in sizes.items() if name in {"aten::slice", "aten::view"}) == 0
    )
    # Backward operators belong to the line of their forward operator.
    following.begin()
    gradient = saved_for_backward()
    gradient.backward()
    assert {each.caller.function for each in following.read_use().allocations if each.caller} <= {
        saved_for_backward.__qualname__,
        sys._getframe().f_code.co_qualname,
    }


def test_what_is_resized_counts_as_it_is(following):
    def grow():
        values = torch.empty(4)
        values.resize_(100)
        return values

    assert set(a_step(following, grow).values()) == {100 * FLOAT}


def test_arrays_of_numpy_count_where_torch_takes_them_and_other_threads_where_they_come_back(
    following,
):
    made = []
    thread = threading.Thread(target=lambda: made.append(torch.ones(50)))
    thread.start()
    thread.join()

    def take():
        return torch.from_numpy(np.ones(10)), made[0].view(5, 10), torch.ones(3, device="meta")

    assert a_step(following, take) == {
        ("aten::lift_fresh", take.__qualname__): 10 * 8,
        ("aten::view", take.__qualname__): 50 * FLOAT,
    }


def test_what_waits_for_the_collector_is_not_left_behind(following):
    def step():
        ring = [torch.ones(10)]
        ring.append(ring)

    gc.disable()
    try:
        following.end_build()
        following.begin()
        for _ in range(3):
            step()
            following.end_step()
    finally:
        gc.enable()

    assert (following.read_use().peak_bytes, following.read_use().growth_bytes) == (10 * FLOAT, 0)


def test_what_grows_is_not_cut_for_what_is_larger(following):
    lines = "[\n" + "torch.ones(1000),\n" * 150 + "]"
    larger = eval(compile(lines, str(HERE), "eval"))
    following.begin()
    leak = []
    for _ in range(2):
        leak.append(torch.ones(1))
        following.end_step()
    used = following.read_use()

    assert (len(used.allocations), used.growth_bytes) == (100, FLOAT)
    assert used.cut > 0
    assert used.allocations[-1].growth_bytes == FLOAT
    assert used.peak_bytes == sum(each.nbytes for each in (*larger, *leak))


def test_what_is_made_between_steps_is_nobodys_memory(following):
    """Ranks exchange numbers there; a thread that sends may hold them a while."""
    exchanged = []

    def step():
        following.is_paused = True
        exchanged.append(torch.ones(1))
        following.is_paused = False
        return torch.ones(4)

    assert list(a_step(following, step).values()) == [4 * FLOAT]


def test_time_that_is_over_ends_it(tmp_path):
    with memory.follow_storages(AuthorCode(str(tmp_path)), 0.0) as followed:
        ones = torch.ones(3)

    assert (followed.is_late, followed.read_use(), ones.tolist()) == (True, None, [1.0] * 3)


def test_without_torch_nothing_is_followed_and_the_profile_says_so(tmp_path):
    profile = result_of(profiled.launcher(tmp_path / "repository")(GOOD))

    assert profile.memory is None
    assert "torch had not been imported before `build`" in profile.missing["memory"]
