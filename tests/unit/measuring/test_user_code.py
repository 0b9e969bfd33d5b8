import os
import sys
import types

import pytest

from ci_perf.measuring import user_code


@pytest.mark.parametrize(
    "message",
    [
        "Expected all tensors to be on the same device, but found at least two devices, cuda:0 and",
        "Expected all tensors to be on the same device, but got mat1 is on cpu, different from",
        "Tensor on device cpu is not on the expected device cuda:0!",
        "copy from device cpu to device cuda:0, but cross-device copies are not allowed!",
        "Input type (torch.FloatTensor) and weight type (torch.cuda.FloatTensor) should be the",
        "Input type (torch.cuda.FloatTensor) and weight type (torch.FloatTensor) should be the",
        "Input and parameter tensors are not at the same device, found input tensor at cpu and",
        "multinomial arguments must have the same device",
    ],
)
def test_tensors_on_two_devices_are_to_be_moved_to_the_device_of_the_run(message):
    assert user_code.remedy(message) == (
        "in build, put the model and every tensor on one device: `model.to(context.device)`, "
        "`tensor.to(context.device)`"
    )


def test_a_torch_without_cuda_names_the_line_to_write_and_how_to_get_one_with_cuda():
    remedy = user_code.remedy("Torch not compiled with CUDA enabled")

    assert "`tensor.to(context.device)`" in remedy
    assert remedy.endswith("install a build with CUDA, which " + user_code.SELECTOR + " names")


@pytest.mark.parametrize(
    "message",
    [
        "",
        "mat1 and mat2 shapes cannot be multiplied (2x3 and 2x3)",
        "Input type (torch.cuda.HalfTensor) and weight type (torch.cuda.FloatTensor) ",
        "CUDA error: device-side assert triggered",
    ],
)
def test_nothing_is_advised_where_the_cause_is_not_known(message):
    assert user_code.remedy(message) == ""


@pytest.mark.parametrize("linked", ["file", "folder", "folder above"])
def test_a_link_to_code_of_the_other_side_is_seen(tmp_path, monkeypatch, linked):
    base, head = tmp_path / "base", tmp_path / "head"
    (base / "src/package").mkdir(parents=True)
    (base / "src/package/code.py").touch()
    head.mkdir()
    if linked == "file":
        (head / "src/package").mkdir(parents=True)
        (head / "src/package/code.py").symlink_to(base / "src/package/code.py")
    elif linked == "folder":
        (head / "src").mkdir()
        (head / "src/package").symlink_to(base / "src/package")
    else:
        (head / "src").symlink_to(base / "src")
    module = types.ModuleType("package.code")
    module.__file__ = str(head / "src/package/code.py")
    monkeypatch.setitem(sys.modules, "package.code", module)

    with pytest.raises(user_code.ForeignCodeError, match=r"package\.code"):
        user_code.check_imports(str(base), root=str(head), file=str(head / "workload.py"))


def test_code_beside_a_root_of_which_the_name_begins_alike_is_not_of_the_other_side(
    tmp_path, monkeypatch
):
    (tmp_path / "head").mkdir()
    (tmp_path / "head/code.py").touch()
    module = types.ModuleType("code_of_head")
    module.__file__ = str(tmp_path / "head/code.py")
    monkeypatch.setitem(sys.modules, "code_of_head", module)

    for foreign in ("hea", "headless"):
        user_code.check_imports(
            str(tmp_path / foreign), root=str(tmp_path / "head"), file=str(tmp_path / "head/w.py")
        )


@pytest.mark.parametrize(
    "path", ["/", "//", "/usr", "/bin", "/bin/", "/bin/sh", "/x/../y", "/x/.", "", ".", "..", "a/b"]
)
def test_a_real_path_is_that_of_the_standard_library(path):
    assert user_code.real_path(path) == os.path.realpath(path)


def test_real_paths_follow_links_to_files_and_folders_and_loops(tmp_path, monkeypatch):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder/file").touch()
    for name, target in {"link": "folder", "folder/too": "file", "loop": "loop"}.items():
        (tmp_path / name).symlink_to(target)

    for name in (
        "link/file",
        "link/too",
        "folder/too",
        "loop",
        "loop/x",
        "link/../folder",
        "none/x",
    ):
        path = str(tmp_path / name)
        assert user_code.real_path(path) == os.path.realpath(path)
    for folder in (tmp_path, tmp_path / "folder"):
        monkeypatch.chdir(folder)
        assert user_code.real_path("too") == os.path.realpath("too")
