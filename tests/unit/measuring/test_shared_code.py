import json
import subprocess
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
    assert (f'(`python_path = ["{folder}"]`)' if folder else "(`python_path`)") in refusal(root)


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
    assert "expected only what is in" in refusal(base, head)


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


def test_the_folder_that_has_most_of_a_package_is_its_source(tmp_path, imports):
    root = tmp_path / "head"
    write(root / "attic/my_model/net.py", "an old one")
    for file in ("my_model/__init__.py", "my_model/net.py"):
        write(root / "code" / file, "x = 1")
        imports(tmp_path / "app", file, "x = 1")

    assert refusal(root, source_folders=("attic", "code")) == ""


def test_packages_of_others_are_no_copies(tmp_path, site, imports):
    root = tmp_path / "head"
    folders = ("examples", "services", "third_party", "src/net")
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
    # A package of the same name as one in the usual folder, but for its first file another.
    imports(tmp_path / "hub", "models/__init__.py", "theirs")
    imports(tmp_path / "hub", "models/general.py", "theirs")
    write(root / "src/models/__init__.py", "ours")
    # A package of a repository elsewhere, of which the checkout has changed a copy.
    imports(site, "clip/__init__.py", "theirs")
    installed(site, "clip/__init__.py", name="clip")
    write(site / "clip-0.1.dist-info/direct_url.json", '{"url": "https://github.com/x/clip"}')
    write(root / "examples/clip/__init__.py", "ours")
    # What the checkout keeps of others, and a package inside of one of its own.
    imports(tmp_path / "kit", "kept/__init__.py", "theirs")
    write(root / "third_party/kept/__init__.py", "ours")
    imports(tmp_path / "kit", "ops/__init__.py", "theirs")
    write(root / "src/net/__init__.py", "ours")
    write(root / "src/net/ops/__init__.py", "ours")
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
    ("file", "text", "is_ours"),
    [
        ("pyproject.toml", '[project]\nname = "My.Model"\n', True),
        ("pyproject.toml", '[tool.poetry]\nname = "my-model"\n', True),
        ("setup.cfg", "[metadata]\nname = my_model\n", True),
        ("setup.py", "setup(name='my-model', version=1)", True),
        ("pyproject.toml", '[project]\nname = "others"\n', False),
        ("pyproject.toml", "[project", False),
        ("pyproject.toml", "project = 1", False),
        ("setup.cfg", "[metadata", False),
    ],
)
@pytest.mark.parametrize("folder", ["src", "code"])
def test_a_package_of_an_index_is_a_copy_where_the_project_has_its_name(
    tmp_path, site, imports, folder, file, text, is_ours
):
    root = tmp_path / "head"
    write(root / folder / "my_model/net.py", "x = 2")
    write(root / file, text)
    imports(site, "my_model/net.py", "x = 1")
    installed(site, "my_model/net.py")

    assert ("my_model.net" in refusal(root, source_folders=(".", folder))) is is_ours


def test_of_a_namespace_only_the_part_of_the_project_is_a_copy(tmp_path, site, imports):
    root = tmp_path / "head"
    write(root / "src/lab/ours/net.py", "x = 1")
    write(root / "setup.cfg", "[metadata]\nname = lab-ours\n")
    for name in ("ours", "theirs"):
        imports(site, f"lab/{name}/net.py", "x = 1")
        installed(site, f"lab/{name}/net.py", name=f"lab_{name}")
    assert [each.name for each in shared_code.shared_files(a_task(root))] == ["lab.ours.net"]

    write(root / "src/lab/ours/net.py", "x = 2")

    assert "lab.ours.net" in refusal(root)


def test_each_part_of_a_namespace_has_its_own_source_folder(tmp_path, site, imports):
    root = tmp_path / "head"
    for name in ("a", "b"):
        write(root / f"packages/{name}/src/lab/{name}/net.py", "x = 1")
        write(root / f"packages/{name}/setup.py")
        imports(site, f"lab/{name}/net.py", "x = 1")
        installed(site, f"lab/{name}/net.py", name=f"lab_{name}", origin=root / "packages" / name)
    folders = ("packages/a/src", "packages/b/src")
    assert refusal(root, tmp_path / "base", source_folders=folders) == ""

    write(root / "packages/b/src/lab/b/net.py", "x = 2")

    why = refusal(root, tmp_path / "base", source_folders=folders)
    assert why.startswith("expected packages/b/src/lab/b/net.py of ")


def test_a_package_that_lies_in_a_folder_of_another_name_is_known_by_what_it_holds(
    tmp_path, site, imports
):
    base, head = tmp_path / "base", tmp_path / "head"
    for root in (base, head):
        write(root / "code/net.py", "x = 2")
    imports(site, "my_model/net.py", "x = 2")
    installed(site, "my_model/net.py", origin=head)
    assert refusal(base, head, source_folders=("code",)) == ""

    write(base / "code/net.py", "x = 1")

    assert refusal(head, base, source_folders=("code",)) == ""
    assert "my_model.net" in refusal(base, head, source_folders=("code",))


def test_a_stale_copy_in_a_folder_that_git_does_not_know_is_refused(tmp_path, monkeypatch, imports):
    root = tmp_path / "head"
    monkeypatch.setattr(sys, "path", [*sys.path, str(root / ".deps")])
    write(root / "src/my_model/net.py", "x = 1")
    imports(root / ".deps", "my_model/net.py", "x = 1")
    installed(root / ".deps", "my_model/net.py", origin=root)
    folders = (".", "src", "src/my_model")
    assert refusal(root, source_folders=folders) == ""

    write(root / "src/my_model/net.py", "x = 2")

    assert "--upgrade --target" in refusal(root, source_folders=folders)


def test_a_module_that_has_left_sys_modules_counts_with_its_package(tmp_path, site, imports):
    root = tmp_path / "head"
    for folder, text in ((root / "src", "x = 2"), (site, "x = 1")):
        write(folder / "my_model/__init__.py")
        write(folder / "my_model/replaced.py", text)
    imports(site, "my_model/__init__.py")
    installed(site, "my_model/__init__.py", "my_model/replaced.py", origin=root)

    assert "my_model/replaced.py" in refusal(root)


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
    monkeypatch.setattr(shared_code, "_has_started_programs", lambda: False)
    assert shared_code.refusal(todo) == ""

    monkeypatch.setattr(shared_code, "_has_started_programs", lambda: True)

    assert bool(shared_code.refusal(todo)) is not bool(python_path)


def test_a_process_that_started_programs_knows_it():
    script = (
        "import subprocess, sys\nfrom ci_perf.measuring import shared_code\n"
        "print(shared_code._has_started_programs())\n"
        "child = subprocess.Popen([sys.executable, '-c', 'input()'], stdin=-1)\n"
        "print(shared_code._has_started_programs())\nchild.communicate(b'\\n')\n"
        "print(shared_code._has_started_programs())\n"
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


def test_a_sibling_of_the_folder_that_is_measured_is_no_copy_but_may_have_one(tmp_path, imports):
    root, folders = tmp_path / "repository/a", (".", "../b", "../b/src", "../b/src/my_model")
    root.mkdir(parents=True)
    write(root.parent / "b/src/my_model/net.py", "x = 2")
    imports(root.parent / "b/src", "my_model/net.py", "x = 2")
    assert shared_code.shared_files(a_task(root, source_folders=folders)) == []

    imports(tmp_path / "app", "my_model/net.py", "x = 1")

    assert '`python_path = ["../b/src"]`' in refusal(root, source_folders=folders)


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
    write(root / "src/my_model/fast.so", "built in place")
    imports(site, "my_model/__init__.py")
    write(site / "my_model/data/conf.json", "1")
    write(site / "my_model/fast.so", "installed")
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


def test_a_file_that_says_the_version_is_no_module_that_was_built(tmp_path, site, imports):
    root = tmp_path / "head"
    write(root / "src/my_model/__init__.py")
    for file in ("my_model/__init__.py", "my_model/_version.py"):
        imports(site, file)
    installed(site, "my_model/__init__.py", "my_model/_version.py", origin=tmp_path / "app")

    assert refusal(root, native_source="setup.py") == ""


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
