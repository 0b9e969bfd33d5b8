"""Times are what they seem, as relations: no absolute time stands here."""

import gc
import statistics
import time

import pytest
import torch

# What a block may differ by from a bare loop; other programs take a CPU away now and then.
NEAR = {"cpu": 0.1, "cuda:0": 0.01}
# Some 10 ms on a GPU of 2 GHz.
CYCLES = 20_000_000


def test_a_block_costs_nothing_beside_a_bare_loop(timed):
    step = timed.product()
    count = timed.warm(step)

    def bare_s():
        timed.device.synchronize()
        start = time.perf_counter()
        for _ in range(count):
            step()
        timed.device.synchronize()
        return (time.perf_counter() - start) / count

    both = [lambda: timed.device.time_block(step, count).step_s, bare_s]
    seconds: tuple[list[float], list[float]] = ([], [])
    gc.disable()
    for number in range(200):
        for which in (number % 2, 1 - number % 2):
            seconds[which].append(both[which]())
    gc.enable()

    # The quickest quarter: others make a block longer, never shorter.
    ours, bare = (statistics.quantiles(blocks, n=4)[0] for blocks in seconds)
    assert ours / bare == pytest.approx(1, abs=NEAR[timed.name])


@pytest.mark.gpu
def test_events_and_the_clock_of_the_host_agree(cuda):
    step = cuda.product()
    count = cuda.warm(step)

    blocks = [cuda.device.time_block(step, count) for _ in range(41)]

    ratio = statistics.median(block.device_s / block.step_s for block in blocks)
    assert 0.97 <= ratio <= 1.01, f"time by events over the host's: {ratio}"


@pytest.mark.gpu
def test_events_see_another_stream_as_far_as_the_current_one_waits_for_it(cuda):
    other = torch.cuda.Stream(cuda.name)

    def spin():
        torch.cuda._sleep(CYCLES)

    def alone():
        with torch.cuda.stream(other):
            spin()

    def joined():
        alone()
        torch.cuda.current_stream().wait_stream(other)

    cuda.warm(spin)
    kernel, seen, unseen = (
        statistics.median(cuda.device.time_block(step, 1).device_s for _ in range(11))
        for step in (spin, joined, alone)
    )
    whole = statistics.median(cuda.device.time_block(alone, 1).step_s for _ in range(11))

    assert seen / kernel == pytest.approx(1, abs=0.05)
    assert unseen / kernel < 0.2
    assert whole / kernel == pytest.approx(1, abs=0.1)


@pytest.mark.gpu
def test_a_captured_graph_computes_the_same_and_costs_the_host_less(cuda):
    values = torch.randn(1024, device=cuda.name)
    start = values.clone()

    def step():
        for _ in range(200):
            values.mul_(0.999).add_(0.001)

    other = torch.cuda.Stream(cuda.name)  # CUDA wants a step warm, on a stream of its own
    other.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(other):
        step()
    torch.cuda.current_stream().wait_stream(other)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    results, issued = [], []
    for run in (step, graph.replay):
        values.copy_(start)
        run()
        results.append(values.clone())
        cuda.warm(run)
        issued.append(statistics.median(cuda.device.time_block(run, 1).issue_s for _ in range(41)))

    assert torch.equal(*results)
    assert issued[1] < 0.5 * issued[0]
