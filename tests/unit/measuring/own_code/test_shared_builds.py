"""Copies that a build has made, and those that started programs may import."""

import subprocess
import sys

import msgspec
import pytest

from ci_perf.measuring import own_code
from tests.unit.measuring.own_code.copies import a_task, installed, refusal, refusal_of, write


def test_what_leads_to_an_editable_install_is_no_module_that_was_built(tmp_path, site, imports):
    root, finder = tmp_path / "head", "__editable___my_model_finder.py"
    imports(site, finder)
    installed(site, finder, origin=tmp_path / "base")

    assert refusal(root, tmp_path / "base", native_source="csrc/fast.c") == ""


def test_a_version_or_compiled_modules_of_others_are_no_modules_that_were_built(
    tmp_path, site, imports
):
    files = ("my_model/__init__.py", "my_model/_version.py")
    write(tmp_path / "head/src/my_model/__init__.py")
    for file in (*files, "_fast.so"):
        imports(site, file)
    installed(site, *files, origin=tmp_path / "app")
    installed(site, "_fast.so", origin=tmp_path / "app", name="fast")

    assert refusal(tmp_path / "head", native_source="setup.py") == ""


@pytest.mark.parametrize("python_path", [(), ("src",)])
@pytest.mark.parametrize("is_installed", [True, False])
def test_what_started_programs_may_import_counts_unless_they_find_the_checkout_first(
    tmp_path, monkeypatch, site, is_installed, python_path
):
    root, folder = tmp_path / "head", site if is_installed else tmp_path / "app"
    monkeypatch.setattr(sys, "path", [*sys.path, str(folder)])
    write(root / "src/my_model/net.py", "x = 2")
    write(folder / "my_model/net.py", "x = 1")
    write(folder / "others/net.py", "x = 1")
    if is_installed:
        installed(site, "my_model/net.py", "../../bin/serve.py", origin=root)
    todo = msgspec.structs.replace(a_task(root), python_path=python_path)
    monkeypatch.setattr(own_code, "_has_started_programs", lambda: False)
    assert refusal_of(todo) == ""

    monkeypatch.setattr(own_code, "_has_started_programs", lambda: True)

    assert bool(refusal_of(todo)) is not bool(python_path)


def test_a_process_that_started_programs_knows_it():
    script = (
        "import subprocess, sys\nfrom ci_perf.measuring import own_code\n"
        "print(own_code._has_started_programs())\n"
        "child = subprocess.Popen([sys.executable, '-c', 'input()'], stdin=-1)\n"
        "print(own_code._has_started_programs())\nchild.communicate(b'\\n')\n"
        "print(own_code._has_started_programs())\n"
    )

    said = subprocess.check_output([sys.executable, "-c", script], text=True)

    assert said.split() == ["False", "True", "True"]


@pytest.mark.parametrize("origin", ["head", "app"])
def test_a_module_that_was_translated_from_python_counts_as_its_source(
    tmp_path, site, imports, origin
):
    base, head = tmp_path / "base", tmp_path / "head"
    for root, text in ((base, "x = 1"), (head, "x = 2")):
        write(root / "src/my_model/__init__.py")
        write(root / "src/my_model/net.py", text)
    imports(site, "my_model/__init__.py")
    imports(site, "my_model/net.so", "compiled")
    installed(site, "my_model/__init__.py", "my_model/net.so", origin=tmp_path / origin)

    assert "my_model.net" in refusal(base, head)
    assert bool(refusal(head, base)) is (origin != "head")


def test_what_a_build_writes_of_the_version_is_no_other_code(tmp_path, site, imports):
    root = tmp_path / "head"
    write(root / "src/my_model/_version.py", "x = 'unknown'")
    write(root / "src/my_model/conversion.py", "x = 1")
    imports(site, "my_model/_version.py", "x = '0.1'")
    installed(site, "my_model/_version.py", origin=tmp_path / "app")
    assert refusal(root) == ""

    imports(site, "my_model/conversion.py", "x = 2")

    assert "my_model.conversion" in refusal(root)


@pytest.mark.parametrize("origin", ["head", "app"])
def test_compiled_modules_that_both_sides_share_are_refused_where_their_sources_differ(
    tmp_path, site, imports, origin
):
    base, head = tmp_path / "base", tmp_path / "head"
    for root in (base, head):
        write(root / "src/my_model/__init__.py")
    imports(site, "my_model/__init__.py")
    imports(site, "_fast.so", "compiled")
    installed(site, "my_model/__init__.py", "_fast.so", origin=tmp_path / origin)

    for root, foreign in ((base, head), (head, base)):
        assert refusal(root, foreign) == ""
        why = refusal(root, foreign, native_source="csrc/fast.c")
        words = f"`python_path`. Shared: _fast ({site}/_fast.so)"
        assert ("csrc/fast.c differs" in why and why.endswith(words)) is (root.name != origin)
        assert bool(why) is (root.name != origin)
