import subprocess
import sys
import types

import msgspec
import pytest

from ci_perf.measuring import own_code
from tests.unit.measuring.own_code.copies import a_task, installed, refusal, write


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
    write(head / "src/my_model/net.py")
    imports(site, "my_model/net.py")
    installed(site, "my_model/net.py", origin=head)

    assert refusal(head, base) == ""
    assert "expected only what is in" in refusal(base, head)


@pytest.mark.parametrize("source_folder", ["src", "services/train"], ids=["usual", "nested"])
def test_a_copy_that_nobody_has_noted_is_refused_wherever_it_lies(tmp_path, imports, source_folder):
    root, elsewhere = tmp_path / "head", tmp_path / "app/src"
    # The folder that has most of a package is its source.
    write(root / "attic/my_model/net.py", "an old one")
    for file in ("my_model/__init__.py", "my_model/net.py"):
        write(root / source_folder / file, "x = 1")
        imports(elsewhere, file, "x = 1")
    assert refusal(root, source_folders=("attic", source_folder)) == ""

    write(root / source_folder / "my_model/net.py", "x = 2")

    why = refusal(root, source_folders=("attic", source_folder))
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
    assert own_code.find_copies(todo) == []


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
    assert [each.name for each in own_code.find_copies(a_task(root))] == ["lab.ours.net"]

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


def test_a_package_of_the_head_whose_folder_has_another_name_is_refused_for_the_base(
    tmp_path, site, imports
):
    base, head = tmp_path / "base", tmp_path / "head"
    for root in (base, head):
        write(root / "code/net.py", "x = 2")
    imports(site, "my_model/net.py", "x = 2")
    installed(site, "my_model/net.py", origin=head)

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


def test_links_into_a_cache_are_an_installed_copy(tmp_path, site, imports):
    root = tmp_path / "head"
    write(root / "src/my_model/net.py", "x = 2")
    write(tmp_path / "cache/net.py", "x = 1")
    imports(site, "my_model/net.py")
    (site / "my_model/net.py").unlink()
    (site / "my_model/net.py").symlink_to(tmp_path / "cache/net.py")
    installed(site, "my_model/net.py", origin=tmp_path / "app")

    assert "my_model.net" in refusal(root)


def test_a_sibling_of_the_folder_that_is_measured_is_no_copy_but_may_have_one(tmp_path, imports):
    root, folders = tmp_path / "repository/a", (".", "../b", "../b/src", "../b/src/my_model")
    root.mkdir(parents=True)
    write(root.parent / "b/src/my_model/net.py", "x = 2")
    imports(root.parent / "b/src", "my_model/net.py", "x = 2")
    assert own_code.find_copies(a_task(root, source_folders=folders)) == []

    imports(tmp_path / "app", "my_model/net.py", "x = 1")

    assert '`python_path = ["../b/src"]`' in refusal(root, source_folders=folders)


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


def test_code_of_either_checkout_is_no_copy(tmp_path, imports):
    base, head = tmp_path / "base", tmp_path / "head"
    for root in (base, head):
        write(root / "src/my_model/net.py", "x = 1")
    imports(head / "src", "my_model/net.py", "x = 2")
    imports(base / "lib", "my_model/__init__.py", "x = 2")

    assert own_code.find_copies(a_task(head, base)) == []


def test_a_copy_whose_modules_come_from_several_folders_is_refused(tmp_path, site, imports):
    root = tmp_path / "head"
    modules = {"src": ("a", "b"), "python": ("c", "d")}
    for folder, names in modules.items():
        for name in names:
            write(root / folder / f"my_model/{name}.py", "x = 1")
            imports(site, f"my_model/{name}.py", "x = 1")
    files = [f"my_model/{name}.py" for names in modules.values() for name in names]
    installed(site, *files, origin=tmp_path / "app")
    assert refusal(root) == ""

    write(root / "python/my_model/d.py", "x = 2")
    assert refusal(root).endswith(f"Copied: my_model.d ({site}/my_model/d.py)")

    for name in ("src/my_model/a", "src/my_model/b", "python/my_model/c"):
        write(root / f"{name}.py", "x = 2")
    assert refusal(root).endswith("/a.py), my_model.b, my_model.c and 1 more")


def test_a_file_that_a_build_of_the_head_has_made_is_no_code_of_the_head(tmp_path, site, imports):
    base, head = tmp_path / "base", tmp_path / "head"
    for root in (base, head):
        write(root / "src/my_model/net.py", "x = 1")
    for name in ("net", "net_pb2"):
        imports(site, f"my_model/{name}.py", "x = 1")
    installed(site, "my_model/net.py", "my_model/net_pb2.py", origin=head)

    assert refusal(base, head) == ""
    assert refusal(head, base) == ""


def test_a_process_that_is_forked_does_not_look_again(tmp_path):
    """To look at all modules takes longer than to time a step of microseconds."""
    program = f"""
import os, pathlib
from ci_perf.measuring import own_code
from tests.unit.measuring.own_code.copies import a_task
task = a_task(pathlib.Path({str(tmp_path)!r}))
own_code.check(task)
del own_code.find_copies
if not os.fork():
    own_code.check(task)
    os._exit(0)
print(os.wait()[1])
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )

    assert done.stdout == "0\n", done.stderr
