import json
import sys
import types

import msgspec
import pytest

from ci_perf.measuring import shared_code
from ci_perf.model.task import Task
from tests.plans import a_planned


@pytest.fixture
def site(tmp_path, monkeypatch):
    """Return a folder of installed packages, which Python imports from."""
    folder = tmp_path / "venv/site-packages"
    folder.mkdir(parents=True)
    monkeypatch.setattr(sys, "path", [*sys.path, str(folder)])
    return folder


@pytest.fixture
def imports(monkeypatch):
    """Return a function that has a module be imported from below a folder."""

    def write_and_import(folder, file, text=""):
        write(folder / file, text)
        name = file.partition(".")[0].replace("/", ".").removesuffix(".__init__")
        module = types.ModuleType(name)
        module.__file__ = str(folder / file)
        monkeypatch.setitem(sys.modules, name, module)

    return write_and_import


def write(file, text=""):
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def installed(site, *files, origin=None, name="my_model"):
    """Write what pip notes of a package: that of an index, or of a folder of this machine."""
    metadata = site / f"{name}-0.1.dist-info"
    write(metadata / "RECORD", "".join(f"{file},sha256=x,1\n" for file in files))
    if origin is not None:
        write(metadata / "direct_url.json", json.dumps({"url": origin.as_uri(), "dir_info": {}}))


def a_task(root, foreign_root=None, *, source_folders=(), native_source=""):
    workload = msgspec.structs.replace(a_planned("it"), file=str(root / "workloads/it.py"))
    return Task(
        workload=workload,
        index=0,
        device="cpu",
        root=str(root),
        data_dir="/d",
        foreign_root=str(foreign_root or ""),
        source_folders=source_folders,
        native_source=native_source,
    )


def refusal(root, foreign_root=None, **more):
    return shared_code.refusal(a_task(root, foreign_root, **more))


@pytest.mark.parametrize("folder", ["src", "lib", "python", ""])
def test_an_installed_copy_of_other_code_than_the_checkout_has_is_refused(
    tmp_path, site, imports, folder
):
    root = tmp_path / "head"
    write(root / folder / "my_model/net.py", "x = 1")
    imports(site, "my_model/net.py", "x = 1")
    installed(site, "my_model/net.py", origin=tmp_path / "app")
    assert refusal(root) == ""

    write(root / folder / "my_model/net.py", "x = 2")

    assert f"my_model.net ({site}/my_model/net.py)" in refusal(root)
    source = (root / folder / "my_model/net.py").relative_to(root)
    assert refusal(root).startswith(f"expected {source} of {root}, found a copy of other code: ")
    assert f'`python_path = ["{folder or "src"}"]`' in refusal(root)


def test_the_base_of_a_project_in_a_folder_is_refused_where_the_head_is_installed(
    tmp_path, site, imports
):
    base, head = tmp_path / "base", tmp_path / "head"
    for root, text in ((base, "x = 1"), (head, "x = 2")):
        write(root / "packages/a model/src/my_model/net.py", text)
    imports(site, "my_model/net.py", "x = 2")
    installed(site, "my_model/net.py", origin=head / "packages/a model")

    assert refusal(head, base) == ""
    assert "my_model.net" in refusal(base, head)


def test_a_module_that_only_the_other_side_has_is_refused(tmp_path, site, imports):
    base, head = tmp_path / "base", tmp_path / "head"
    write(base / "source/my_model/__init__.py")
    write(head / "src/my_model/net.py", "x = 1")
    imports(site, "my_model/net.py", "x = 1")
    installed(site, "my_model/net.py", origin=head)

    assert refusal(head, base) == ""
    assert "expected no such module of" in refusal(base, head)


@pytest.mark.parametrize(
    "source_folder", ["src", "code", "services/train"], ids=["usual", "odd", "nested"]
)
def test_a_copy_that_nobody_has_noted_is_refused_wherever_it_lies(tmp_path, imports, source_folder):
    root, elsewhere = tmp_path / "head", tmp_path / "app/src"
    for file in ("my_model/__init__.py", "my_model/net.py"):
        write(root / source_folder / file, "x = 1")
        imports(elsewhere, file, "x = 1")
    assert refusal(root, source_folders=(source_folder,)) == ""

    write(root / source_folder / "my_model/net.py", "x = 2")

    why = refusal(root, source_folders=(source_folder,))
    assert f"my_model.net ({elsewhere}/my_model/net.py)" in why
    assert f'`python_path = ["{source_folder}"]`' in why


def test_an_archive_that_holds_a_package_of_the_checkout_is_refused(tmp_path, monkeypatch):
    root = tmp_path / "head"
    write(root / "src/my_model/net.py", "x = 1")
    write(tmp_path / "app.zip")
    module = types.ModuleType("my_model.net")
    module.__file__ = str(tmp_path / "app.zip/my_model/net.py")
    monkeypatch.setitem(sys.modules, "my_model.net", module)
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path / "app.zip"), 1])

    assert "my_model.net" in refusal(root)


def test_packages_of_others_are_no_copies(tmp_path, site, imports):
    root = tmp_path / "head"
    folders = ("examples", "services")
    # A chance: two of the four files have a name of the checkout's.
    for file in ("utils/__init__.py", "utils/text.py", "utils/one.py", "utils/two.py"):
        imports(tmp_path / "tools", file, "theirs")
    for file in ("utils/__init__.py", "utils/text.py"):
        write(root / "examples" / file, "ours")
    # A single module in a folder of no project.
    imports(tmp_path / "tools", "helpers.py", "theirs")
    write(root / "services/helpers.py", "ours")
    # A package of an index, of which the checkout has another version.
    imports(site, "numbers_of/__init__.py", "theirs")
    installed(site, "numbers_of/__init__.py", name="numbers_of")
    write(root / "src/numbers_of/__init__.py", "ours")
    # What lies beside a workload that lies beyond the checkout.
    imports(tmp_path / "suite", "beside.py", "theirs")
    write(root / "src/beside.py", "ours")
    write(site / "broken-1.dist-info/direct_url.json", "{")

    todo = a_task(root, source_folders=folders)
    workload = msgspec.structs.replace(todo.workload, file=str(tmp_path / "suite/it.py"))
    todo = msgspec.structs.replace(todo, workload=workload)
    assert shared_code.shared_files(todo) == []


def test_what_leads_to_an_editable_install_is_no_module_that_was_built(tmp_path, site, imports):
    root = tmp_path / "head"
    imports(site, "__editable___my_model_finder.py", "")
    installed(site, "__editable___my_model_finder.py", origin=tmp_path / "base")

    assert refusal(root, tmp_path / "base", native_source="csrc/fast.c") == ""


@pytest.mark.parametrize(
    ("pyproject", "is_ours"),
    [
        ('[project]\nname = "My.Model"\n', True),
        ('[tool.poetry]\nname = "my-model"\n', True),
        ('[project]\nname = "others"\n', False),
        ("[project", False),
        ("project = 1", False),
    ],
)
def test_a_package_of_an_index_is_a_copy_where_the_project_has_its_name(
    tmp_path, site, imports, pyproject, is_ours
):
    root = tmp_path / "head"
    write(root / "src/my_model/net.py", "x = 2")
    write(root / "pyproject.toml", pyproject)
    imports(site, "my_model/net.py", "x = 1")
    installed(site, "my_model/net.py")

    assert ("my_model.net" in refusal(root)) is is_ours


def test_what_a_build_writes_of_the_version_is_no_other_code(tmp_path, site, imports):
    root = tmp_path / "head"
    write(root / "src/my_model/_version.py", "x = 'unknown'")
    write(root / "src/my_model/conversion.py", "x = 1")
    imports(site, "my_model/_version.py", "x = '0.1'")
    installed(site, "my_model/_version.py", origin=tmp_path / "app")
    assert refusal(root) == ""

    imports(site, "my_model/conversion.py", "x = 2")

    assert "my_model.conversion" in refusal(root)


def test_a_data_file_of_a_copy_must_be_that_of_the_checkout(tmp_path, site, imports):
    root = tmp_path / "head"
    write(root / "src/my_model/__init__.py")
    write(root / "src/my_model/data/conf.json", "1")
    write(root / "src/my_model/data/not_installed.json", "1")
    write(root / "src/my_model/not_imported.py", "1")
    imports(site, "my_model/__init__.py")
    write(site / "my_model/data/conf.json", "1")
    write(site / "my_model/not_imported.py", "2")
    installed(site, "my_model/__init__.py", origin=tmp_path / "app")
    assert refusal(root) == ""

    write(root / "src/my_model/data/conf.json", "2")

    assert f"my_model/data/conf.json ({site}/my_model/data/conf.json)" in refusal(root)


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
        words = f"share: _fast ({site}/_fast.so); csrc/fast.c differs"
        assert (words in why) is (root.name != origin)
        assert bool(why) is (root.name != origin)


def test_compiled_modules_of_others_are_not_refused(tmp_path, site, imports):
    imports(site, "_fast.so", "compiled")
    installed(site, "_fast.so", origin=tmp_path / "app")

    assert refusal(tmp_path / "head", native_source="csrc/fast.c") == ""


def test_links_into_a_cache_are_an_installed_copy(tmp_path, site, imports):
    root = tmp_path / "head"
    write(root / "src/my_model/net.py", "x = 2")
    write(tmp_path / "cache/net.py", "x = 1")
    imports(site, "my_model/net.py")
    (site / "my_model/net.py").unlink()
    (site / "my_model/net.py").symlink_to(tmp_path / "cache/net.py")
    installed(site, "my_model/net.py", origin=tmp_path / "app")

    assert "my_model.net" in refusal(root)


def test_code_of_either_checkout_is_no_copy(tmp_path, imports):
    base, head = tmp_path / "base", tmp_path / "head"
    for root in (base, head):
        write(root / "src/my_model/net.py", "x = 1")
    imports(head / "src", "my_model/net.py", "x = 2")
    imports(base / "lib", "my_model/__init__.py", "x = 2")

    assert shared_code.shared_files(a_task(head, base)) == []
