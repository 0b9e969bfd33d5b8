"""A real Slurm of two nodes: what is measured, lost, requeued, refused and interrupted."""

import signal
from pathlib import Path

import pytest

from ci_perf.model.run import Run
from ci_perf.system import files, processes
from tests.features.fleet import fleets
from tests.processes import is_alive, wait_until

GPU = ("--option", "--partition=gpu", "--option", "--gres=gpu:1")


def measuring(node):
    """Return the processes of a node's units."""
    return [
        pid
        for pid in processes.find_carrying("SLURMD_NODENAME", node)
        if b"ci_perf" in _bytes(pid, "cmdline")
    ]


def _bytes(pid, name):
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:
        return b""


def test_units_are_measured_on_the_nodes_of_slurm(cluster, tmp_path):
    fleet = fleets.planned(tmp_path)
    done = fleet.run("slurm", *GPU, A_TOKEN_OF_SOMEBODY="secret")

    assert done.code == 0, done.err
    assert fleet.merge().code == 0
    sessions = files.read(tmp_path / "run.json", Run).sessions
    assert sorted(each.unit for each in sessions) == ["1-of-2", "2-of-2"]
    ends = [(tmp_path / "fleet" / unit.id / "ended.txt").read_text() for unit in fleet.plan.units]
    assert sorted(ends) == ["exit code 0 on n1\n", "exit code 0 on n2\n"]
    assert cluster.queue() == []


@pytest.mark.fleet
def test_what_slurm_refuses_has_its_words(cluster, tmp_path):
    done = fleets.planned(tmp_path).run("slurm", "--option", "--partition=nope")

    assert done.code == 3
    assert "error: sbatch: exit code 1: " in done.err
    assert "invalid partition specified: nope" in done.err
    assert cluster.queue() == []


@pytest.mark.fleet
def test_an_interrupt_leaves_no_job_and_no_process(cluster, tmp_path):
    fleet = fleets.planned(tmp_path, hangs=True)
    controller = fleet.start("slurm", *GPU, "--at-once", "1")
    wait_until((tmp_path / "fleet/1-of-2/run.json").exists)
    wait_until(lambda: measuring("n1") or measuring("n2"))
    left = [*measuring("n1"), *measuring("n2")]

    controller.send_signal(signal.SIGINT)
    controller.communicate(timeout=300)

    assert controller.returncode == 130
    wait_until(lambda: cluster.queue() == [])
    wait_until(lambda: not any(map(is_alive, left)))


@pytest.mark.fleet
def test_the_unit_of_a_node_that_dies_is_requeued_by_slurm(cluster, tmp_path):
    fleet = fleets.planned(tmp_path, hangs=True)
    controller = fleet.start("slurm", *GPU, "--at-once", "1")
    wait_until((tmp_path / "fleet/1-of-2/run.json").exists)
    wait_until(lambda: measuring("n1") or measuring("n2"))
    lost = "n1" if measuring("n1") else "n2"
    try:
        cluster.loses(lost)
        fleet.waits.unlink()
        _, err = controller.communicate(timeout=300)
    finally:
        cluster.start_node(lost)
        cluster.wait_until_idle()

    assert controller.returncode == 0, err
    other = {"n1": "n2", "n2": "n1"}[lost]
    assert (tmp_path / "fleet/2-of-2/ended.txt").read_text() == f"exit code 0 on {other}\n"
