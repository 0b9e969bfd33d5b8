"""Programs that see more than code, and programs of which no record can prove anything."""

import _bisect
import os
from pathlib import Path

import pytest

from tests.features.same_program.projects import HEAD, Link, recorded, replaced, write


def a_workload(body):
    return {"workloads/it.py": f"{HEAD}\nROOT = pathlib.Path(__file__).parent.parent\n{body}"}


LINES = a_workload("import sys\ndef outcome():\n    return sys._getframe().f_lineno\n")
DOCSTRINGS = a_workload("def fast():\n    '''Fast.'''\ndef outcome():\n    return fast.__doc__\n")
SOURCE = a_workload(
    "import inspect, kernels\ndef outcome():\n    return inspect.getsource(kernels.add)\n"
) | {"kernels.py": "def add(x):\n    return x  # fast\n"}
NATIVE = a_workload(
    "import ctypes\ndef outcome():\n    return bool(ctypes.CDLL(ROOT / 'native.so'))\n"
) | {"native.so": Path(_bisect.__file__).read_bytes()}


def opens(name):
    """A workload of which native code opens a file."""
    return {"data/one/it": "1", "data/two/it": "2"} | a_workload(
        "import ctypes\nLIBC = ctypes.CDLL(None)\nLIBC.fopen.restype = ctypes.c_void_p\n"
        "LIBC.fgetc.argtypes = [ctypes.c_void_p]\ndef outcome():\n"
        f"    return LIBC.fgetc(LIBC.fopen((str(ROOT) + '/data/{name}').encode(), b'r'))\n"
    )


SCHEMA = a_workload(
    "import msgspec\nclass Net(msgspec.Struct):\n    '''Fast.'''\n"
    "def outcome():\n    return msgspec.json.schema(Net)\n"
)
LATE = a_workload(
    "import late\ndef outcome():\n    outcome.n = getattr(outcome, 'n', 0) + 1\n"
    "    return late.rare() if outcome.n == 2 else 0\n"
) | {"late.py": "def rare():\n    return 1\n"}


IMPORTS = """
import sys
sys.path.insert(0, str(ROOT / "{entry}"))
def outcome():
    try:
        import faster
        return faster.NAME
    except ImportError:
        return 0
"""
SITE = "vendored/site-packages"
# Learns by a failure that something is there.
TRIES = """
import os
def outcome():
    path = ROOT / "made"
    try:
        {}
    except OSError:
        return 1
    {}
    return 0
"""


@pytest.mark.parametrize(
    ("files", "changes", "detail"),
    [
        pytest.param(
            LINES,
            {"workloads/it.py": replaced("import sys", "import sys\n\n")},
            "workloads/it.py differs",
            id="line numbers",
        ),
        pytest.param(
            DOCSTRINGS,
            {"workloads/it.py": replaced("Fast.", "Slow.")},
            "workloads/it.py differs",
            id="docstrings",
        ),
        pytest.param(
            SOURCE,
            {"kernels.py": replaced("# fast", "# slow")},
            "kernels.py differs",
            id="the text of a kernel",
        ),
        pytest.param(
            NATIVE,
            {"native.so": lambda path: path.read_bytes() + b"\0"},
            "native.so differs",
            id="a native library",
        ),
        pytest.param(
            opens("now") | {"data/now": Link("one/it")},
            {"data/now": Link("two/it")},
            "data/now is another link",
            id="a link to a file that native code reads",
        ),
        pytest.param(
            opens("now/it") | {"data/now": Link("one")},
            {"data/now": Link("two")},
            "data/now is another link",
            id="a link to the folder of a file that native code reads",
        ),
        pytest.param(
            SCHEMA,
            {"workloads/it.py": replaced("Fast.", "Slow.")},
            "workloads/it.py differs",
            id="docstrings in a schema",
        ),
        pytest.param(
            LATE,
            {"late.py": replaced("return 1", "return 2")},
            "late.py differs",
            id="a later step",
        ),
        pytest.param(
            a_workload(IMPORTS.format(entry=SITE)) | {f"{SITE}/faster.py": "NAME = 1\n"},
            {f"{SITE}/faster.py": "NAME = 2\n"},
            f"{SITE}/faster.py",
            id="a folder that is named like one of installed packages",
        ),
        pytest.param(
            a_workload(IMPORTS.format(entry="fast.zip")),
            {"fast.zip": "x"},
            "fast.zip",
            id="an archive to import from",
        ),
        pytest.param(
            a_workload(TRIES.format("os.mkdir(path)", "pass")) | {"made": "x"},
            {"made": None},
            "made",
            id="a folder that cannot be made",
        ),
        pytest.param(
            a_workload(TRIES.format("open(path, 'x').close()", "pass")) | {"made": "x"},
            {"made": None},
            "made",
            id="a file that cannot be made",
        ),
        pytest.param(
            a_workload(TRIES.format("os.chdir(path)", "os.chdir(ROOT)")) | {"made/x": ""},
            {"made": None},
            "made",
            id="a folder to change to",
        ),
    ],
)
def test_what_sees_more_than_code_is_found(tmp_path, files, changes, detail):
    project = recorded(tmp_path, files)
    assert project.program.obstacles == ()
    (tmp_path / "changed").mkdir()

    for difference in project.changed(tmp_path / "changed", changes).differences():
        assert difference.startswith(detail)


OWN_FINDER = """
import sys
class Finder:
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None
sys.meta_path.insert(0, Finder)
def outcome():
    return 0
"""
STARTS = """
import subprocess
def outcome():
    return subprocess.check_output(["cat", "/dev/null"]).decode()
"""
CONNECTS = """
import socket
def outcome():
    with socket.socket(type=socket.SOCK_DGRAM) as datagrams:
        datagrams.connect(("127.0.0.1", 9))
"""
NAMED_HARMLESSLY = """
import os, subprocess
os.environ["PATH"] = f"{ROOT}:{os.environ['PATH']}"
def outcome():
    return subprocess.check_output(["uname"]).decode()
"""
READS_ALL = "import os\ndef outcome():\n    return len([*os.environ]) > 0\n"


@pytest.mark.parametrize(
    ("body", "obstacle"),
    [
        pytest.param(STARTS, "starts another program", id="a program"),
        pytest.param(CONNECTS, "opens a socket", id="a socket"),
        pytest.param(NAMED_HARMLESSLY, "starts another program", id="a program of its own folder"),
        pytest.param(READS_ALL, "whole environment", id="all variables"),
        pytest.param(
            READS_ALL.replace("[*os.environ]", "repr(os.environ)"),
            "whole environment",
            id="all variables in a text",
        ),
        pytest.param(OWN_FINDER, "a finder of modules of its own", id="a finder"),
    ],
)
def test_what_cannot_be_recorded_is_always_measured(tmp_path, body, obstacle):
    project = recorded(tmp_path, a_workload(body))

    assert all(obstacle in difference for difference in project.differences())


def test_an_installed_copy_of_the_repository_proves_nothing(tmp_path):
    site = tmp_path / "venv/site-packages"
    (site / "fast").mkdir(parents=True)
    (site / "fast/__init__.py").write_text("N = 1\n")
    (site / "fast-1.dist-info").mkdir()
    (site / "fast-1.dist-info/direct_url.json").write_text('{"url": "file:///app"}')
    (site / "fast-1.dist-info/RECORD").write_text("fast/__init__.py,,\n")
    files = a_workload("import fast\ndef outcome():\n    return fast.N\n")

    project = recorded(
        tmp_path,
        files | {"src/fast/__init__.py": "N = 1\n"},
        environment={"PYTHONPATH": f"{site}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"},
    )

    (obstacle,) = project.program.obstacles
    assert obstacle.startswith("it uses a copy of code of this repository: fast (")


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ("N = (ROOT.parent / 'shared.json').read_text()\n", "shared.json"),
        ("N = (ROOT.parent / 'new.json').exists()\n", "new.json"),
        ("import sys\nsys.path.append(str(ROOT.parent / 'b'))\nimport fast as N\n", "b"),
        ("import numbers as N\n", ""),
    ],
)
def test_a_file_of_the_repository_beyond_the_root_ends_the_proof(tmp_path, body, path):
    (workload,) = a_workload(f"{body}def outcome():\n    return str(N)\n").values()
    files = {"a/workloads/it.py": workload, "b/fast.py": "N = 1\n", "shared.json": "1"}

    project = recorded(tmp_path, files, inside="a")

    obstacles = project.program.obstacles
    assert bool(obstacles) is bool(path)
    assert all(each.startswith(f"{project.root}/{path}") for each in obstacles)
    assert all("run ci-perf at the top of the repository" in each for each in obstacles)


def test_a_file_of_the_head_that_the_base_would_use_too_ends_the_proof(tmp_path):
    head = tmp_path / "head"
    write(head / "data/n.txt", "2")
    body = f"def outcome():\n    return pathlib.Path({str(head / 'data/n.txt')!r}).read_text()\n"

    project = recorded(tmp_path, a_workload(body) | {"data/n.txt": "1"}, foreign=str(head))

    (obstacle,) = project.program.obstacles
    assert obstacle.startswith(f"{head}/data/n.txt belongs to a checkout")


@pytest.mark.parametrize(
    ("text", "differs"),
    [
        (None, False),
        ("[console_scripts]\nfast = fast:main\n", False),
        ("[plugins]\nfast = fast:main\n", True),
    ],
)
def test_what_an_editable_install_leaves_beside_the_sources_is_no_change(tmp_path, text, differs):
    body = "import importlib.metadata, sys\nsys.path.insert(0, str(ROOT / 'src'))\nimport fast\n"
    body += "NAMES = sorted(importlib.metadata.entry_points().groups)\n"
    files = a_workload(f"{body}def outcome():\n    return fast.N\n")
    project = recorded(tmp_path, files | {"src/fast/__init__.py": "N = 1\n"})
    assert project.program.obstacles == ()
    metadata = {"src/fast.egg-info/PKG-INFO": "Name: fast\nVersion: 1\n"}
    if text:
        metadata["src/fast.egg-info/entry_points.txt"] = text
    (tmp_path / "changed").mkdir()

    words = "src/fast.egg-info is new, and the program has looked for such a name"
    expected = words if differs else ""
    assert project.changed(tmp_path / "changed", metadata).differences() == [expected, expected]
