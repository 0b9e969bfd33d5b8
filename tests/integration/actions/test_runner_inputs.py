"""The inputs of action.yml that say where to measure: on this machine, or in a container."""

import re

import pytest
from ruamel.yaml import YAML

from tests.integration.actions.recording import called
from tests.integration.actions.stage import ROOT

PINNED = f"registry.example/team/perf@sha256:{'0' * 64}"
CONTAINER = f"image={PINNED}\n\nallow-image=registry.example/base\ndata=/srv/the data\nmemory=64g\n"
OPTIONS = [
    "--runner=docker",
    f"--container=image={PINNED}",
    "--container=allow-image=registry.example/base",
    "--container=data=/srv/the data",
    "--container=memory=64g",
]


def options_of_containers(job):
    return [one for one in called(job, "check") if one.startswith(("--runner=", "--container="))]


def test_every_line_of_a_container_becomes_an_option(recorded):
    job = recorded()
    job.run_action(ROOT, runner="docker", container=CONTAINER)

    assert options_of_containers(job) == OPTIONS


def test_what_stands_in_an_input_stays_one_argument(recorded):
    hostile = '$(touch pwned) `touch pwned` "; touch pwned; # --allow-unpinned'
    job = recorded()
    job.run_action(ROOT, runner=hostile, container=f"memory={hostile}")

    assert options_of_containers(job) == [f"--runner={hostile}", f"--container=memory={hostile}"]
    assert not list(job.workspace.glob("pwned"))


# --- installing


def installed(tmp_path):
    """What the Python that only notes was asked, without the question for its version."""
    return (tmp_path / "record").read_text().splitlines()[1:]


def test_beside_containers_no_torch_is_installed_nor_borrowed(bare, tmp_path):
    bare.run_action(ROOT, python=str(tmp_path / "python"), runner="docker")

    assert installed(tmp_path) == [
        f"-P -m venv --clear {bare.temp}/ci-perf",
        f"-P -m pip install --quiet --disable-pip-version-check {ROOT}[host]",
    ]


def test_nothing_of_a_pull_request_is_installed_outside_its_container(bare, tmp_path):
    done = bare.run_action(
        ROOT, python=str(tmp_path / "python"), runner="docker", install="--requirement=x.txt"
    )

    assert done.step("install").code == 2
    assert "install: expected nothing with runner docker" in done.step("install").log
    assert not [line for line in installed(tmp_path) if "x.txt" in line]


@pytest.mark.parametrize(
    ("by_input", "by_machine", "extra"),
    [
        ("", "podman", "host"),
        ("", "", "measure"),
        ("local", "docker", "measure"),
    ],
)
def test_the_runner_of_the_machine_counts_where_the_input_is_empty(
    bare, tmp_path, by_input, by_machine, extra
):
    bare.machine["CI_PERF_CHECK_RUNNER"] = by_machine

    bare.run_action(ROOT, python=str(tmp_path / "python"), runner=by_input)

    assert installed(tmp_path)[-1].endswith(f"{ROOT}[{extra}]")


# --- the workflows


def test_a_stranger_s_pull_request_is_measured_in_an_image_that_the_workflow_names():
    workflow = YAML(typ="safe").load((ROOT / "examples/workflows/label-gated.yml").read_text())
    (step,) = [
        one for one in workflow["jobs"]["measure"]["steps"] if "ci_perf@" in one.get("uses", "")
    ]

    assert step["with"].get("runner") in {"docker", "podman"}
    assert re.fullmatch(r"image=\S+@sha256:[0-9a-f]{64}", step["with"]["container"])
