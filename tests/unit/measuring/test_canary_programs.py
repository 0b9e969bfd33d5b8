import itertools
import json
import os
import subprocess
import sys
import types
from pathlib import Path

import msgspec
import pytest

from ci_perf.measuring import canary_programs
from ci_perf.measuring.canary_programs import CPU, GPU
from ci_perf.measuring.device import Block

QUICK = msgspec.structs.replace(CPU, warmup_s=1.0, timed_s=2.0)


class Machine:
    """A device and its clock: every step takes the next of these seconds."""

    def __init__(self, *steps_s):
        self._steps_s = itertools.chain(steps_s[:-1], itertools.repeat(steps_s[-1]))
        self.now = 0.0
        self.counts = []

    def clock(self):
        return self.now

    def time_block(self, step, count):
        step()
        step_s = next(self._steps_s)
        self.counts.append(count)
        self.now += count * step_s
        return Block(step_s=step_s, device_s=None, issue_s=None, steps_s=(step_s,) * count)


def measured(machine, **programs):
    return canary_programs.measure(machine, programs, QUICK, clock=machine.clock).median_s


def nothing():
    pass


def test_a_canary_is_timed_once_it_is_warm_and_a_few_disturbed_blocks_do_not_show():
    assert measured(Machine(0.9, 0.2, 0.1), matmul=nothing) == {"matmul": 0.1}
    assert measured(Machine(1.5, 0.1, 9e-2, 0.1, 0.7, 0.1), matmul=nothing) == {"matmul": 0.1}


def test_short_steps_are_put_together_in_blocks():
    machine = Machine(0.5, 1e-3)

    measured(machine, matmul=nothing)

    assert machine.counts[-1] == 10


def test_a_step_longer_than_the_time_for_it_is_still_timed():
    machine = Machine(60.0)

    assert measured(machine, matmul=nothing) == {"matmul": 60.0}
    assert machine.counts == [1, 1]


def test_every_program_gets_its_own_time():
    calls = []

    found = measured(
        Machine(0.5), copy=lambda: calls.append("copy"), matmul=lambda: calls.append("matmul")
    )

    assert list(found) == ["copy", "matmul"]
    assert calls.count("copy") == calls.count("matmul") > 2


@pytest.mark.parametrize("sizes", [CPU, GPU], ids=["cpu", "gpu"])
def test_the_canaries_of_a_session_cost_seconds_and_little_memory(sizes):
    matrices = 3 * sizes.side**2 * {"float32": 4, "float16": 2}[sizes.dtype]

    assert 3 * (sizes.warmup_s + sizes.timed_s) <= 6
    assert matrices + 2 * sizes.copy_bytes < 2 * 2**30


def child(folder, *, cwd, environment):
    """Run the child as the launcher does; its parent is this process."""
    done = subprocess.run(
        [
            *(sys.executable, "-P", "-m", "ci_perf.measuring.canary_programs"),
            *(str(folder), str(os.getpid()), "cpu", "1"),
        ],
        cwd=cwd,
        env=environment,
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return json.loads((folder / "result.json").read_text())["median_s"]


def test_the_child_measures_with_the_real_torch(tmp_path):
    found = child(tmp_path, cwd=tmp_path, environment=os.environ)

    assert sorted(found) == ["launch_latency", "matmul_random", "memory_copy"]
    assert all(seconds > 0 for seconds in found.values())


def test_without_torch_there_are_no_canaries(tmp_path):
    """As on a machine where it is not installed: here an import of it fails."""
    (tmp_path / "torch.py").write_text("raise ImportError('none')\n")
    here = str(Path(canary_programs.__file__).parents[2])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), here])}

    assert child(tmp_path, cwd=tmp_path, environment=environment) == {}


def test_the_matrices_hold_the_same_random_numbers_in_every_process():
    torch = pytest.importorskip("torch")
    seen = []
    spy = types.SimpleNamespace(**vars(torch))
    spy.mm = lambda left, right, **_: seen.append((left, right))

    for seed in (1, 2):  # whatever else has drawn random numbers
        torch.manual_seed(seed)
        canary_programs.programs(spy, "cpu", CPU)["matmul_random"]()

    (left, right), again = seen
    assert torch.equal(left, again[0])
    assert torch.equal(right, again[1])
    assert left.unique().numel() > 0.9 * left.numel()
    assert not torch.equal(left, right)
