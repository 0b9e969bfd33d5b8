import importlib.metadata
import json
import os
import subprocess
import sys
from types import ModuleType, SimpleNamespace

import pytest

from ci_perf.measuring import environment_probe
from ci_perf.model.environment import CpuMachine, GpuMachine
from ci_perf.model.program import digest
from ci_perf.model.task import FAILURE, RESULT, MachineDescription, TaskFailure
from ci_perf.system.files import read as read_file

H200, H100 = "NVIDIA H200", "NVIDIA H100"
MIG = "NVIDIA H200 MIG 1g.18gb"


def a_torch(*models, uuids=True, cuda="12.8"):
    """The slice of torch that is asked, on a machine with these GPUs."""
    gpus = [SimpleNamespace(name=model, total_memory=1000 - i) for i, model in enumerate(models)]
    for number, gpu in enumerate(gpus):
        if uuids:
            gpu.uuid = f"1234-{number}"
    devices = SimpleNamespace(
        is_available=lambda: bool(gpus),
        device_count=lambda: len(gpus),
        get_device_properties=lambda name: gpus[int(name.partition(":")[2])],
    )
    return SimpleNamespace(
        __version__="2.13.0",
        version=SimpleNamespace(cuda=cuda),
        backends=SimpleNamespace(cudnn=SimpleNamespace(version=lambda: 90_000)),
        cuda=devices,
    )


def described(device, devices, torch):
    return environment_probe.describe(device, 1, devices, load=lambda: torch)


@pytest.fixture
def described_in_child(tmp_path):
    """Describe the machine in a process of its own, where `torch` has these files."""

    def described_in_child(files, device="auto"):
        for name, text in files.items():
            file = tmp_path / "packages/torch" / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        command = [sys.executable, "-P", "-m", environment_probe.__name__, tmp_path]
        subprocess.run(
            [*command, str(os.getpid()), device, "1", "1", ""],
            env={**os.environ, "PYTHONPATH": str(tmp_path / "packages")},
            check=True,
        )
        if (tmp_path / RESULT).exists():
            return read_file(tmp_path / RESULT, MachineDescription)
        return read_file(tmp_path / FAILURE, TaskFailure)

    return described_in_child


OF_CPUS = "__version__ = '2.13.0+cpu'\ncuda = None\nhip = None\n"


def test_a_torch_for_cpus_alone_is_described_without_importing_it(described_in_child, tmp_path):
    files = {"__init__.py": "1 / 0", "version.py": OF_CPUS}
    found = described_in_child(files)

    assert (found.device, found.environment.soft.torch) == ("cpu", "2.13.0+cpu")
    assert found.environment.soft.cuda is None

    (tmp_path / RESULT).unlink()
    found = described_in_child(files, device="cuda")
    assert "torch 2.13.0+cpu, which is built without CUDA" in found.reason


@pytest.mark.parametrize(
    "version",
    [
        "cuda = '12.8'\nhip = None\n__version__ = '1'",
        "cuda = None\nhip = '6'\n",
        "1 / 0",
        "cuda = None",
    ],
)
def test_any_other_torch_is_imported(described_in_child, version):
    found = described_in_child({"__init__.py": "raise ImportError", "version.py": version})

    assert found.environment.soft.torch == "none"


def test_a_torch_that_no_finder_knows_is_taken_as_it_is(monkeypatch):
    known = ModuleType("torch")
    vars(known).update(vars(a_torch()))
    monkeypatch.setitem(sys.modules, "torch", known)

    assert environment_probe.describe("cpu", 1).environment.soft.torch == "2.13.0"


@pytest.mark.parametrize(
    ("is_editable", "lines", "is_same"),
    [
        (False, ["a-1.dist-info/direct_url.json,sha256=b,1"], True),
        (True, ["__editable__.a-1.pth,sha256=b,1", "a.pth,sha256=b,1"], True),
        (False, ["a.pth,sha256=b,1"], False),
    ],
)
def test_the_folder_that_a_package_was_installed_from_makes_it_no_other_package(
    tmp_path, is_editable, lines, is_same
):
    """Each side of a comparison has a folder of its own."""
    text = json.dumps({"url": "file:///a", "dir_info": {"editable": is_editable}})
    digests = set()
    for folder in ("b", "c"):
        metadata = tmp_path / folder / "a-1.dist-info"
        metadata.mkdir(parents=True)
        (metadata / "METADATA").write_text("Name: a\nVersion: 1\n")
        (metadata / "direct_url.json").write_text(text.replace(" ", "" if folder == "b" else " "))
        record = "\n".join(lines).replace("sha256=b", f"sha256={folder}")
        (metadata / "RECORD").write_text(f"a.py,sha256=a,1\n{record}\n")
        installed = importlib.metadata.distributions(path=[str(tmp_path / folder)])
        digests.add(environment_probe.packages(installed))

    assert (len(digests) == 1) is is_same


def test_packages_are_known_by_their_versions_and_files():
    def package(version, record):
        return SimpleNamespace(
            metadata={"Name": "one"}, version=version, read_text=lambda _: record
        )

    digests = {
        environment_probe.packages([package(version, record)])
        for version in ("1.0", "1.1")
        for record in (None, "one.py,sha256=a,1", "one.py,sha256=b,1")
    }

    assert len(digests) == 6


@pytest.mark.parametrize(
    ("device", "count", "torch", "gpus"),
    [
        ("cuda:1", 2, a_torch(H200, H200, H200), ("GPU-1234-1", "GPU-1234-2")),
        ("auto", 1, a_torch(H200, H200), ("GPU-1234-0",)),
        ("cuda:0", 1, a_torch(MIG), ("MIG-1234-0",)),
        ("cuda:0", 2, a_torch(H200, H200, uuids=False), ()),
    ],
)
def test_as_many_gpus_as_needed_are_locked_from_the_first_on(device, count, torch, gpus):
    found = described(device, count, torch)

    assert found.device == device.replace("auto", "cuda:0")
    assert (found.gpus, found.locks) == (gpus, gpus or ("cuda-0", "cuda-1"))


def test_the_machine_is_as_many_gpus_as_are_used_and_variables_are_digests(monkeypatch):
    monkeypatch.setenv("HOME", "/root")

    found = described("auto", 2, a_torch(H200, H200, H200))

    machine = GpuMachine(gpu_model=H200, gpu_count=2, gpu_memory_bytes=999, mig=False)
    assert found.environment.hard == machine
    assert found.variables["HOME"] == digest(b"/root")


@pytest.mark.parametrize("torch", [None, a_torch()])
def test_a_machine_without_gpus_is_a_cpu_however_many_ranks_share_it(torch):
    found = described("auto", 2, torch)

    assert isinstance(found.environment.hard, CpuMachine)
    assert (found.device, found.locks, found.gpus) == ("cpu", ("cpu",), ())


@pytest.mark.parametrize(
    ("torch", "gpus", "locks"),
    [
        (None, "", ()),
        (a_torch(), "", ()),
        (a_torch(H200, H200, H100), f"{H100}, {H200} x2", tuple(f"GPU-1234-{n}" for n in range(3))),
        (a_torch(H200, uuids=False), H200, ("cuda-0",)),
    ],
)
def test_without_nvml_torch_names_the_gpus_of_commands(torch, gpus, locks):
    found = environment_probe.describe("cpu", 1, commands=True, load=lambda: torch)

    assert isinstance(found.environment.hard, CpuMachine)
    assert found.environment.hard.gpus == gpus
    assert (found.device, found.locks, found.gpus) == ("cpu", ("cpu", *locks), ())


@pytest.mark.parametrize(
    ("device", "devices", "torch", "words"),
    [
        ("cuda", 1, a_torch(), "--device cuda: expected a CUDA device, found none"),
        ("cuda", 1, None, "found no torch; install a build with CUDA"),
        ("cuda", 1, a_torch(cuda=None), "torch 2.13.0, which is built without CUDA; remove torch"),
        ("cuda:2", 1, a_torch(H200, H200), "cuda:2: expected an index below 2, found 2"),
        ("auto", 4, a_torch(H200), "auto: expected 4 GPUs from cuda:0 on, found 1; name workloads"),
        ("cuda:1", 2, a_torch(H200, H200), "expected 2 GPUs from cuda:1 on, found 1"),
        ("cuda", 2, a_torch(H200, H100), "one model, found NVIDIA H100 and NVIDIA H200"),
    ],
)
def test_gpus_that_are_not_there_are_named_with_what_to_do(device, devices, torch, words):
    with pytest.raises(environment_probe.DeviceError, match=words):
        described(device, devices, torch)
