"""A folder of installed packages, and modules that come from wherever a test says."""

import sys
import types

import pytest

from tests.unit.measuring.own_code.copies import write


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
