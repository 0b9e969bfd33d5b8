"""How the agents of several nodes are started, and who may take part."""

import pytest

from ci_perf.errors import CiPerfError
from ci_perf.measuring import distributed, nodes


class Neighbour(distributed.Solo):
    """A rank beside another one, on a node of another kind or of the same."""

    def __init__(self, offset):
        self.offset = offset

    def gather(self, value):
        return (value, value + self.offset)


def test_a_job_of_slurm_starts_one_agent_on_each_node():
    words = nodes.command(3, {"SLURM_JOB_ID": "17"})

    assert words[0] == "srun"
    assert {"--nodes=3", "--ntasks=3", "--ntasks-per-node=1", "--export=ALL"} <= set(words)


def test_the_command_of_the_runner_comes_first():
    environment = {"SLURM_JOB_ID": "17", nodes.COMMAND: "on-each --count {nodes} 'a b'"}

    assert nodes.command(2, environment) == ["on-each", "--count", "2", "a b"]


@pytest.mark.parametrize(
    ("environment", "words"),
    [
        ({}, "expected a job of Slurm around ci-perf, or a command in CI_PERF_NODES_COMMAND"),
        ({nodes.COMMAND: "on-each 'a"}, "CI_PERF_NODES_COMMAND: expected a command, found"),
    ],
)
def test_without_a_command_it_is_said_what_to_do(environment, words):
    with pytest.raises(CiPerfError, match=words):
        nodes.command(2, environment)


def test_nodes_of_one_kind_measure_together_and_others_are_refused():
    distributed.check_alike(Neighbour(0.0), "cpu")

    with pytest.raises(CiPerfError, match="expected one kind of device on all nodes"):
        distributed.check_alike(Neighbour(1.0), "cpu")
