"""A real Ray of two nodes: what is measured, lost, tried again and interrupted."""

import signal
import socket
from pathlib import Path

import pytest

from ci_perf.model.run import Run
from ci_perf.system import files, processes
from tests import ray_cluster
from tests.features.fleet import fleets
from tests.processes import is_alive, wait_until

ONE = ("--option", "num_cpus=1")


@pytest.fixture(scope="module")
def cluster():
    with ray_cluster.running({"A_TOKEN_OF_SOMEBODY": "secret"}) as running:
        yield running


def measuring(fleet):
    """Return the processes of the unit that hangs, on whatever node."""
    found = []
    for process in processes.below(1):
        try:
            command = Path(f"/proc/{process.pid}/cmdline").read_bytes()
        except OSError:
            continue
        if b"measure\0--plan" in command and f"{fleet.folder}/fleet/2-of-2".encode() in command:
            found.append(process.pid)
    return found


def test_units_are_measured_on_the_nodes_of_ray(cluster, tmp_path):
    fleet = fleets.planned(tmp_path, hangs=True)
    controller = fleet.start("ray", *ONE, RAY_ADDRESS=cluster.address)
    wait_until(lambda: measuring(fleet))
    (unit, *_) = measuring(fleet)
    assert "A_TOKEN_OF_SOMEBODY" not in Path(f"/proc/{unit}/environ").read_text()
    fleet.waits.unlink()
    _, err = controller.communicate(timeout=300)

    assert controller.returncode == 0, err
    assert fleet.merge().code == 0
    sessions = files.read(tmp_path / "run.json", Run).sessions
    assert sorted(each.unit for each in sessions) == ["1-of-2", "2-of-2"]


def test_a_head_that_does_not_answer_is_named_at_once(tmp_path):
    fleet = fleets.planned(tmp_path)
    with socket.socket() as nobody_listens:
        nobody_listens.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{nobody_listens.getsockname()[1]}"

        done = fleet.run("ray", *ONE, RAY_ADDRESS=address)

    assert done.code == 3
    assert f"error: Ray at '{address}': expected a cluster of Ray 2." in done.err
    assert "[Errno 111] Connection refused" in done.err


@pytest.mark.fleet
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_where_the_command_ends_its_units_end_with_it(cluster, tmp_path, number):
    fleet = fleets.planned(tmp_path, hangs=True)
    controller = fleet.start("ray", *ONE, RAY_ADDRESS=cluster.address)
    wait_until(lambda: measuring(fleet))
    left = measuring(fleet)

    controller.send_signal(number)
    controller.communicate(timeout=300)

    assert controller.returncode == (-9 if number == signal.SIGKILL else 130)
    wait_until(lambda: not any(map(is_alive, left)))


@pytest.mark.fleet
def test_the_unit_of_a_node_that_dies_is_measured_on_the_other(tmp_path):
    with ray_cluster.running({}) as mortal:
        fleet = fleets.planned(tmp_path, hangs=True)
        controller = fleet.start("ray", *ONE, RAY_ADDRESS=mortal.address)
        wait_until(lambda: measuring(fleet))
        mortal.loses("node n2")
        fleet.waits.unlink()
        _, err = controller.communicate(timeout=300)

    assert controller.returncode == 0, err
    assert (tmp_path / "fleet/2-of-2/run.json").exists()
