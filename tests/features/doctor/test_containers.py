"""Whether a container can be measured in: an engine that answers, GPUs inside, torch imports."""

import pytest

from ci_perf.errors import ExitCode
from ci_perf.features.containers.examine import try_containers
from ci_perf.features.doctor import machine_facts
from ci_perf.features.doctor.diagnosis import DeviceKind
from ci_perf.model import facts
from ci_perf.model.container import Container
from ci_perf.model.facts import Level
from tests.features.doctor import machines
from tests.features.doctor.machines import codes, finding

REFUSED = facts.problem("container_refused", "`docker start`: it does not.", "Do it.")


def diagnose(*, torch=None, graphics=None, programs=None, **containers):
    return machines.diagnose(
        containers=machines.containers(**containers),
        torch=machines.a_torch() if torch is None else torch,
        graphics=machines.graphics() if graphics is None else graphics,
        programs=machines.programs() if programs is None else programs,
    )


def test_a_sound_image_has_no_complaints_and_what_the_host_lacks_is_the_images_business():
    bare = machines.programs(transformers=None, c_compiler=False, cxx_compiler=False)

    diagnosis = diagnose(programs=bare)

    assert diagnosis.can_measure == (DeviceKind.CPU, DeviceKind.CUDA)
    assert codes(diagnosis) == ["image_works", "cuda_works"]


def test_git_and_python_stay_the_hosts_business():
    diagnosis = diagnose(programs=machines.programs(git=False, python="3.10.1"))

    assert codes(diagnosis)[:2] == ["python_too_old", "git_missing"]
    assert diagnosis.can_measure == ()


@pytest.mark.parametrize(
    ("torch", "containers", "code"),
    [
        (facts.TorchMissing(), {"problem": REFUSED}, "container_refused"),
        (facts.TorchMissing(), {}, "image_cannot_measure"),
        (facts.TorchBroken(reason="no msgspec"), {}, "image_cannot_measure"),
    ],
)
def test_what_cannot_be_measured_in_is_named_with_the_next_step(torch, containers, code):
    diagnosis = diagnose(torch=torch, **containers)

    assert codes(diagnosis) == [code]
    assert finding(code, diagnosis).next_step
    assert diagnosis.exit_code == ExitCode.NO_ANSWER


def test_gpus_that_were_refused_leave_the_cpu_and_are_not_torchs_fault():
    refused = facts.problem("gpus_refused", "`docker start`: no GPU.", "Install the toolkit.")

    diagnosis = diagnose(gpu_problem=refused, torch=machines.a_torch(devices=0))

    assert codes(diagnosis) == ["gpus_refused", "image_works"]
    assert diagnosis.can_measure == (DeviceKind.CPU,)


def test_a_host_without_a_driver_is_told_beside_the_image():
    silent = machines.a_silent_nvml("version_mismatch")

    diagnosis = diagnose(
        torch=facts.TorchMissing(), graphics=machines.graphics(nvml=silent), problem=REFUSED
    )

    assert codes(diagnosis) == ["container_refused", "driver_mismatch"]


def test_a_driver_too_old_for_the_image_is_named():
    torch = machines.a_torch(cuda="13.0", devices=0, error="driver on your system is too old")

    diagnosis = diagnose(torch=torch)

    assert codes(diagnosis) == ["driver_too_old", "image_works"]
    assert "CUDA 13.0" in finding("driver_too_old", diagnosis).what


@pytest.fixture
def tried(tmp_path):
    """Ask an engine whose program is this script."""

    def ask(script, image=machines.IMAGE):
        (tmp_path / "docker").write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / "docker").chmod(0o755)
        sources = machine_facts.Sources(
            root=tmp_path, environ={"PATH": f"{tmp_path}:/usr/bin:/bin"}, temporary=tmp_path
        )
        limits = Container(image=image)
        found, torch = try_containers("docker", limits, tmp_path, sources.environ, has_gpus=False)
        assert torch == facts.TorchMissing()
        assert found.problem is not None
        assert found.problem.level is Level.PROBLEM
        return found

    return ask


def test_words_that_nobody_knows_are_not_sent_back_to_the_doctor(tried):
    found = tried("echo 'something new' >&2; exit 1")

    assert (found.version, found.problem.code) == ("", "engine_silent")
    assert "something new" in found.problem.what
    assert "by hand" in found.problem.next_step


def test_a_daemon_that_does_not_run_is_named(tried):
    found = tried("echo 'Cannot connect to the Docker daemon at unix:///x.sock.' >&2; exit 1")

    assert found.problem.code == "engine_silent"
    assert "expected a running daemon" in found.problem.what
    assert "systemctl start docker" in found.problem.next_step


def test_an_image_must_be_named(tried, tmp_path):
    tmp_path.chmod(0o755)
    found = tried("echo 28.2.2", image="")

    assert found.version == "28.2.2"
    assert found.problem.code == "container_refused"
    assert "`--image NAME@sha256:DIGEST`" in found.problem.next_step
