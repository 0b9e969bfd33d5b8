"""Ranks on several nodes: an agent on each, started by a command that stands in for a cluster's.

The agents meet over loopback, as those of real nodes do over their network.
"""

import shlex
import sys

import pytest

from ci_perf.model import task
from ci_perf.model.process import Phase
from tests.processes import is_alive
from tests.ranks import Launch

# What `srun` does: the same program once per node, in the same folder; who fails ends the others.
# A signal is passed on.
EACH_NODE = """
import signal, subprocess, sys, time
agents = [subprocess.Popen(sys.argv[2:]) for _ in range(int(sys.argv[1]))]
signal.signal(signal.SIGUSR1, lambda number, _: [agent.send_signal(number) for agent in agents])
while any(agent.poll() is None for agent in agents):
    if any(agent.poll() for agent in agents):
        time.sleep(1)
        for agent in agents:
            agent.terminate()
    time.sleep(0.05)
sys.exit(max(abs(agent.returncode) for agent in agents))
"""
SUMS = """
import os, time
import torch
from pathlib import Path
from torch import distributed
from ci_perf.workload import Workload
def build(context):
    Path(context.data_dir, f"pid.{context.rank}").write_text(str(os.getpid()))
    total = torch.ones(4)
    def step():
        FAULT
        time.sleep(0.001)
        distributed.all_reduce(total)
        total.fill_(1)
    return Workload(step=step, local_step=lambda: total.add(1))
"""


class Cluster(Launch):
    """Two nodes, both of them this host."""

    def __init__(self, folder):
        super().__init__(folder)
        (folder / "each_node.py").write_text(EACH_NODE)
        self.starter = shlex.join([sys.executable, str(folder / "each_node.py"), "{nodes}"])

    @property
    def environment(self):
        return {
            **super().environment,
            "CI_PERF_NODES_COMMAND": self.starter,
            "GLOO_SOCKET_IFNAME": "lo",
        }

    def summing(self, fault="pass", slot=None):
        """Write a task whose ranks add up what they have, and run it."""
        file = self.modules / "sums.py"
        file.write_text(SUMS.replace("FAULT", fault))
        self.planned(file, nodes=2)
        return self.real(agent=task.NODES, slot=slot)

    def started(self, _child):
        """See ChildSlot."""

    def clock(self):
        """Let the time limit pass once a step of both ranks has begun, however long that takes."""
        return 1e9 * all((self.modules / f"step.{rank}").exists() for rank in range(2))

    @property
    def pids(self):
        return [int((self.modules / f"pid.{rank}").read_text()) for rank in range(2)]


@pytest.fixture
def cluster(tmp_path):
    return Cluster(tmp_path)


def test_ranks_of_two_nodes_are_one_result(cluster):
    ended = cluster.summing()

    assert ended.code == 0, ended.tail
    ranks = cluster.result.process.ranks
    assert (ranks.world_size, ranks.restarts, ranks.backend) == (2, 0, "gloo")
    assert ranks.arrival_skew_s is None  # two hosts have two clocks


def test_the_node_whose_rank_fails_says_why(cluster):
    fault = "assert context.rank == 0, 'the second node has no data'"

    ended = cluster.summing(fault)

    assert ended.code == 1
    reason = cluster.trouble.reason
    assert reason == "rank 1 of 2: AssertionError: the second node has no data"
    assert "sums.py" in cluster.trouble.output
    assert not any(is_alive(pid) for pid in cluster.pids)


def test_a_hang_on_one_of_two_nodes_is_ended_and_every_rank_says_where(cluster):
    begun = "Path(context.data_dir, f'step.{context.rank}').touch()"

    ended = cluster.summing(f"{begun}; time.sleep(600 * context.rank)", slot=cluster)

    assert ended.timed_out
    assert not any(is_alive(pid) for pid in cluster.pids)
    assert (cluster.folder / task.PHASE).read_text() == "first_step"
    assert "rank 0:\n" in ended.tail
    assert "rank 1:\n" in ended.tail
    assert ended.tail.count("sums.py") == 2  # a stack of each


def test_a_command_that_starts_nothing_is_named(cluster):
    cluster.starter = "false"

    ended = cluster.summing()

    assert ended.code == 1
    assert cluster.trouble.phase is Phase.LAUNCH
    assert cluster.trouble.reason.startswith("false ended with exit code 1, and no node says why")
    assert "TMPDIR" in cluster.trouble.reason
