"""Ways in which a change could act without touching what is recorded.

Each is found, so that the row would be measured; or two launches show that nothing has changed.
"""

import io
import os
import pickle
import sqlite3
import sysconfig
import zipfile
from collections import ChainMap

import msgspec
import pytest

from ci_perf.model.program import digest
from ci_perf.program.tree_sources import GitTree
from ci_perf.same_program import proof
from tests import repositories
from tests.integration.same_program.projects import HEAD, Link, recorded, replaced

# Of a folder beyond the repository that each launch makes anew.
MADE = "made-by-the-program-"
WORKLOAD = f"""
import colorsys, importlib, importlib.metadata, os, pkgutil, site, sqlite3, statistics, sys
import tempfile
{HEAD}
import model
from model import net

ROOT = pathlib.Path(__file__).parent.parent
site.addsitedir(str(ROOT / "vendor"))
sys.path.append(str(ROOT / "packed.zip"))

def made():
    with tempfile.TemporaryDirectory(prefix="{MADE}") as folder:
        inner = pathlib.Path(folder, "inner")
        inner.mkdir()
        os.link(ROOT / "data/linked.txt", inner / "again.txt")
        return (inner / "again.txt").read_text(), os.listdir(inner), os.path.isfile("")

def outcome():
    from model import lazy
    labels = json.loads((ROOT / "data/labels.json").read_text())
    network = net.Net(labels["fast"])
    plugins = sorted(name for name in os.listdir(ROOT / "model/plugins") if name[:1] != "_")
    for name in plugins:
        importlib.import_module(f"model.plugins.{{name[:-3]}}")
    return [
        network.forward(3),
        lazy.value(),
        model.computed,
        colorsys.rgb_to_hsv(0, 0, 1),
        statistics.mean([1, 2]),
        plugins,
        (ROOT / "data/current.json").read_text(),
        str(net.weights(ROOT / "data/weights.pkl")),
        net.generated(ROOT / "data/kernel.txt"),
        (ROOT / "local.toml").exists(),
        os.environ.get("MODEL_MODE", "none"),
        [point.name for point in importlib.metadata.entry_points(group="model.plugins")],
        model.EXTRA,
        importlib.import_module("contrib.tools").TOOLS,
        importlib.import_module("packed").VALUE,
        [module.name for module in pkgutil.iter_modules([str(ROOT / "extensions")])],
        sorted(path.name for path in (ROOT / "configs").rglob("*.json")),
        sqlite3.connect(ROOT / "data/numbers.db").execute("select n from numbers").fetchall(),
        made(),
    ]
"""
INIT = '''
"""A model."""
try:
    import accelerator_extra
    EXTRA = accelerator_extra.FAST
except ImportError:
    EXTRA = None

def __getattr__(name):
    if name == "computed":
        return 42
    raise AttributeError(name)
'''
NET = '''
"""A network."""
import pickle

SCALE = 2

class Net:
    """All of it."""

    depth = 3

    def __init__(self, fast):
        self.fast = fast

    def forward(self, x, bias=1):
        """Compute."""
        assert x > 0
        return self.quick(x) + bias if self.fast else self.slow(x) + bias

    def quick(self, x):
        return SCALE * x

    def slow(self, x):
        return sum(x for _ in range(SCALE))

    def backward(self, x: int = SCALE):
        return self.depth * x

def weights(path):
    return pickle.loads(path.read_bytes())

def generated(path):
    space = {}
    exec(path.read_text(), space)
    return space["result"]
'''


def zipped(source):
    """Return a zip archive with one module."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("packed.py", source)
    return archive.getvalue()


def database(number):
    """Return a file of SQLite with one number."""
    with sqlite3.connect(":memory:") as connection:
        connection.execute("create table numbers as select ? as n", (number,))
        return connection.serialize()


FILES = {
    "workloads/it.py": WORKLOAD,
    "model/__init__.py": INIT,
    "model/net.py": NET,
    "model/lazy.py": "def value():\n    return 7\n\ndef unused():\n    return 8\n",
    "model/never.py": "from model import net\n",
    "model/plugins/__init__.py": "",
    "model/plugins/first.py": "NAME = 1\n",
    "contrib/tools.py": "TOOLS = 5\n",
    "data/labels.json": '{"fast": true}',
    "data/one.json": "[1]",
    "data/two.json": "[2]",
    "data/current.json": Link("one.json"),
    "data/linked.txt": "one",
    "data/weights.pkl": pickle.dumps([1, 2]),
    "data/kernel.txt": "result = 1 + 1\n",
    "data/numbers.db": database(1),
    "configs/deep/a.json": "{}",
    "extensions/one.py": "",
    "vendor/paths.pth": "lib\n",
    "packed.zip": zipped("VALUE = 1"),
    "README.md": "A project.\n",
}
# Python's own: 3 has both flags, of a hash in the place of a date and of a check that is made.
UNCHECKED_PYC = b"\xa7\r\r\n\1\0\0\0" + b"0" * 8
SUFFIX = sysconfig.get_config_var("EXT_SUFFIX")
LARGER = "import model.net\nmodel.net.Net.forward = lambda self, x: 0\n"

NEW = " is new, and the program has looked for such a name"
PATCHED = "lib\nimport model.net; model.net.SCALE = 3\n"
LINK = " is another link, or was none"
NET_DIFFERS = "model/net.py differs"
LABELS, CURRENT = "data/labels.json", "data/current.json"
METADATA = "Name: more\nVersion: 1\n"
POINTS = "[model.plugins]\nmore = model.never\n"
FAST = "FAST = True"


def net(old, new):
    """Return the change of the file of the network."""
    return {"model/net.py": replaced(old, new)}


# Name: what is changed, and how the difference begins that must be found.
FOUND = {
    "a function that runs": (net("SCALE * x", "SCALE + x"), NET_DIFFERS),
    "a default that counts": (net("bias=1", "bias=2"), NET_DIFFERS),
    "a default of a function that never runs": (net("int = SCALE", "int = print(1)"), NET_DIFFERS),
    "an assertion": (net("assert x > 0", "assert x > 1"), NET_DIFFERS),
    "a finalizer": (net("    depth", "    def __del__(self): print(1)\n    depth"), NET_DIFFERS),
    "a decorator of what never runs": (
        net("    def backward", "    @print\n    def backward"),
        NET_DIFFERS,
    ),
    "a constant of a module": (net("SCALE = 2", "SCALE = 3"), NET_DIFFERS),
    "the future": (net('"""A network."""', "from __future__ import annotations"), NET_DIFFERS),
    "a monkeypatch": ({"model/plugins/first.py": LARGER}, "model/plugins/first.py differs"),
    "a lazy import": ({"model/lazy.py": replaced("return 7", "return 6")}, "model/lazy.py differs"),
    "the __getattr__ of a module": (
        {"model/__init__.py": replaced("return 42", "return 43")},
        "model/__init__.py differs",
    ),
    "an optional module": ({"accelerator_extra.py": FAST}, f"accelerator_extra.py{NEW}"),
    "an optional package": ({"accelerator_extra/__init__.py": FAST}, f"accelerator_extra{NEW}"),
    "a shadowed module of Python": ({"colorsys.py": "rgb_to_hsv = max"}, f"colorsys.py{NEW}"),
    "a module beside the workload": (
        {"workloads/accelerator_extra.py": FAST},
        f"workloads/accelerator_extra.py{NEW}",
    ),
    "a compiled module without a source": ({"colorsys.pyc": UNCHECKED_PYC}, f"colorsys.pyc{NEW}"),
    "a package in the place of a module": ({"model/net/__init__.py": NET}, f"model/net{NEW}"),
    "a C extension": ({f"model/net{SUFFIX}": b"\x7fELF"}, f"model/net{SUFFIX}{NEW}"),
    "a namespace that becomes a package": (
        {"contrib/__init__.py": "print(1)"},
        f"contrib/__init__.py{NEW}",
    ),
    "another first file of a package": (
        {f"model/__init__{SUFFIX}": b"\x7fELF"},
        f"model/__init__{SUFFIX}{NEW}",
    ),
    "a compiled file that is never checked": (
        {"model/__pycache__/net.cpython-311.pyc": UNCHECKED_PYC},
        "model/__pycache__/net.cpython-311.pyc may be executed in the place of model/net.py",
    ),
    "a plugin": ({"model/plugins/second.py": "NAME = 2\n"}, "the names in model/plugins differ"),
    "an entry point": (
        {"more-1.dist-info/METADATA": METADATA, "more-1.dist-info/entry_points.txt": POINTS},
        f"more-1.dist-info{NEW}",
    ),
    "a .pth in a folder of sites": ({"vendor/more.pth": PATCHED}, "the names in vendor differ"),
    "a line of a .pth": ({"vendor/paths.pth": PATCHED}, "vendor/paths.pth differs"),
    "a module in an archive": ({"packed.zip": zipped("VALUE = 2")}, "packed.zip differs"),
    "a module before the one in an archive": ({"packed.py": "VALUE = 2"}, f"packed.py{NEW}"),
    "what pkgutil lists": ({"extensions/two.py": ""}, "the names in extensions differ"),
    "what a pattern matches": ({"configs/deep/b.json": "{}"}, "the names in configs/deep differ"),
    "a database that C reads": ({"data/numbers.db": database(2)}, "data/numbers.db differs"),
    "data that are read by another name": ({"data/linked.txt": "two"}, "data/linked.txt differs"),
    "data that choose a branch": ({LABELS: '{"fast": false}'}, LABELS),
    "pickled code": ({"data/weights.pkl": pickle.dumps(print)}, "data/weights.pkl differs"),
    "generated code": ({"data/kernel.txt": "result = 2\n"}, "data/kernel.txt differs"),
    "a link to another file": ({CURRENT: Link("two.json")}, CURRENT),
    "a link to the same": ({"data/three.json": "[1]", CURRENT: Link("three.json")}, CURRENT + LINK),
    "a file that becomes a link": (
        {"data/four.json": '{"fast": true}', LABELS: Link("four.json")},
        f"{LABELS} is not there any more",
    ),
    "a link that leads out of the repository": (
        {LABELS: Link("/etc/hostname")},
        f"{LABELS} is not there any more",
    ),
    "the file behind a link": ({"data/one.json": "[3]"}, "data/one.json differs"),
    "a package that becomes a link": (
        {"model": None, "other": Link("contrib"), "model/net.py": NET},
        "model/__init__.py is not there any more",
    ),
    "settings that were looked for in vain": ({"local.toml": "x = 1"}, f"local.toml{NEW}"),
    "settings that are a broken link": ({"local.toml": Link("nothing")}, f"local.toml{NEW}"),
    "a file that is gone": ({LABELS: None}, f"{LABELS} is not there any more"),
    "a branch that is not taken": (net("range(SCALE)", "range(SCALE * 9)"), NET_DIFFERS),
    "a source that this Python cannot parse": (
        {"model/lazy.py": "def value(:\n"},
        "model/lazy.py differs",
    ),
    "a source that is nested too deep": (
        {"model/lazy.py": "x = " + "-" * 100_000 + "1\n"},
        "model/lazy.py differs",
    ),
}

# Name: what is changed, and nothing comes of it.
UNCHANGED = {
    "sitecustomize, as the repository is not yet on sys.path when it is looked for": {
        "sitecustomize.py": "import os; os.abort()",
    },
    "a module of the standard library that a launch has imported before": {
        "statistics.py": "mean = max"
    },
    "a file of pytest": {"conftest.py": "raise SystemExit\n"},
    "a .pth outside of site-packages": {"more.pth": "import os; os.abort()\n"},
    "a monkeypatch in a module that is never imported": {"model/never.py": LARGER},
    "a new module that nobody names": {"model/evil.py": "raise SystemExit\n"},
    "names that differ by case": {"data/Labels.json": "{}", "Colorsys.py": "x = 1\n"},
    "lines that move": {"model/net.py": replaced("SCALE = 2", "# Twice.\n\n\nSCALE = (\n  2)")},
    "documents": {"README.md": "Another project.\n", "docs/more.md": "More.\n"},
}


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    made = recorded(tmp_path_factory.mktemp("recorded"), FILES)
    assert made.program.obstacles == ()
    return made


def test_the_project_itself_is_the_same_program(project, tmp_path):
    head = project.changed(tmp_path, {})

    assert head.differences() == ["", ""]
    files = [each for each in project.program.paths.values() if each.startswith(("file", "code"))]
    assert len(files) == 15
    assert not [path for path in project.program.outside if MADE in path]


@pytest.mark.parametrize(("changes", "detail"), FOUND.values(), ids=FOUND)
def test_a_change_that_may_act_is_found(project, tmp_path, changes, detail):
    head = project.changed(tmp_path, changes)

    for difference in head.differences():
        assert difference.startswith(detail)


@pytest.mark.parametrize("changes", UNCHANGED.values(), ids=UNCHANGED)
def test_a_change_that_cannot_act_is_no_difference(project, tmp_path, changes):
    head = project.changed(tmp_path, changes)

    assert head.differences() == ["", ""]


def test_where_nothing_is_found_nothing_has_changed(project, tmp_path):
    head = project.changed(tmp_path, dict(ChainMap(*UNCHANGED.values())))

    assert head.differences() == ["", ""]
    assert head.outcome() == project.outcome()


def test_a_line_ending_that_git_changes_is_found_in_the_commit(project, tmp_path):
    head = project.changed(tmp_path, {".gitattributes": "*.json eol=crlf\n"})

    assert head.differences() == [f".gitattributes{NEW}"] * 2


def test_a_folder_that_becomes_a_submodule_is_found_in_the_commit(project, tmp_path):
    inner = repositories.init(tmp_path / "inner")
    inner.commit(tools_py="TOOLS = 5\n")
    head = project.changed(tmp_path, {"contrib": None})
    repository = repositories.Repository(head.root)
    repository.ask("submodule", "add", "--quiet", f"file://{inner.root}", "contrib")
    repository.commit()

    assert "submodule" in proof.find_difference(project.program, GitTree(head.root, "HEAD"))


def test_variables_of_the_environment_are_found(project):
    program = msgspec.structs.replace(project.program, conditions="0" * 16)

    def said(**variables):
        here = {**os.environ, **variables}
        here.pop("PYTHONDONTWRITEBYTECODE", None)  # no launch gets it
        digests = {name: digest(os.fsencode(value)) for name, value in here.items()}
        return proof.find_other_condition(program, "0" * 16, digests)

    assert said() == ""
    assert "MODEL_MODE" in said(MODEL_MODE="fast")
    assert "PYTHONOPTIMIZE" in said(PYTHONOPTIMIZE="1")
    assert "LD_PRELOAD" in said(LD_PRELOAD="/evil.so")
