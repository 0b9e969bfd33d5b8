"""A process that is launched as one side of a comparison runs the code of that side."""

import textwrap
from pathlib import Path

import pytest

from ci_perf.launch.local import LocalLauncher
from ci_perf.model.process import Phase, WorkerResult
from ci_perf.model.task import TaskFailure
from tests.launches import BUILD, HEAD, PASS, a_task

# What `pip install -e` leaves in an environment: a finder that maps a package to its folder.
EDITABLE = """
import importlib.util, sys
class Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == "package":
            return importlib.util.spec_from_file_location(
                name, SOURCE + "/__init__.py", submodule_search_locations=[SOURCE]
            )
sys.meta_path.append(Finder)
"""


class Sides:
    """A base and a head, with the head's workload, in an environment of their own."""

    def __init__(self, place):
        self.base, self.head, self.installed = (place / one for one in ("base", "head", "env"))
        for folder in (self.base, self.head, self.installed):
            folder.mkdir()
        self.workload("import package")

    def package(self, side, inside="package"):
        """Write a package into a side."""
        folder = side / inside
        folder.mkdir(parents=True)
        (folder / "__init__.py").write_text("")

    def workload(self, body, folder="workloads"):
        """Write the workload into the head."""
        self.file = self.head / folder / "it.py"
        self.file.parent.mkdir(exist_ok=True)
        self.file.write_text(HEAD + textwrap.dedent(body) + "\n" + PASS + BUILD)

    def install_editable(self, source):
        """Have every process of the environment import the package from `source`."""
        text = f"SOURCE = {str(source)!r}\n{EDITABLE}"
        (self.installed / "sitecustomize.py").write_text(text)

    def launch_base(self, **more):
        """Launch the head's workload as the base."""
        more |= {"protocol": {"timeout_s": 120.0}, "foreign_root": str(self.head)}
        task = a_task(self.file, root=self.base, **more)
        environment = {"PYTHONPATH": f"{self.installed}:{Path(__file__).parents[3]}"}
        return LocalLauncher(self.base, environment).launch(task)


@pytest.fixture
def sides(tmp_path):
    return Sides(tmp_path)


def test_the_base_runs_its_own_code_with_the_heads_workload_and_its_neighbours(sides):
    sides.package(sides.base)
    sides.package(sides.head)
    (sides.file.parent / "_neighbour.py").write_text("")
    sides.workload("import package, _neighbour")

    assert isinstance(sides.launch_base(), WorkerResult)


def test_an_editable_install_of_the_head_is_trouble_that_says_what_to_do(sides):
    sides.package(sides.base, "src/package")
    sides.package(sides.head, "src/package")
    sides.install_editable(sides.head / "src/package")

    found = sides.launch_base()

    assert isinstance(found, TaskFailure)
    assert found.phase is Phase.TEARDOWN
    assert f"package ({sides.head}/src/package/__init__.py)" in found.reason
    assert "`python_path`" in found.reason


def test_the_source_folder_of_a_side_comes_before_an_editable_install(sides):
    sides.package(sides.base, "src/package")
    sides.package(sides.head, "src/package")
    sides.install_editable(sides.head / "src/package")
    sides.workload("""
        import package, subprocess, sys
        started = [sys.executable, "-c", "import package; print(package.__file__)"]
        assert subprocess.check_output(started, text=True).strip() == package.__file__
    """)

    assert isinstance(sides.launch_base(python_path=("src",)), WorkerResult)


def test_code_of_a_third_place_is_trouble_where_it_is_not_that_of_the_side(sides):
    for side in (sides.base, sides.installed):
        sides.package(side, "code/package")
    sides.workload(
        f"import sys; sys.path.append({str(sides.installed / 'code')!r})\nimport package"
    )
    assert isinstance(sides.launch_base(source_folders=("code",)), WorkerResult)

    (sides.base / "code/package/__init__.py").write_text("N = 1\n")

    found = sides.launch_base(source_folders=("code",))
    assert isinstance(found, TaskFailure)
    assert f"package ({sides.installed}/code/package/__init__.py)" in found.reason
    assert '`python_path = ["code"]`' in found.reason


def test_code_of_the_head_that_a_child_may_import_is_trouble_where_it_differs(sides):
    for side in (sides.base, sides.head):
        sides.package(side, "src/package")
    sides.workload(f"""
        import os, sys
        sys.path.append({str(sides.head / "src")!r})
        if not (child := os.fork()):
            import package
            os._exit(0)
        os.waitpid(child, 0)
    """)
    assert isinstance(sides.launch_base(), WorkerResult)

    (sides.head / "src/package/__init__.py").write_text("N = 1\n")

    found = sides.launch_base()
    assert isinstance(found, TaskFailure)
    assert f"{sides.head}/src/package/__init__.py" in found.reason
    assert '`python_path = ["src"]`' in found.reason


def test_many_modules_are_named_shortly(sides):
    for number in range(5):
        sides.package(sides.head, f"package{number}")
    sides.workload(
        f"import sys; sys.path.append({str(sides.head)!r})\n"
        "import package0, package1, package2, package3, package4"
    )

    found = sides.launch_base()

    assert f"package0 ({sides.head}/" in found.reason
    assert found.reason.endswith("), package1, package2 and 2 more")


def test_a_namespace_that_only_the_head_has_is_seen(sides):
    (sides.head / "spaces").mkdir()
    sides.workload(f"import sys; sys.path.append({str(sides.head)!r})\nimport spaces")

    assert f"spaces ({sides.head}/spaces)" in sides.launch_base().reason


def test_a_workload_at_the_top_of_the_head_does_not_open_the_rest_of_it(sides):
    sides.package(sides.head)
    (sides.head / "_neighbour.py").write_text("")
    sides.workload("import _neighbour", folder=".")
    assert isinstance(sides.launch_base(), WorkerResult)

    sides.workload("import _neighbour, package", folder=".")

    assert f"package ({sides.head}" in sides.launch_base().reason


def test_a_base_inside_the_head_may_import_itself_and_what_is_installed_is_nobodys(sides):
    packages = sides.head / ".venv/lib/python3/site-packages"
    sides.base = sides.head / "tmp/base"
    sides.package(sides.base)
    sides.package(packages, "installed")
    path = f"import sys; sys.path.append({str(packages)!r})"
    sides.workload(f"{path}\nimport package, installed")

    assert isinstance(sides.launch_base(), WorkerResult)


def test_modules_of_any_making_are_looked_at_without_harm(sides):
    sides.package(sides.base)
    sides.workload(
        """
        import package, sys, types
        class Lazy(types.ModuleType):
            def __getattr__(self, name):
                raise RuntimeError("imports something heavy")
        sys.modules["a"] = Lazy("a")
        sys.modules["b"] = None
        sys.modules["c"] = 3
        sys.modules["d"] = types.SimpleNamespace(__path__=3)
        sys.modules["e"] = types.SimpleNamespace(__file__=3)
        """
    )

    assert isinstance(sides.launch_base(), WorkerResult)


def test_the_tool_itself_may_be_what_is_under_measure(sides):
    """Its own repository measures with the head's ci_perf on both sides."""
    sides.package(sides.base)
    sides.head = Path(__file__).parents[3]

    assert isinstance(sides.launch_base(), WorkerResult)
