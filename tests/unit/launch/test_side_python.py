"""What differs between two environments: the likely causes first."""

from ci_perf.launch.side_python import Installed, list_differences


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
