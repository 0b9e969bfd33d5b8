"""A person reads first what can be measured, then the machine, then what to do."""

import pytest

from ci_perf.features.doctor import text as doctor_text
from ci_perf.features.doctor.diagnosis import diagnose
from ci_perf.model import facts
from ci_perf.model.run import Tool
from tests.features.doctor import machines


def render(*, colour=False, **machine):
    diagnosis = diagnose(machines.a_machine(**machine), Tool(version="0.1.0"))
    return doctor_text.render(diagnosis, colour=colour)


def test_a_gpu_machine_in_full():
    assert render() == (
        "CPU and GPU workloads can be measured on this machine.\n"
        "\n"
        "system   Linux 6.1.0, not in a container\n"
        "cpu      AMD EPYC, 8 logical cores; some task waited for one in 0 % of the last 10 s\n"
        "memory   64.0 GiB\n"
        "gpu      NVIDIA H200 141 GiB\n"
        "driver   NVIDIA 570.86.15, for CUDA up to 12.8\n"
        "torch    2.13.0, built for CUDA 12.8\n"
        "python   3.12.4\n"
        "\n"
        "ok       torch 2.13.0 can be imported: CPU workloads can be measured. [cpu_works]\n"
        "ok       torch ran a kernel on a GPU (1 visible, CUDA 12.8): GPU workloads can be "
        "measured. [cuda_works]\n"
    )


def test_a_problem_is_followed_by_its_next_step():
    lines = render(torch=facts.TorchMissing()).splitlines()

    assert lines[0] == "Nothing can be measured on this machine."
    (problem,) = [number for number, line in enumerate(lines) if line.startswith("problem  ")]
    assert lines[problem + 1].startswith("         next: `pip install '.[measure]'` in a checkout")


def test_a_container_and_its_limits_are_told():
    text = render(
        host=machines.a_host(container="docker", usable_cores=2),
        graphics=machines.no_graphics(pci=("0000:01:00.0",)),
    )

    assert "in a docker container" in text
    assert "8 logical cores, 2 usable" in text
    assert "NVIDIA, seen on the bus at 0000:01:00.0" in text


def test_what_is_not_known_is_said_to_be_unknown():
    text = render(host=machines.a_host(cpu_model=None, memory_bytes=None))

    assert "cpu      unknown, 8 logical cores" in text
    assert "memory   unknown" in text


@pytest.mark.parametrize("words", ["[red]", "[/]", ":smile:"])
def test_words_of_the_machine_are_not_taken_for_markup(words):
    assert words in render(host=machines.a_host(cpu_model=words))


def test_colours_are_for_terminals_only(monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")

    assert "\x1b[" in render(colour=True)
    assert "\x1b[" not in render(colour=False)


def test_a_machine_that_measures_in_containers_names_engine_and_image():
    text = render(containers=machines.containers())

    assert text.startswith("CPU and GPU workloads can be measured in containers on this machine.\n")
    assert "\nengine   docker, 28.2.2\n" in text
    assert f"\nimage    registry.example/perf@sha256:{'1' * 64}\n" in text


def test_an_engine_and_an_image_that_are_not_there_are_told_and_no_torch():
    text = render(
        containers=machines.containers(
            engine="podman", version="", image="", problem=facts.problem("x", "It is not.", "Do.")
        ),
        torch=facts.TorchMissing(),
    )

    assert text.startswith("Nothing can be measured in containers on this machine.\n")
    assert "engine   podman, which does not answer" in text
    assert "image    none named" in text
    assert "\ntorch " not in text
