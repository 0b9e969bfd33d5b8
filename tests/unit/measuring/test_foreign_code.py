import json
import os
import sys
import types

import pytest

from ci_perf.measuring import foreign_code


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

    with pytest.raises(foreign_code.ForeignCodeError, match=r"package\.code"):
        foreign_code.check_imports(str(base), root=str(head), file=str(head / "workload.py"))


def test_code_beside_a_root_of_which_the_name_begins_alike_is_not_of_the_other_side(
    tmp_path, monkeypatch
):
    (tmp_path / "head").mkdir()
    (tmp_path / "head/code.py").touch()
    module = types.ModuleType("code_of_head")
    module.__file__ = str(tmp_path / "head/code.py")
    monkeypatch.setitem(sys.modules, "code_of_head", module)

    for foreign in ("hea", "headless"):
        foreign_code.check_imports(
            str(tmp_path / foreign), root=str(tmp_path / "head"), file=str(tmp_path / "head/w.py")
        )


@pytest.mark.parametrize(
    "path", ["/", "//", "/usr", "/bin", "/bin/", "/bin/sh", "/x/../y", "/x/.", "", ".", "..", "a/b"]
)
def test_a_real_path_is_that_of_the_standard_library(path):
    assert foreign_code.real_path(path) == os.path.realpath(path)


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
        assert foreign_code.real_path(path) == os.path.realpath(path)
    for folder in (tmp_path, tmp_path / "folder"):
        monkeypatch.chdir(folder)
        assert foreign_code.real_path("too") == os.path.realpath("too")


@pytest.fixture
def site(tmp_path, monkeypatch):
    """Return a folder of installed packages, which Python imports from."""
    folder = tmp_path / "venv/site-packages"
    folder.mkdir(parents=True)
    monkeypatch.setattr(sys, "path", [*sys.path, str(folder)])
    return folder


def write(file, text):
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def import_installed(monkeypatch, site, text, *, file="my_model/net.py", built_from=None):
    """Have a module be imported that pip has installed: from an image's folder, unless told."""
    write(site / file, text)
    module = types.ModuleType("my_model.net")
    module.__file__ = str(site / file)
    monkeypatch.setitem(sys.modules, "my_model.net", module)
    origin = built_from or site.parent / "app"
    note = {"url": origin.as_uri(), "dir_info": {}}
    write(site / "my_model-0.1.dist-info/direct_url.json", json.dumps(note))
    write(site / "my_model-0.1.dist-info/RECORD", f"{file},sha256=x,1\n")


@pytest.mark.parametrize("folder", ["src", "lib", "python", ""])
def test_an_installed_copy_of_other_code_than_the_checkout_has_is_refused(
    tmp_path, monkeypatch, site, folder
):
    root = tmp_path / "head"
    write(root / folder / "my_model/__init__.py", "")
    write(root / folder / "my_model/net.py", "x = 1")
    import_installed(monkeypatch, site, "x = 1")
    foreign_code.check_copies(str(root))

    write(root / folder / "my_model/net.py", "x = 2")

    with pytest.raises(foreign_code.ForeignCodeError, match=r"my_model\.net .*net\.py differs"):
        foreign_code.check_copies(str(root))


def test_the_base_of_a_project_in_a_folder_is_refused_where_the_head_is_installed(
    tmp_path, monkeypatch, site
):
    base, head = tmp_path / "base", tmp_path / "head"
    for root, text in ((base, "x = 1"), (head, "x = 2")):
        write(root / "packages/a model/src/my_model/__init__.py", "")
        write(root / "packages/a model/src/my_model/net.py", text)
    import_installed(monkeypatch, site, "x = 2", built_from=head / "packages/a model")

    foreign_code.check_copies(str(head), str(base))

    with pytest.raises(foreign_code.ForeignCodeError, match=r"my_model\.net"):
        foreign_code.check_copies(str(base), str(head))


def test_a_module_that_only_the_other_side_has_is_refused(tmp_path, monkeypatch, site):
    base, head = tmp_path / "base", tmp_path / "head"
    write(base / "source/my_model/__init__.py", "")
    write(head / "src/my_model/net.py", "x = 1")
    import_installed(monkeypatch, site, "x = 1", built_from=head)

    foreign_code.check_copies(str(head), str(base))

    with pytest.raises(foreign_code.ForeignCodeError, match="the checkout has no such file"):
        foreign_code.check_copies(str(base), str(head))


def test_packages_of_others_and_what_a_build_writes_are_no_other_code(tmp_path, monkeypatch, site):
    root = tmp_path / "head"
    import_installed(monkeypatch, site, "x = 1")
    write(site / "broken-1.dist-info/direct_url.json", "{")
    foreign_code.check_copies(str(root))
    assert foreign_code.installed_copies(str(root)) == []

    write(root / "src/my_model/_version.py", "x = 'unknown'")
    import_installed(monkeypatch, site, "x = '0.1'", file="my_model/_version.py")
    foreign_code.check_copies(str(root))
    assert [each.name for each in foreign_code.installed_copies(str(root))] == ["my_model.net"]

    write(root / "lib/my_model/conversion.py", "x = 1")
    import_installed(monkeypatch, site, "x = 2", file="my_model/conversion.py")
    with pytest.raises(foreign_code.ForeignCodeError):
        foreign_code.check_copies(str(root))

    (site / "my_model-0.1.dist-info/direct_url.json").unlink()  # as of an index
    foreign_code.check_copies(str(root))
