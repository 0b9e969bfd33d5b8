"""Which statements at the beginning of a file are imports of installed libraries."""

import sys

import pytest

from ci_perf.measuring import user_code


@pytest.fixture
def imported(tmp_path, monkeypatch):
    """Run the imports at the beginning of a source; return which modules of the test ran."""
    installed = tmp_path / "site-packages"
    for folder, names in ((installed, ("a_lib", "b_lib", "c_lib")), (tmp_path, ("own",))):
        folder.mkdir(exist_ok=True)
        monkeypatch.syspath_prepend(str(folder))
        for name in names:
            (folder / f"{name}.py").write_text("value = 1\n")
    (installed / "broken.py").write_text("raise ValueError('broken')\n")
    known = ("a_lib", "b_lib", "c_lib", "own", "broken")

    def run(source):
        file = tmp_path / "workload.py"
        file.write_text(source)
        user_code.import_libraries(file)
        return {name for name in known if sys.modules.pop(name, None)}

    return run


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ('"""A docstring."""\nimport os\nimport a_lib as a, json\nfrom b_lib import value\n', "ab"),
        ("from __future__ import annotations\nimport a_lib\n", "a"),
        ("from ci_perf.workload import Workload\nimport a_lib\n", "a"),
        ("import a_lib\nimport own\nimport b_lib\n", "a"),
        ("import a_lib\nimport b_lib, own\n", "a"),
        ("import a_lib\nVALUE = 1\nimport b_lib\n", "a"),
        ("import os\nos.environ['X'] = '1'\nimport a_lib\n", ""),
        ("import a_lib\nfrom . import b_lib\nimport c_lib\n", "a"),
        ("import a_lib\nimport not_installed\nimport b_lib\n", "a"),
        ("import a_lib\ntry:\n    import b_lib\nexcept ImportError:\n    pass\n", "a"),
        ("import a_lib\nthis is no Python\n", ""),
        ("", ""),
    ],
)
def test_only_imports_of_libraries_before_anything_else_run(imported, source, expected):
    assert imported(source) == {f"{name}_lib" for name in expected}


@pytest.mark.parametrize(
    ("source", "error"),
    [
        ("import a_lib\nimport broken\n", "^broken$"),
        ("from b_lib import nothing\n", "cannot import name 'nothing'"),
    ],
)
def test_what_a_library_raises_is_raised_at_once(imported, source, error):
    """A library that is half imported may raise something else by a second try, or nothing."""
    with pytest.raises((ValueError, ImportError), match=error):
        imported(source)


def test_a_file_that_is_not_there_imports_nothing(tmp_path):
    user_code.import_libraries(tmp_path / "missing.py")


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (
            '"""Doc."""\nimport os\nfrom b_lib.nn import x\nimport a_lib, b_lib\n',
            ("b_lib", "a_lib"),
        ),
        ("import a_lib\nfrom ci_perf.workload import Workload\nimport b_lib\n", ("a_lib", "b_lib")),
        ("import os\nos.environ['X'] = '1'\nimport a_lib\n", ()),
        ("import sys\nsys.path.insert(0, '.')\nimport a_lib\n", ()),
        ("import own\nimport a_lib\n", ()),
        ("import a_lib\nimport b_lib, own.part\nimport c_lib\n", ("a_lib",)),
        ("import a_lib\nimport folder\nimport b_lib\n", ("a_lib",)),
        ("import a_lib\nfrom . import own\nimport b_lib\n", ("a_lib",)),
        ("import a_lib\nthis is no Python\n", ()),
    ],
)
def test_libraries_are_named_up_to_what_another_process_may_not_do_before(
    tmp_path, source, expected
):
    (tmp_path / "own.py").touch()
    (tmp_path / "folder").mkdir()
    (tmp_path / "it.py").write_text(source)

    assert user_code.name_libraries(tmp_path / "it.py", [tmp_path]) == expected
