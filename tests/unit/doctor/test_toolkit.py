"""What of the NVIDIA Container Toolkit is there is read from files and programs."""

import pytest

from ci_perf.doctor import machine_facts
from ci_perf.doctor.machine_facts import Sources

# As `nvidia-ctk cdi generate` writes them, as YAML and with --format=json.
YAML = '---\ncdiVersion: 0.5.0\nkind: nvidia.com/gpu\ndevices:\n- name: "0"\n'
JSON = '{"cdiVersion":"0.5.0","kind":"nvidia.com/gpu","devices":[{"name":"0"}]}'
PRETTY = '{\n  "cdiVersion": "0.5.0",\n  "kind": "nvidia.com/gpu",\n  "devices": []\n}'
OTHER = "cdiVersion: 0.5.0\nkind: example.com/card\ndevices:\n- name: kind-nvidia.com/gpu\n"


@pytest.fixture
def toolkit(tmp_path):
    def read(tree=(), programs=()):
        for name, text in dict(tree).items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text)
        found = {}
        for name, said in dict(programs).items():
            found[name] = str(tmp_path / name)
            (tmp_path / name).write_text(f"#!/bin/sh\necho '{said}'\n")
            (tmp_path / name).chmod(0o755)
        return machine_facts.toolkit(
            Sources(root=tmp_path, environ={}, temporary=tmp_path, which=found.get)
        )

    return read


def test_without_a_toolkit_nothing_is_there(toolkit):
    found = toolkit()

    assert (found.version, found.hook, found.cdi) == (None, False, ())


@pytest.mark.parametrize("text", [YAML, JSON, PRETTY])
def test_a_specification_of_gpus_is_found_in_each_form(toolkit, text):
    assert toolkit({"etc/cdi/nvidia.yaml": text}).cdi == ("/etc/cdi/nvidia.yaml",)


def test_specifications_of_other_devices_are_not_of_gpus(toolkit):
    assert toolkit({"etc/cdi/card.yaml": OTHER, "var/run/cdi/notes.txt": "nvidia"}).cdi == ()


def test_a_folder_with_two_names_is_read_once(toolkit, tmp_path):
    (tmp_path / "run/cdi").mkdir(parents=True)
    (tmp_path / "var").mkdir()
    (tmp_path / "var/run").symlink_to(tmp_path / "run")

    assert len(toolkit({"run/cdi/nvidia.yaml": YAML}).cdi) == 1


def test_the_version_is_that_of_nvidia_ctk(toolkit):
    said = "NVIDIA Container Toolkit CLI version 1.14.3\ncommit: 53b24618a542"

    assert toolkit(programs={"nvidia-ctk": said}).version == "1.14.3"


def test_a_toolkit_that_cannot_be_asked_is_there_all_the_same(toolkit):
    assert toolkit(programs={"nvidia-ctk": ""}).version == "unknown"


def test_the_hook_is_found_by_its_program(toolkit):
    assert toolkit(programs={"nvidia-container-runtime-hook": ""}).hook
