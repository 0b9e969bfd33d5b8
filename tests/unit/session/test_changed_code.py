"""Which workload files name what the head changes, in a real repository."""

from ci_perf.session.changed_code import list_naming_changed
from tests import repositories
from tests.plans import a_planned

COLOR = "def to_xyz(image):\n    return image\n\n\ndef to_gray(image):\n    return image\n"


def test_a_file_that_names_a_changed_function_is_likely_to_be_slower(tmp_path):
    git = repositories.init(tmp_path / "project")
    git.commit(
        color_py=COLOR,
        xyz_py="from color import to_xyz\ndef test_it(benchmark): benchmark(to_xyz, 1)\n",
        gray_py="from color import to_gray\n",
        new_py="",
    )
    base = git.ask("rev-parse", "HEAD")
    git.commit(color_py=COLOR.replace("    return image\n", "    return +image\n", 1))
    (git.root / "other.py").write_text("class Other: pass\n")  # git does not know it
    test = a_planned("xyz", launch="fork", file=__file__, parameters={"node": "xyz.py::test_it"})
    others = [
        a_planned(name, file=str(git.root / f"{name}.py")) for name in ("xyz", "gray", "gone")
    ]

    likely = list_naming_changed([test, *others], git.root, base)

    assert [*likely] == ["xyz", "xyz"]


def test_without_git_no_file_is_likely(tmp_path):
    (tmp_path / "a.py").write_text("a")

    assert [
        *list_naming_changed([a_planned("a", file=str(tmp_path / "a.py"))], tmp_path, None)
    ] == []
