"""Each thing that keeps containers from being measured in is named, with the next step."""

import pytest

from ci_perf.doctor import DeviceKind
from ci_perf.errors import ExitCode
from ci_perf.model import facts
from ci_perf.model.facts import Level
from tests import machines
from tests.machines import codes, finding

NOTHING = facts.Toolkit(version=None, hook=False, cdi=())
REFUSED = facts.Refused(why="`docker start`: it does not", next_step="do it")
ABSENT = facts.EngineSilence(
    name="docker", is_installed=False, why="docker: expected it", next_step="install it"
)


def diagnose(*, torch=None, graphics=None, programs=None, **containers):
    return machines.diagnose(
        containers=machines.containers(**containers),
        torch=machines.a_torch() if torch is None else torch,
        graphics=machines.graphics() if graphics is None else graphics,
        programs=machines.programs() if programs is None else programs,
    )


def test_a_sound_host_with_a_sound_image_has_no_complaints():
    diagnosis = diagnose()

    assert diagnosis.can_measure == (DeviceKind.CPU, DeviceKind.CUDA)
    assert {finding.level for finding in diagnosis.findings} == {Level.OK}
    assert set(codes(diagnosis)) == {
        "engine_works",
        "image_works",
        "toolkit_works",
        "driver_new_enough",
        "cuda_works",
    }


def test_what_is_not_installed_on_the_host_is_the_images_business():
    bare = machines.programs(transformers=None, c_compiler=False, cxx_compiler=False)

    assert {finding.level for finding in diagnose(programs=bare).findings} == {Level.OK}


def test_git_and_python_stay_the_hosts_business():
    diagnosis = diagnose(programs=machines.programs(git=False, python="3.10.1"))

    assert codes(diagnosis)[:2] == ["python_too_old", "git_missing"]
    assert diagnosis.can_measure == ()


@pytest.mark.parametrize(
    ("is_installed", "code"), [(False, "engine_absent"), (True, "engine_silent")]
)
def test_an_engine_that_does_not_answer_is_all_that_is_said(is_installed, code):
    engine = facts.EngineSilence(
        name="docker", is_installed=is_installed, why="docker: expected it", next_step="install it"
    )

    diagnosis = diagnose(engine=engine, image=None, torch=facts.TorchMissing())

    assert codes(diagnosis) == [code]
    assert finding(code, diagnosis).what == "Docker: expected it."
    assert finding(code, diagnosis).next_step == "Install it."
    assert diagnosis.exit_code == ExitCode.NO_ANSWER


def test_an_image_must_be_named():
    diagnosis = diagnose(image=None, torch=facts.TorchMissing())

    assert codes(diagnosis)[0] == "image_unnamed"
    assert "`ci-perf image pin" in finding("image_unnamed", diagnosis).next_step
    assert "`--image" in finding("image_unnamed", diagnosis).next_step
    assert diagnosis.exit_code == ExitCode.NO_ANSWER


def test_an_image_must_be_here():
    missing = facts.MissingImage(reference="x", why="no image", next_step="pull it")

    diagnosis = diagnose(image=missing, torch=facts.TorchMissing())

    assert finding("image_missing", diagnosis).next_step == "Pull it."
    assert diagnosis.exit_code == ExitCode.NO_ANSWER


def test_an_image_by_its_tag_is_warned_of():
    diagnosis = diagnose(image=machines.an_image(reference="perf:1", is_pinned=False))

    assert "image pin perf:1" in finding("image_unpinned", diagnosis).next_step
    assert diagnosis.exit_code == ExitCode.OK


def test_an_image_that_runs_by_emulation_is_no_place_to_measure():
    diagnosis = diagnose(image=machines.an_image(architecture="arm64"))

    assert "arm64" in finding("image_of_another_architecture", diagnosis).what
    assert diagnosis.can_measure == ()


@pytest.mark.parametrize(
    ("engine", "image"), [("x86_64", "amd64"), ("aarch64", "arm64"), ("amd64", "amd64"), ("", "x")]
)
def test_architectures_have_two_names(engine, image):
    diagnosis = diagnose(
        engine=machines.an_engine(architecture=engine), image=machines.an_image(architecture=image)
    )

    assert "image_of_another_architecture" not in codes(diagnosis)


def test_a_container_that_does_not_start_is_named():
    diagnosis = diagnose(refused=REFUSED, torch=facts.TorchMissing())

    assert "it does not" in finding("container_refused", diagnosis).what
    assert finding("container_refused", diagnosis).next_step == "Do it."
    assert diagnosis.can_measure == ()


def test_a_checkout_that_no_container_can_read_is_no_place_to_measure():
    diagnosis = diagnose(
        unreadable=facts.Refused(why="/x: found mode 0700", next_step="`chmod o+rx`")
    )

    assert "mode 0700" in finding("checkout_unreadable", diagnosis).what
    assert diagnosis.can_measure == ()


@pytest.mark.parametrize(
    ("torch", "code"),
    [
        (facts.TorchMissing(), "image_without_torch"),
        (facts.TorchBroken(reason="no msgspec"), "image_cannot_measure"),
    ],
)
def test_an_image_without_what_a_worker_needs_is_named(torch, code):
    diagnosis = diagnose(torch=torch)

    assert "msgspec" in finding(code, diagnosis).next_step
    assert diagnosis.exit_code == ExitCode.NO_ANSWER


def test_gpus_that_were_refused_leave_the_cpu():
    diagnosis = diagnose(gpus_refused=REFUSED, torch=machines.a_torch(devices=0))

    assert codes(diagnosis)[0] == "gpus_refused"
    assert "cuda_init_error" not in codes(diagnosis)
    assert diagnosis.can_measure == (DeviceKind.CPU,)


def test_docker_without_the_toolkit_is_told_how_to_get_it():
    engine = machines.an_engine(nvidia_runtime=False)

    diagnosis = diagnose(engine=engine, toolkit=NOTHING)

    assert "nvidia-ctk runtime configure" in finding("toolkit_missing", diagnosis).next_step


def test_podman_without_a_specification_is_told_to_write_one():
    engine = machines.an_engine(name="podman", nvidia_runtime=False)
    toolkit = facts.Toolkit(version="1.17.8", hook=True, cdi=())

    diagnosis = diagnose(engine=engine, toolkit=toolkit)

    assert "nvidia-ctk cdi generate" in finding("toolkit_missing", diagnosis).next_step


@pytest.mark.parametrize(
    ("engine", "toolkit"),
    [
        ({"nvidia_runtime": True}, {}),
        ({}, {"hook": True}),
        ({"knows_cdi": True}, {"cdi": ("/etc/cdi/n.yaml",)}),
        ({"name": "podman", "knows_cdi": True}, {"cdi": ("/etc/cdi/n.yaml",)}),
    ],
)
def test_there_are_several_ways_to_pass_a_gpu(engine, toolkit):
    none = {"nvidia_runtime": False, "knows_cdi": False}
    nothing = {"version": None, "hook": False, "cdi": ()}

    diagnosis = diagnose(
        engine=machines.an_engine(**{**none, **engine}),
        toolkit=facts.Toolkit(**{**nothing, **toolkit}),
    )

    assert "toolkit_works" in codes(diagnosis)


def test_a_host_without_a_gpu_needs_no_toolkit():
    diagnosis = diagnose(
        graphics=machines.no_graphics(),
        toolkit=NOTHING,
        engine=machines.an_engine(nvidia_runtime=False),
        torch=machines.a_cpu_torch(),
    )

    assert codes(diagnosis) == ["no_gpu", "engine_works", "image_works"]
    assert diagnosis.can_measure == (DeviceKind.CPU,)


@pytest.mark.parametrize(
    ("engine", "code"),
    [
        ({"storage": "vfs"}, "slow_storage"),
        ({"rootless": True, "cgroups": "1"}, "no_limits"),
        ({"data": machines.a_space("/var/lib/docker", free=2**30)}, "little_disk_for_images"),
    ],
)
def test_an_engine_with_a_weakness_is_warned_of(engine, code):
    diagnosis = diagnose(engine=machines.an_engine(**engine))

    assert finding(code, diagnosis).level is Level.WARNING
    assert diagnosis.exit_code == ExitCode.OK


def driver(cuda, version="570.86.15"):
    return machines.graphics(nvml=machines.an_nvml(cuda=cuda, driver=version))


@pytest.mark.parametrize(
    ("holds", "has", "code"),
    [
        ("12.8", "12.8", "driver_new_enough"),
        ("12.6", "13.0", "driver_new_enough"),
        ("11.8", "12.2", "driver_new_enough"),
        ("12.10", "12.9", "driver_older_than_image"),
        ("12.8", "12.2", "driver_older_than_image"),
        ("13.0", "12.8", "driver_too_old_for_image"),
    ],
)
def test_a_driver_runs_all_cuda_of_its_major_version(holds, has, code):
    assert code in codes(diagnose(torch=machines.a_torch(cuda=holds), graphics=driver(has)))


def test_a_driver_that_is_too_old_is_told_once_and_from_which_on():
    torch = machines.a_torch(cuda="13.0", devices=0, error="driver on your system is too old")

    diagnosis = diagnose(torch=torch, graphics=driver("12.8"))

    assert "from 580 on" in finding("driver_too_old_for_image", diagnosis).next_step
    assert "driver_too_old" not in codes(diagnosis)
    assert diagnosis.can_measure == (DeviceKind.CPU,)


@pytest.mark.parametrize("cuda", ["12.6.3", "12.6"])
def test_what_an_image_says_of_itself_is_enough(cuda):
    diagnosis = diagnose(
        image=machines.an_image(cuda=cuda), torch=facts.TorchMissing(), graphics=driver("11.8")
    )

    assert cuda in finding("driver_too_old_for_image", diagnosis).what


def test_nothing_is_said_of_a_driver_that_cannot_be_asked():
    silent = machines.graphics(nvml=machines.a_silent_nvml("not_installed"))

    assert not [code for code in codes(diagnose(graphics=silent)) if "driver_" in code]


# The form of nvidia/cuda images: a space is "or", a comma is "and".
REQUIRES = "cuda>=12.6 brand=tesla,driver>=535,driver<536 brand=tesla,driver>=550,driver<551"


@pytest.mark.parametrize(
    ("cuda", "version", "is_let_in"),
    [
        ("12.6", "560.35.03", True),
        ("13.0", "580.65.06", True),
        ("12.4", "550.54.15", True),
        ("12.2", "535.104.05", True),
        ("12.2", "545.23.06", False),
    ],
)
def test_the_condition_of_an_image_is_read_as_the_toolkit_reads_it(cuda, version, is_let_in):
    diagnosis = diagnose(
        image=machines.an_image(requires=REQUIRES),
        torch=machines.a_torch(cuda="12.6"),
        graphics=driver(cuda, version),
    )

    assert ("image_requires_newer_driver" not in codes(diagnosis)) == is_let_in


def test_a_condition_that_nobody_understands_is_left_to_the_toolkit():
    diagnosis = diagnose(image=machines.an_image(requires="arch>=9.0 nonsense"))

    assert "image_requires_newer_driver" not in codes(diagnosis)


@pytest.mark.parametrize(
    "containers",
    [
        {"engine": ABSENT, "image": None, "torch": facts.TorchMissing()},
        {"image": None, "torch": facts.TorchMissing()},
        {"refused": REFUSED, "torch": facts.TorchMissing()},
        {"unreadable": REFUSED},
        {"gpus_refused": REFUSED},
        {"torch": facts.TorchMissing()},
        {"engine": machines.an_engine(nvidia_runtime=False), "toolkit": NOTHING},
        {"engine": machines.an_engine(storage="vfs", rootless=True, cgroups="1")},
        {"image": machines.an_image(is_pinned=False, architecture="arm64")},
    ],
)
def test_whatever_is_not_well_has_a_next_step(containers):
    diagnosis = diagnose(**containers)

    assert all(one.next_step for one in diagnosis.findings if one.level is not Level.OK)
