"""Which nodes of Ray a unit may have, and what is said where there is no Ray."""

import sys

import pytest

from ci_perf.errors import EngineError, InvalidFileError, UsageError
from ci_perf.fleet import fleet_file, ray
from ci_perf.fleet.engine import EngineJob
from ci_perf.fleet.ray import RayEngine
from ci_perf.model.fleet import NodeClass, RayTable


def a_job(select, *avoid):
    return EngineJob(
        name="job",
        file="",
        class_name="h100",
        node_class=NodeClass(select=select),
        avoid=avoid,
        attempts=(),
    )


def a_node(name, *, alive=True, **has):
    return {"NodeID": f"id-of-{name}", "NodeName": name, "Alive": alive, "Resources": has}


TWO = [a_node("n1", GPU=8.0, CPU=64.0), a_node("n2", GPU=8.0, CPU=64.0), a_node("head", CPU=4.0)]


@pytest.mark.parametrize(
    ("select", "wanted"),
    [
        ("GPU:8", {"GPU": 8.0}),
        ("h100", {"h100": 1.0}),
        ("GPU:8, accelerator_type:H100", {"GPU": 8.0, "accelerator_type:H100": 1.0}),
        ("CPU:0.5", {"CPU": 0.5}),
    ],
)
def test_a_class_is_selected_by_resources(select, wanted):
    assert ray.resources("a", NodeClass(select=select)) == wanted


@pytest.mark.parametrize("select", ["", "GPU:0", "GPU:8,", ":8", "GPU,GPU"])
def test_what_selects_nothing_is_refused(select):
    with pytest.raises(UsageError, match=r"\[class.a\]: select: expected all resources"):
        ray.resources("a", NodeClass(select=select))


def test_a_unit_takes_what_was_selected_and_nothing_else():
    assert ray._placement(a_job("GPU:8,h100"), TWO) == {
        "num_cpus": 0,
        "num_gpus": 8.0,
        "resources": {"h100": 1.0},
        "label_selector": None,
    }


def test_a_retry_is_kept_off_the_node_that_failed():
    placement = ray._placement(a_job("GPU:8", "n1"), TWO)

    assert placement["label_selector"] == {"ray.io/node-id": "!in(id-of-n1)"}


def test_a_retry_that_no_other_node_could_take_is_refused():
    with pytest.raises(EngineError, match="Ray has no node with GPU:8 but those to avoid"):
        ray._placement(a_job("GPU:8", "n1", "n2"), TWO)


def test_a_unit_waits_for_a_node_that_is_not_there_yet():
    dead = [a_node("n1", alive=False, GPU=8.0), a_node("head", CPU=4.0)]

    assert ray._placement(a_job("GPU:8", "n1"), dead)["label_selector"] is None


def test_two_units_never_share_a_node():
    with pytest.raises(EngineError, match=r"found 'GPU:4', which n1 has twice"):
        ray._placement(a_job("GPU:4"), TWO)


def test_without_the_package_it_is_said_how_to_get_it(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)

    with pytest.raises(UsageError, match=r"expected the package ray.*pip install 'ci-perf\[ray\]'"):
        RayEngine(RayTable(), python="python3", root=tmp_path).poll([])


def test_ray_client_is_refused(tmp_path):
    path = tmp_path / "fleet.toml"
    path.write_text('[engine.ray]\naddress = "ray://head:10001"\n[class.a]\nselect = "GPU:8"\n')

    with pytest.raises(InvalidFileError, match=r"\$.engine.ray: expected 'auto' or HOST:PORT"):
        fleet_file.load(path)
