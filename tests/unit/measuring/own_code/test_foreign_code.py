import sys
import types

import pytest

from tests.unit.measuring.own_code.copies import refusal


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

    assert "found code of the other side" in refusal(head, base)
    assert "package.code" in refusal(head, base)


def test_code_beside_a_root_of_which_the_name_begins_alike_is_not_of_the_other_side(
    tmp_path, monkeypatch
):
    (tmp_path / "head").mkdir()
    (tmp_path / "head/code.py").touch()
    module = types.ModuleType("code_of_head")
    module.__file__ = str(tmp_path / "head/code.py")
    monkeypatch.setitem(sys.modules, "code_of_head", module)

    for foreign in ("hea", "headless"):
        assert refusal(tmp_path / "head", tmp_path / foreign) == ""
