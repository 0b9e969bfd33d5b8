"""Programs that see more than code, and programs of which no record can prove anything."""

import _bisect
import os
from pathlib import Path

import pytest

from tests.integration.same_program.projects import HEAD, Link, recorded, replaced, write


def a_workload(body):
    return {"workloads/it.py": f"{HEAD}\nROOT = pathlib.Path(__file__).parent.parent\n{body}"}


SITE = "vendored/site-packages"
# Uses files in ways of which a record of Python's own code would know nothing.
SEEING = f"""
import ctypes, os, sys
import late
LIBC = ctypes.CDLL(None)
LIBC.fopen.restype = ctypes.c_void_p
LIBC.fgetc.argtypes = [ctypes.c_void_p]
sys.path[:0] = [str(ROOT / "fast.zip"), str(ROOT / "{SITE}")]

def read(path):
    return LIBC.fgetc(LIBC.fopen(str(ROOT / path).encode(), b"r"))

def fails(act, path):
    try:
        act(ROOT / path)
    except OSError:
        return True
    os.chdir(ROOT)

def outcome():
    import faster
    try:
        import fastest
    except ImportError:
        pass
    outcome.n = getattr(outcome, "n", 0) + 1
    return [
        bool(ctypes.CDLL(ROOT / "native.so")),
        read("data/file"),
        read("data/folder/it"),
        late.rare() if outcome.n == 2 else 0,
        faster.NAME,
        fails(os.mkdir, "made/folder"),
        fails(lambda path: open(path, "x").close(), "made/file"),
        fails(os.chdir, "made/there"),
    ]
"""
SEEN = {
    "native.so": Path(_bisect.__file__).read_bytes(),
    "data/one/it": "1",
    "data/two/it": "2",
    "data/file": Link("one/it"),
    "data/folder": Link("one"),
    "late.py": "def rare():\n    return 1\n",
    f"{SITE}/faster.py": "NAME = 1\n",
    "made/folder": "x",
    "made/file": "x",
    "made/there/x": "",
}


@pytest.fixture(scope="module")
def seeing(tmp_path_factory):
    made = recorded(tmp_path_factory.mktemp("seeing"), a_workload(SEEING) | SEEN)
    assert made.program.obstacles == ()
    return made


@pytest.mark.parametrize(
    ("changes", "detail"),
    [
        pytest.param(
            {"native.so": lambda path: path.read_bytes() + b"\0"},
            "native.so differs",
            id="a native library",
        ),
        pytest.param(
            {"data/file": Link("two/it")},
            "data/file is another link",
            id="a link to a file that native code reads",
        ),
        pytest.param(
            {"data/folder": Link("two")},
            "data/folder is another link",
            id="a link to the folder of a file that native code reads",
        ),
        pytest.param(
            {"late.py": replaced("return 1", "return 2")}, "late.py differs", id="a later step"
        ),
        pytest.param(
            {f"{SITE}/faster.py": "NAME = 2\n"},
            f"{SITE}/faster.py",
            id="a folder that is named like one of installed packages",
        ),
        pytest.param({"fast.zip": "x"}, "fast.zip", id="an archive to import from"),
        pytest.param({"made/folder": None}, "made/folder", id="a folder that cannot be made"),
        pytest.param({"made/file": None}, "made/file", id="a file that cannot be made"),
        pytest.param({"made/there": None}, "made/there", id="a folder to change to"),
    ],
)
def test_what_sees_more_than_code_is_found(seeing, tmp_path, changes, detail):
    for difference in seeing.changed(tmp_path, changes).differences():
        assert difference.startswith(detail)


UNRECORDED = """
import os, socket, subprocess, sys
os.environ["PATH"] = f"{ROOT}:{os.environ['PATH']}"

class Finder:
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None

sys.meta_path.insert(0, Finder)

def outcome():
    with socket.socket(type=socket.SOCK_DGRAM) as datagrams:
        datagrams.connect(("127.0.0.1", 9))
    repr(os.environ)
    return subprocess.check_output(["cat", "/dev/null"]).decode()
"""


def test_what_cannot_be_recorded_is_always_measured(tmp_path):
    project = recorded(tmp_path, a_workload(UNRECORDED))

    obstacles = " and ".join(project.program.obstacles)
    for expected in (
        "starts another program, cat",
        "opens a socket",
        "whole environment",
        "a finder of modules of its own",
    ):
        assert expected in obstacles
    assert all(project.differences())


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


BEYOND = """
import sys
sys.path.append(str(ROOT.parent / "b"))
import fast
SHARED = (ROOT.parent / "shared.json").read_text(), (ROOT.parent / "new.json").exists()
"""


@pytest.mark.parametrize(
    ("body", "paths"), [(BEYOND, ("b", "new.json", "shared.json")), ("import numbers\n", ())]
)
def test_a_file_of_the_repository_beyond_the_root_ends_the_proof(tmp_path, body, paths):
    (workload,) = a_workload(f"{body}def outcome():\n    return 1\n").values()
    files = {"a/workloads/it.py": workload, "b/fast.py": "N = 1\n", "shared.json": "1"}

    project = recorded(tmp_path, files, inside="a")

    obstacles = project.program.obstacles
    named = {path for path in paths for each in obstacles if f"{project.root}/{path}" in each}
    assert named == {*paths}
    assert all("run ci-perf at the top of the repository" in each for each in obstacles)
    assert bool(obstacles) is bool(paths)


def test_a_file_of_the_head_that_the_base_would_use_too_ends_the_proof(tmp_path):
    head = tmp_path / "head"
    write(head / "data/n.txt", "2")
    body = f"def outcome():\n    return pathlib.Path({str(head / 'data/n.txt')!r}).read_text()\n"

    project = recorded(tmp_path, a_workload(body) | {"data/n.txt": "1"}, foreign=str(head))

    (obstacle,) = project.program.obstacles
    assert obstacle.startswith(f"{head}/data/n.txt belongs to a checkout")


@pytest.fixture(scope="module")
def editable(tmp_path_factory):
    """A program that asks for the groups of entry points, from a source folder."""
    body = "import importlib.metadata, sys\nsys.path.insert(0, str(ROOT / 'src'))\nimport fast\n"
    body += "NAMES = sorted(importlib.metadata.entry_points().groups)\n"
    files = a_workload(f"{body}def outcome():\n    return fast.N\n")
    files |= {"src/fast/__init__.py": "N = 1\n"}
    made = recorded(tmp_path_factory.mktemp("editable"), files)
    assert made.program.obstacles == ()
    return made


@pytest.mark.parametrize(
    ("text", "differs"),
    [
        (None, False),
        ("[console_scripts]\nfast = fast:main\n", False),
        ("[plugins]\nfast = fast:main\n", True),
    ],
)
def test_what_an_editable_install_leaves_beside_the_sources_is_no_change(
    editable, tmp_path, text, differs
):
    metadata = {"src/fast.egg-info/PKG-INFO": "Name: fast\nVersion: 1\n"}
    if text:
        metadata["src/fast.egg-info/entry_points.txt"] = text

    words = "src/fast.egg-info is new, and the program has looked for such a name"
    expected = words if differs else ""
    assert editable.changed(tmp_path, metadata).differences() == [expected, expected]
