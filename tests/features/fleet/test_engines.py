"""What engines are told: a manifest that Kubernetes takes, and resources of Ray."""

import sys
from pathlib import Path

import kubernetes_validate
import pytest
from ruamel.yaml import YAML

from ci_perf.errors import UsageError
from ci_perf.features.fleet import manifest, ray
from ci_perf.features.fleet.manifest import Cluster
from ci_perf.features.fleet.unit import UnitFolder

MOUNT = Path("/perf")
CLUSTER = Cluster(
    image="ghcr.io/us/perf@sha256:0123",
    claim="perf",
    mount=MOUNT,
    resources={"nvidia.com/gpu": "8", "memory": "900Gi"},
    node_labels={"pool": "h100"},
    at_once=2,
)


def rendered(units=("u0", "u1", "u2"), cluster=CLUSTER, **more):
    paths = {"plan": MOUNT / "it's.json", "root": MOUNT / "project", "output": MOUNT / "units"}
    text = manifest.render_job(cluster, units, name="ci-perf-1", **{**paths, **more})
    return YAML(typ="safe").load(text)


# Per-index limits are stable since 1.33; before, they were behind a gate.
@pytest.mark.parametrize("version", ["1.29", "1.33", kubernetes_validate.latest_version()])
@pytest.mark.parametrize("labels", [{}, {"pool": 'a "quoted": one'}])
def test_a_manifest_fits_the_published_schema(version, labels):
    cluster = Cluster(image=CLUSTER.image, claim="perf", mount=MOUNT, node_labels=labels)

    kubernetes_validate.validate(rendered(cluster=cluster), version, strict=True)
    kubernetes_validate.validate(rendered(), version, strict=True)


def test_a_manifest_that_does_not_fit_is_noticed():
    document = rendered()
    document["spec"]["backoffLimitPerIndx"] = 0

    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(document, "1.33", strict=True)


def test_each_index_measures_the_unit_of_its_place():
    spec = rendered()["spec"]
    (container,) = spec["template"]["spec"]["containers"]
    shell, how, script, *words = container["command"]

    assert (spec["completions"], spec["parallelism"], spec["maxFailedIndexes"]) == (3, 2, 3)
    assert (shell, how, words) == ("sh", "-ec", ["/perf/units", "u0", "u1", "u2"])
    assert """--plan '/perf/it'"'"'s.json' --unit "$1" --output "$0/$1/run.json""" in script
    assert spec["template"]["spec"]["automountServiceAccountToken"] is False


@pytest.mark.parametrize(
    ("cluster", "more", "message"),
    [
        (Cluster(image="perf:latest", claim="c", mount=MOUNT), {}, "--image: expected an image by"),
        (CLUSTER, {"root": Path("/home")}, "the checkout: expected a path below --mount /perf"),
        (CLUSTER, {"output": Path("/perfect")}, "--output: expected a path below --mount /perf"),
    ],
)
def test_what_pods_would_not_find_is_refused(cluster, more, message):
    with pytest.raises(UsageError, match=message):
        rendered(cluster=cluster, **more)


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ([], {"resources": {}}),
        (["num_gpus=8", "h100=1"], {"num_gpus": 8.0, "resources": {"h100": 1.0}}),
        (["num_cpus=0.5"], {"num_cpus": 0.5, "resources": {}}),
    ],
)
def test_a_unit_takes_the_resources_of_ray_that_were_named(options, wanted):
    assert ray.read_resources(options) == wanted


def test_without_the_package_it_is_said_how_to_get_it(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)

    with pytest.raises(UsageError, match=r"expected the package ray.*pip install 'ci-perf\[ray\]'"):
        ray.run([UnitFolder(tmp_path)], options=[], python="python3")


def test_the_end_of_a_unit_is_told_by_its_engine_and_its_log(tmp_path):
    folder = UnitFolder(tmp_path)
    assert folder.ending() == "it has left no run.json"

    folder.note_end("ended by signal 9")
    (tmp_path / "log.txt").write_text("".join(f"line {i}\n\n" for i in range(1000)))
    assert (
        folder.ending() == f"ended by signal 9: {' / '.join(f'line {i}' for i in range(995, 1000))}"
    )

    (tmp_path / "log.txt").unlink()
    (tmp_path / "log.txt").symlink_to("/etc/passwd")
    assert folder.ending() == "ended by signal 9", "a stranger may have laid a link"
