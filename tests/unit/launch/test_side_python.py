"""What differs between two environments: the likely causes first."""

import os
import sys
from pathlib import Path

import pytest

from ci_perf.launch.side_python import (
    Installed,
    SidePython,
    find_other_program,
    list_differences,
)


def test_likely_causes_come_first_then_imports_then_the_rest(tmp_path):
    workload = tmp_path / "it.py"
    workload.write_text("import yaml\nfrom torch import nn\n")
    base = {"zoo": "1", "abc": "1", "PyYAML": "5", "numpy": "1", "nvidia_cudnn": "8", "torch": "2"}
    head = {name: f"{version}.1" for name, version in base.items()} | {"new": "1"}
    modules = {"yaml": "PyYAML"}

    differences = list_differences(
        Installed(version=(3, 11, 1), packages={**base, "same": "1"}, modules=modules),
        Installed(version=(3, 11, 2), packages={**head, "same": "1"}),
        {"python": ("3.11.1", "3.11.2"), "cuda": (None, None)},
        [workload],
    )

    names = [each.name for each in differences]
    assert names == ["torch", "nvidia-cudnn", "numpy", "python", "pyyaml", "abc", "new", "zoo"]
    assert (differences[6].base, differences[6].head) == ("", "1")


@pytest.mark.parametrize(
    ("command", "other"),
    [
        ("python3 train.py", ""),
        ("echo 'it", "head/python"),  # not a command of a shell: the launch says so
        ("python train.py", "head/python"),  # the base has no program of this name
        ("python3.9 train.py", "base/python3.9"),  # another version, beside it
        ("sh run.sh", "head/python"),  # nobody knows what it names
        ("python3 -m torch && torchrun train.py", "head/torchrun"),
        ("python3 -m torch && accelerate launch train.py", ""),
        ("python3 -m torch && tool", ""),
        ("tools/python train.py; python3 it.py", ""),
    ],
)
def test_a_command_of_the_base_finds_no_program_of_another_python(
    tmp_path, monkeypatch, command, other
):
    of_head = f"#!{Path(sys.executable).parent}/python3\n"
    for name, text in {
        "head/python": "",
        "head/torchrun": of_head,
        "head/accelerate": of_head,
        "head/tool": "#!/bin/sh\n",
        "base/python3.12": "",
        "base/python3.9": "",
        "base/accelerate": "",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    (tmp_path / "base/python3").symlink_to("python3.12")
    monkeypatch.setenv("PATH", str(tmp_path / "head"))
    side = SidePython(python=str(tmp_path / "base/python3.12"))

    assert find_other_program(side, command) == (other and str(tmp_path / other))


def test_a_program_that_may_only_be_executed_is_passed_over(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # another user may search no folder above it
    monkeypatch.setenv("PATH", "head")
    for file in map(Path, ("base/python3", "head/sudo")):
        file.parent.mkdir(mode=0o755)
        file.touch(mode=0o755)
    Path("head/sudo").chmod(0o111)
    tmp_path.chmod(0o755)
    user = os.geteuid()
    os.seteuid(user or 65534)  # root may read every file
    try:
        with pytest.raises(PermissionError):
            Path("head/sudo").read_bytes()
        other = find_other_program(SidePython(python="base/python3"), "sudo python3 it.py")
    finally:
        os.seteuid(user)

    assert other == ""


def test_programs_of_a_side_find_its_python_and_packages_and_nothing_of_our_python():
    ours = {
        "PATH": "/usr/bin",
        "PYTHONPATH": "/mine",
        "PYTHONHOME": "/ours",
        "VIRTUAL_ENV": "/ours",
    }
    side = SidePython(python="/old/bin/python", packages=("/a", "/b"))

    assert side.build_environment(ours) == {
        "PATH": "/old/bin:/usr/bin",
        "PYTHONPATH": "/a:/b:/mine",
    }
    assert SidePython().build_environment(ours) == ours
