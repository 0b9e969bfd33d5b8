"""What engines are told: a Job that Kubernetes takes, and resources of Ray."""

import sys
from pathlib import Path

import kubernetes_validate
import pytest
from ruamel.yaml import YAML

from ci_perf.errors import UsageError
from ci_perf.features.fleet import ray
from ci_perf.features.fleet.unit import UnitFolder

JOB = Path("examples/fleet/kubernetes.yaml")


# Per-index limits are stable since 1.33; before, they were behind a gate.
@pytest.mark.parametrize("version", ["1.29", "1.33", kubernetes_validate.latest_version()])
def test_the_job_of_the_examples_fits_the_published_schema(version):
    job = YAML(typ="safe").load(JOB)
    kubernetes_validate.validate(job, version, strict=True)

    job["spec"]["backoffLimitPerIndx"] = 0
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(job, version, strict=True)


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
