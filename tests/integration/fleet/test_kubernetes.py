"""Kubernetes by its command line: a `kubectl` of ours, whose pods are processes of this machine."""

import json
import signal
import sys
from pathlib import Path

import pytest

from ci_perf.model.fleet import EngineTables, FleetFile, KubernetesTable, NodeClass
from tests.fleets import a_task, attempts, kinds, pids, run_fleet, start_controller
from tests.processes import is_alive, wait_until

KUBECTL = Path(__file__).parents[2] / "fakes/kubectl.py"


@pytest.fixture
def cluster(tmp_path, monkeypatch):
    """The folder of a cluster that `kubectl` reaches."""
    folder = tmp_path / "cluster"
    folder.mkdir()
    program = tmp_path / "bin/kubectl"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} {KUBECTL} "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{Path(sys.executable).parent}:/usr/bin:/bin")
    monkeypatch.setenv("KUBECTL_CLUSTER", str(folder))
    return folder


def a_fleet(folder):
    table = KubernetesTable(
        image="ghcr.io/us/perf@sha256:0123",
        claim="perf",
        mount=str(folder),
        namespace="perf",
        python=sys.executable,
    )
    return FleetFile(
        engine=EngineTables(kubernetes=table),
        classes={"cpu": NodeClass(select="pool=cpu", nodes=2)},
    )


def run_on(folder, *tasks):
    fleet = a_fleet(folder)
    return run_fleet(folder, tasks, engine="kubernetes", fleet=fleet, poll_s=0.3)


def test_units_are_measured_in_pods_and_a_lost_one_on_the_other_node(cluster, tmp_path):
    names = {"good": "measure", "garbage": "garbage", "lost": "vanish_once"}

    result, _ = run_on(
        tmp_path, *(a_task(unit, what, folder=tmp_path) for unit, what in names.items())
    )

    endings = {ending.unit: ending for ending in result.endings}
    assert kinds(result) == {"good": "measured", "garbage": "failed", "lost": "measured"}
    assert set(endings["lost"].nodes) == {"k1", "k2"}
    (attempt,) = attempts(tmp_path)["good"]
    given = json.loads((attempt / "environment.json").read_text())
    assert given["CI_PERF_NODE"] in {"k1", "k2"}
    assert not [name for name in given if name.startswith(("KUBE", "JOB_COMPLETION"))]
    asked = (cluster / "asked").read_text().splitlines()
    assert all(line.startswith("--namespace=perf ") for line in asked)


def test_an_interrupt_leaves_no_job_and_no_process(cluster, tmp_path):
    units = [f"u{i}=hang:0" for i in range(3)]
    fleet = a_fleet(tmp_path)
    controller = start_controller(tmp_path, units, engine="kubernetes", fleet=fleet)
    wait_until(lambda: len([pid for pid in pids(tmp_path) if is_alive(pid)]) == 2)

    controller.send_signal(signal.SIGTERM)
    said = json.loads(controller.communicate()[0])

    assert controller.returncode == 130
    assert set(said["endings"].values()) == {"cancelled"}
    assert [*cluster.glob("*.job"), *cluster.glob("*.pod")] == []
    assert [pid for pid in pids(tmp_path) if is_alive(pid)] == []


def test_a_quota_is_told_in_the_words_of_the_cluster(cluster, tmp_path):
    (cluster / "quota").touch()

    result, _ = run_on(tmp_path, a_task("u", folder=tmp_path))

    (ending,) = result.endings
    assert ending.kind == "failed"
    assert "kubectl: exit code 1: Error from server (Forbidden)" in ending.reason
    assert "exceeded quota: pods" in ending.reason
