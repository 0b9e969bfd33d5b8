"""Unusual ways to learn something of a file: each counts as a use of it."""

import pytest

from tests.integration.same_program.projects import HEAD, Link, recorded, replaced, write
from tests.integration.same_program.test_obstacles import a_workload

# Creates a file, and reads what is there where that fails.
CREATE = {
    "open": "open(path, 'x').close()",
    "os.open": "os.close(os.open(path, os.O_CREAT | os.O_EXCL))",
    "touch": "pathlib.Path(path).touch(exist_ok=False)",
    "ZipFile": "zipfile.ZipFile(path, 'x')",
    "pathlib": "pathlib.Path(path).open('x')",
    "O_DIRECTORY": "os.open(path, os.O_WRONLY | os.O_TRUNC | os.O_DIRECTORY)",
}
# Learns whether a file is there, or how large it is.
ASK = {
    "utime": "os.utime(path)",
    "chmod": "os.chmod(path, 0o644)",
    "statvfs": "os.statvfs(path)",
    "listxattr": "os.listxattr(path)",
    "truncate": "os.truncate(path, 0)",
    "posix.stat": "posix.stat(path)",
    "posix.readlink": "posix.readlink(path)",
    "link": "os.link(path, path + '2')",
    "sqlite uri": "sqlite3.connect(f'file:{path}?mode=ro', uri=True).execute('select 1 from a')",
    "dir_fd": "os.open('it', os.O_RDONLY, dir_fd=os.open(os.path.dirname(path), os.O_PATH))",
    "own link": "os.path.exists(OWN + path)\nos.symlink('/', OWN)\nos.path.exists(OWN + path)",
}
# Fails where something is there: they learn that it is.
MAKE = {
    "mkdir": "os.mkdir(path)",
    "mkfifo": "os.mkfifo(path)",
    "mknod": "os.mknod(path)",
    "rename": "os.rename(tempfile.mkdtemp(dir=PARENT), path)",
    "sqlite": "os.chdir(os.path.dirname(path))\nsqlite3.connect('it').execute('select 1 from a')",
}
WORKLOAD = f"""
import ctypes, importlib.machinery, os, posix, sqlite3, sys, tempfile, zipfile
{HEAD}
ROOT = str(pathlib.Path(__file__).parent.parent)
PARENT = os.path.dirname(ROOT)
OWN = tempfile.mkdtemp() + "/own"
LIBC = ctypes.CDLL(None)
LIBC.fopen.restype = ctypes.c_void_p

def outcome():
    values = []
    for name, line in {CREATE!r}.items():
        path = f"{{ROOT}}/created/{{name}}"
        try:
            exec(line)
        except OSError:
            values.append(open(path).read())
    for name, line in {(ASK | MAKE)!r}.items():
        path = f"{{ROOT}}/asked/{{name}}/it"
        try:
            values.append(exec(line))
        except (OSError, sqlite3.Error) as error:
            values.append(str(error))
    link = tempfile.mkdtemp() + "/link"
    os.symlink(f"{{ROOT}}/data/linked.txt", link)
    values += [os.path.getsize(link), os.path.exists(link)]
    values.append(os.stat(f"{{ROOT}}/counted").st_nlink)
    values.append(importlib.machinery.PathFinder.find_spec("asked", [ROOT + "/found"]) is None)
    values.append(posix.stat(f"{{ROOT}}/data/sized.txt").st_size)
    LIBC.fopen(f"{{ROOT}}/environment/read.txt".encode(), b"r")
    folder = os.open(f"{{ROOT}}/scanned", os.O_RDONLY)
    values.append(sum(entry.stat().st_size for entry in os.scandir(folder)))
    values.append(len([*os.walk(f"{{ROOT}}/walked")][0][1]))
    return values
"""
FILES = {
    "workloads/it.py": WORKLOAD,
    **{f"asked/{name}/there": "" for name in ASK},
    **{f"asked/{name}/it": "1" for name in MAKE},
    "counted/a/b": "",
    "data/linked.txt": "1",
    "data/sized.txt": "1",
    "environment/pyvenv.cfg": "",
    "environment/read.txt": "1",
    "found/other.py": "",
    "scanned/it.txt": "1",
    "walked/link": Link("../new"),
    **{f"created/{name}": "1" for name in CREATE},
}
CHANGES = {
    **{f"created/{name}": "22" for name in CREATE},
    **{f"asked/{name}/it": "1" for name in ASK},
    **{f"asked/{name}/it": None for name in MAKE},
    "counted/c/d": "",
    "data/linked.txt": "22",
    "data/sized.txt": "22",
    "environment/read.txt": "2",
    "found/asked.py": "",
    "new": "1",
    "scanned/it.txt": "22",
}


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    made = recorded(tmp_path_factory.mktemp("recorded"), FILES)
    assert made.program.obstacles == ()
    assert made.differences() == ["", ""]
    return made


@pytest.mark.parametrize("path", CHANGES)
def test_what_is_asked_counts(project, tmp_path, path):
    head = project.changed(tmp_path, {path: CHANGES[path]})

    is_listed = path.startswith(("counted", "asked/dir_fd"))
    expected = path.rpartition("/")[0].removesuffix("/c") if is_listed else path
    assert all(expected in difference for difference in head.differences())


# What moves or changes a file, and which one.
MOVES = {
    "os.rename(path, path + 'x'); os.rename(path + 'x', path)": "data/0.txt was moved",
    "shutil.move(path, other); shutil.move(other, path)": "data/1.txt was moved",
    "open(path, 'a').write('x')": "data/2.txt was changed",
    "open(path, 'w').write('1'); open(path).read()": "data/3.txt was changed",
    "open(path + '2', 'w').write('1'); open(path + '2').read()": "data/4.txt2 was changed",
    "os.makedirs(ROOT + '/out/deep', exist_ok=True)": "out was changed",
    "os.remove(path); open(path, 'w').close()": "data/6.txt was moved",
}


def moving(*lines):
    """A project whose program does all this, each with a file of its own."""
    body = f"""
import os, shutil, tempfile
{HEAD}
ROOT = str(pathlib.Path(__file__).parent.parent)
def outcome():
    for number, line in enumerate({lines!r}):
        path, other = f"{{ROOT}}/data/{{number}}.txt", tempfile.mkdtemp() + "/it.txt"
        exec(line)
"""
    return {"workloads/it.py": body, **{f"data/{number}.txt": "1" for number in range(len(lines))}}


def test_a_program_that_changes_files_of_the_repository_proves_nothing(tmp_path):
    project = recorded(tmp_path, moving(*MOVES))

    for expected in MOVES.values():
        assert any(each.startswith(expected) for each in project.program.obstacles), expected
    assert all(project.differences())


def test_a_file_that_is_read_by_a_link_which_the_program_has_made_counts(tmp_path):
    line = "os.symlink(os.path.dirname(path), other); open(other + '/0.txt').read()"
    project = recorded(tmp_path, moving(line))
    (tmp_path / "changed").mkdir()

    head = project.changed(tmp_path / "changed", {"data/0.txt": "2"})

    assert project.differences() == ["", ""]
    assert head.differences() == ["data/0.txt differs"] * 2


EINX = """
import functools, inspect, sys, traceback, warnings
def traced(function):
    '''As libraries do that hide their own frames.'''
    names = inspect.signature(function).parameters
    @functools.wraps(function)
    def inner(*args):
        try:
            return function(*args)
        except Exception as error:
            raise error.with_traceback(error.__traceback__.tb_next)
    inner.names = list(names)
    return inner
"""
COMMENTED = """
import kit
@kit.traced
def add(x):
    '''Add.'''
    # one
    return x + 1
"""


# What imports or says much, and sees no line.
SEES_NO_LINE = """
import os, pydoc, traceback, warnings
import click, pytest
warnings.warn('text')
pydoc.render_doc(model.add)
traceback.format_stack()
"""


def adds(lines):
    """A project with a workload that does all this before its steps."""
    body = f"import model\n{lines}\ndef outcome():\n    return model.add(1)\n"
    return a_workload(body) | {"kit.py": EINX, "model.py": COMMENTED}


@pytest.mark.parametrize(
    ("lines", "sees_lines"),
    [
        (SEES_NO_LINE, False),
        ("import inspect; inspect.getsource(model.add)", True),
        ("repr(model.add.__code__)", True),
        ("import sys; repr(sys._getframe())", True),
        ("import inspect; repr(inspect.currentframe())", True),
        ("import dis; dis.dis(model.add)", True),
        ("import tracemalloc; tracemalloc.start()", True),
        ("import warnings; warnings.catch_warnings(record=True)", True),
    ],
)
def test_docstrings_count_and_comments_where_a_program_sees_them(tmp_path, lines, sees_lines):
    project = recorded(tmp_path, adds(lines))
    assert project.program.obstacles == ()

    for old, new, is_seen in (("Add.", "Sum.", True), ("# one", "#\n\n", sees_lines)):
        where = tmp_path / new[0]
        where.mkdir()
        head = project.changed(where, {"model.py": replaced(old, new)})
        expected = "model.py differs" if is_seen else ""
        assert head.differences() == [expected, expected]


def test_comments_count_in_what_is_compiled_and_not_beside_it(tmp_path):
    compiled = "import torch; torch.compile(model.add, backend='eager')(torch.ones(1))"
    beside = "import other\nother.add(1)"
    files = adds(f"{compiled}\n{beside}") | {"other.py": COMMENTED}
    project = recorded(tmp_path, files)
    assert project.program.obstacles == ()

    for name, expected in (("model", "model.py differs"), ("other", "")):
        where = tmp_path / name
        where.mkdir()
        head = project.changed(where, {f"{name}.py": replaced("# one", "#\n\n")})
        assert head.differences() == [expected, expected]


def test_a_record_holds_for_a_base_in_which_a_comment_has_changed_since(tmp_path):
    project = recorded(tmp_path, adds("pass"))
    for name, new in (("first", "# two"), ("second", "# three")):
        (tmp_path / name).mkdir()
        project = project.changed(tmp_path / name, {"model.py": replaced("# one", new)})
        assert project.differences() == ["", ""]
        write(project.root / "model.py", COMMENTED)


def test_a_link_that_a_program_retargets_is_read_anew(tmp_path):
    body = (
        "import os\ndef outcome():\n    (ROOT / 'now').read_text()\n"
        "    os.remove(ROOT / 'now')\n    os.symlink('two', ROOT / 'now')\n"
        "    return (ROOT / 'now').read_text()\n"
    )
    files = a_workload(body) | {"one": "1", "two": "2", "now": Link("one")}

    assert recorded(tmp_path, files).program.obstacles


def test_a_recursive_glob_which_tries_to_list_files_ends_no_proof(tmp_path):
    body = "import glob\ndef outcome():\n    return glob.glob(f'{ROOT}/deep/**', recursive=True)\n"
    project = recorded(tmp_path, a_workload(body) | {"deep/a/b": "1"})
    assert project.program.obstacles == ()
    (tmp_path / "changed").mkdir()

    head = project.changed(tmp_path / "changed", {"deep/a/b": None, "deep/a/b/c": "1"})

    assert head.differences() == ["deep/a/b is not there any more"] * 2
