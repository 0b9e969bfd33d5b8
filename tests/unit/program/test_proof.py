"""A record beside a checkout: the first difference, or none."""

import os

import pytest

from ci_perf.model.program import ModuleSearch, Program, ProgramFile, digest, listing
from ci_perf.program import proof, units
from ci_perf.program.tree_sources import FolderTree, GitTree
from tests import repositories

NET = "import os\n\ndef used():\n    return 1\n\ndef unused():\n    return 2\n"


def recorded(tree, *, sources=(), data=(), executed=(":", "used"), **more):
    files = {path: ProgramFile(blob=tree.blob(path)) for path in data}
    for path in sources:
        known = units.digests(tree.read(path))
        files[path] = ProgramFile(
            blob=tree.blob(path), units={unit: known[unit] for unit in executed}
        )
    plain = {"workload": "w", "conditions": "0" * 16, "steps": 3}
    return Program(**{**plain, "files": files, **more})


@pytest.fixture
def project(tmp_path):
    """A repository with a module, a file of data, and a folder."""
    made = repositories.init(tmp_path / "project")
    (made.root / "data").mkdir()
    (made.root / "data/labels.json").write_text("[1]")
    made.commit(net_py=NET)
    return made


def trees(repository):
    """Return both views of what is committed and checked out."""
    repository.commit()
    return FolderTree(repository.root), GitTree(repository.root, "HEAD")


def details(program, repository):
    """Return what both views say, once."""
    said = {getattr(proof.first_difference(program, t), "detail", "") for t in trees(repository)}
    assert len(said) == 1, said
    return said.pop()


def test_nothing_differs_from_itself(project):
    tree, _ = trees(project)
    program = recorded(
        tree,
        sources=["net.py"],
        data=["data/labels.json"],
        folders={"data": listing(tree.names("data"))},
        searches={"": ModuleSearch(names=("numpy", "net"), entries=("net.py",))},
        absent=("config.toml",),
        inputs=proof.inputs_digest(tree, ["data/**"]),
    )

    assert details(program, project) == ""
    assert proof.counts(program) == proof.Counts(functions=1, files=1, data_files=1)


@pytest.mark.parametrize(
    ("path", "text", "detail"),
    [
        ("net.py", NET.replace("return 1", "return 3"), "net.py: used differs"),
        ("net.py", NET.replace("return 2", "return 3"), ""),
        ("net.py", NET.replace("import os", "import re"), "net.py: the body of the module differs"),
        ("net.py", NET.replace("def used", "def other"), "net.py: used is not there any more"),
        ("net.py", "import re\n" + NET.replace("return 1", "return 3"), "net.py: used differs"),
        ("net.py", "\n# moved\n" + NET, ""),
        ("net.py", "def (", "net.py differs and cannot be parsed: expected Python, found Synt"),
        ("data/labels.json", "[2]", "data/labels.json differs"),
        ("data/more.json", "[2]", "the names in data differ"),
        ("numpy.py", "", "numpy.py is new, and an import would look at it"),
        ("numpy/__init__.py", "", "numpy is new, and an import would look at it"),
        ("numpy.so", "", "numpy.so is new, and an import would look at it"),
        ("a.dist-info/x", "", "a.dist-info is new, and an import would look at it"),
        ("config.toml", "", "config.toml was looked for in vain, and is there now"),
        ("README.md", "more", ""),
        ("net/more.txt", "", "net is new, and an import would look at it"),
        ("inputs/a/b.bin", "", "the files that the input inputs/**/*.bin names differ"),
        ("inputs/a/b.txt", "", ""),
        ("__pycache__/net.cpython-311.pyc", "\0\0\0\0\1", "__pycache__/net.cpython-311.pyc may be"),
        ("__pycache__/other.cpython-311.pyc", "\0\0\0\0\1", ""),
        (".gitattributes", "*.md ident", ""),
    ],
)
def test_a_change_is_a_difference_where_the_program_takes_it(project, path, text, detail):
    tree, _ = trees(project)
    program = recorded(
        tree,
        sources=["net.py"],
        data=["data/labels.json"],
        folders={"data": listing(tree.names("data"))},
        searches={"": ModuleSearch(names=("numpy", "net", "*.dist-info"), entries=("net.py",))},
        absent=("config.toml",),
        inputs=proof.inputs_digest(tree, ["inputs/**/*.bin"]),
    )
    (project.root / path).parent.mkdir(parents=True, exist_ok=True)
    (project.root / path).write_text(text)

    said = details(program, project)

    assert said.startswith(detail)
    assert bool(said) == bool(detail)


def test_a_file_that_is_gone_differs(project):
    program = recorded(trees(project)[0], data=["data/labels.json"])
    (project.root / "data/labels.json").unlink()

    assert details(program, project) == "data/labels.json is not there any more"


def test_a_record_with_an_obstacle_proves_nothing(project):
    program = recorded(trees(project)[0], obstacles=("it starts a program",))

    assert details(program, project) == "it starts a program"


def test_conditions_and_variables_must_be_those_of_the_record():
    program = Program(
        workload="w",
        conditions="0" * 16,
        steps=1,
        variables={"A": digest(b"1"), "B": ""},
    )

    one, two, empty = digest(b"1"), digest(b"2"), digest(b"")

    assert proof.other_conditions(program, "0" * 16, {"A": one, "C": two}) == ""
    assert "settings" in proof.other_conditions(program, "1" * 16, {"A": one})
    assert "variable A" in proof.other_conditions(program, "0" * 16, {"A": two})
    assert "variable A" in proof.other_conditions(program, "0" * 16, {})
    assert "variable B" in proof.other_conditions(program, "0" * 16, {"A": one, "B": empty})


def test_a_record_without_conditions_is_never_of_this_machine():
    program = Program(workload="w", conditions="", steps=1)

    assert proof.other_conditions(program, "", {}) != ""


def test_files_beyond_the_repository_are_read(tmp_path):
    (tmp_path / "weights").write_bytes(b"1")
    outside = {str(tmp_path / "weights"): digest(b"1")}
    program = Program(workload="w", conditions="", steps=1, outside=outside)

    assert proof.outside_difference(program) == ""
    (tmp_path / "weights").write_bytes(b"2")
    assert proof.outside_difference(program) == f"{tmp_path / 'weights'} differs"
    (tmp_path / "weights").unlink()
    assert proof.outside_difference(program) == f"{tmp_path / 'weights'} differs"


def test_a_large_file_beyond_the_repository_is_known_by_length_and_time(tmp_path):
    large = tmp_path / "weights"
    with large.open("wb") as file:
        file.truncate(2**26 + 1)
    state = large.stat()
    outside = {str(large): digest(b"%d %d" % (state.st_size, state.st_mtime_ns))}
    program = Program(workload="w", conditions="", steps=1, outside=outside)

    assert proof.outside_difference(program) == ""
    os.utime(large, ns=(0, 0))
    assert proof.outside_difference(program) == f"{large} differs"
