"""A record beside a checkout: the first difference, or none."""

import os

import msgspec
import pytest

from ci_perf.model.program import Program, digest
from ci_perf.program.tree_sources import FolderTree, GitTree
from ci_perf.same_program import code, proof
from ci_perf.system import contents
from tests import repositories

NET = "import os\n\ndef used():\n    return 1  # one\n"


@pytest.fixture
def project(tmp_path):
    """A repository with a module, a file of data, and a folder."""
    made = repositories.init(tmp_path / "project")
    (made.root / "data").mkdir()
    (made.root / "data/labels.json").write_text("[1]")
    made.commit(net_py=NET)
    return made


def record(project, **more):
    tree = FolderTree(project.root)
    plain = Program(
        workload="w",
        paths={
            "": "folder",
            "data": f"folder {contents.digest_folder(project.root / 'data')}",
            "data/labels.json": f"file {tree.blob('data/labels.json')}",
            "net.py": f"code {tree.blob('net.py')}",
        },
        searches={"": ("*.dist-info", "config.toml", "net", "numpy")},
        inputs=proof.digest_inputs(tree, ["inputs/**/*.bin"]),
    )
    return msgspec.structs.replace(plain, **more)


def find_details(program, repository):
    """Return what the checkout and its commit say, once."""
    repository.commit()
    trees = FolderTree(repository.root), GitTree(repository.root, "HEAD")
    said = {proof.find_difference(program, tree) for tree in trees}
    assert len(said) == 1, said
    return said.pop()


NEW = " is new, and the program has looked for such a name"


@pytest.mark.parametrize(
    ("path", "text", "detail"),
    [
        ("net.py", NET.replace("return 1", "return 3"), "net.py differs"),
        ("net.py", NET.replace("import os", "import re"), "net.py differs"),
        ("net.py", "\n# moved\n" + NET.replace("# one", ""), ""),
        ("net.py", "def (", "net.py differs"),
        ("data/labels.json", "[2]", "data/labels.json differs"),
        ("data/more.json", "[2]", "the names in data differ"),
        ("numpy.py", "", f"numpy.py{NEW}"),
        ("numpy/__init__.py", "", f"numpy{NEW}"),
        ("numpy.so", "", f"numpy.so{NEW}"),
        ("a.dist-info/x", "", f"a.dist-info{NEW}"),
        ("config.toml", "", f"config.toml{NEW}"),
        ("net/more.txt", "", f"net{NEW}"),
        ("README.md", "more", ""),
        ("inputs/a/b.bin", "", "the files that the input inputs/**/*.bin names differ"),
        ("inputs/a/b.txt", "", ""),
        ("__pycache__/net.cpython-311.pyc", "\0\0\0\0\1", "__pycache__/net.cpython-311.pyc may"),
        ("__pycache__/other.cpython-311.pyc", "\0\0\0\0\1", ""),
    ],
)
def test_a_change_is_a_difference_where_the_program_uses_it(project, path, text, detail):
    program = record(project)
    assert find_details(program, project) == ""
    (project.root / path).parent.mkdir(parents=True, exist_ok=True)
    (project.root / path).write_text(text)

    said = find_details(program, project)

    assert said.startswith(detail)
    assert bool(said) == bool(detail)


def test_a_file_that_is_gone_and_an_obstacle_differ(project):
    blocked = record(project, obstacles=("it starts a shell",))
    assert find_details(blocked, project) == "it starts a shell"
    program = record(project)
    (project.root / "data/labels.json").unlink()

    assert find_details(program, project) == "data/labels.json is not there any more"


@pytest.mark.parametrize(
    ("source", "shows"),
    [
        (b"import os, re, torch\nfrom numpy import sum", False),
        (b"x = f.__doc__", False),
        (b"repr(f.__code__)", True),
        (b"marshal.dumps(x)", True),
        (b"import faulthandler", True),
        (b"sys._getframe().f_lineno", True),
        (b"inspect.stack(0)", True),
        (b"torch.stack(x)", False),
        (b"logging.Formatter('%(lineno)d')", True),
    ],
)
def test_which_sources_may_see_line_numbers(source, shows):
    assert code.shows_lines(source) is shows


@pytest.mark.parametrize(
    ("new", "is_same"),
    [
        (b"def f():\n    '''Doc.'''\n    return (1)", True),
        (b"def f():\n    '''Other.'''\n    return 1", False),
        (b"def f(): return 1", False),
        (b"def f():\n    'Doc.'\n    return 1.0", False),
        (b"def g():\n    'Doc.'\n    return 1", False),
        (b"# -*- coding: latin-1 -*-\ndef f():\n    'Doc.'\n    return 1", True),
        (b"# -*- coding: unknown -*-\ndef f():\n    'Doc.'\n    return 1", False),
        (b"x = " + b"-" * 100_000 + b"1", False),
        (b"#" * 2**20 + b"\ndef f(): return 1", False),
        (b"\0", False),
    ],
)
def test_code_is_compared_without_comments(new, is_same):
    old = b"def f():\n    'Doc.'\n    return 1  # one\n"

    assert code.is_same_code(old, new) is is_same


def test_conditions_and_variables_must_be_those_of_the_record():
    program = Program(workload="w", conditions="0" * 16, variables={"A": digest(b"1"), "B": ""})
    one, two, empty = digest(b"1"), digest(b"2"), digest(b"")

    def find(conditions, **variables):
        return proof.find_other_condition(program, conditions * 16, variables)

    assert find("0", A=one, C=two) == ""
    assert "settings" in find("1", A=one)
    assert "variable A" in find("0", A=two)
    assert "variable A" in find("0")
    assert "variable B" in find("0", A=one, B=empty)
    assert "HF_HOME is new" in find("0", A=one, HF_HOME=two)
    assert proof.find_other_condition(Program(workload="w"), "", {}) != ""


def test_files_beyond_the_repository_are_compared(tmp_path):
    weights, large = tmp_path / "weights", tmp_path / "large"
    weights.write_bytes(b"1")
    with large.open("wb") as file:
        file.truncate(2**26 + 1)
    outside = {str(path): contents.digest_outside(str(path)) for path in (large, weights)}
    program = Program(workload="w", conditions="0" * 16, outside=outside)

    def find():
        return proof.find_other_condition(program, "0" * 16, {})

    assert find() == ""
    weights.write_bytes(b"2")
    assert find() == f"{weights} differs"
    os.utime(large, ns=(0, 0))
    assert find() == f"{large} differs"
    large.unlink()
    assert find() == f"{large} differs"
