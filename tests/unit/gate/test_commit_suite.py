"""Which suite and baselines a commit has."""

from pathlib import Path

import pytest

from ci_perf.gate import commit_suite
from ci_perf.gate.commit_suite import RepositoryFolders
from tests import repositories

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(
    ("name", "workloads", "folder"),
    [
        ("builtin:smoke", ROOT / "workloads", None),
        ("smoke", ROOT / "workloads", Path("workloads")),
        ("smoke", Path("workloads"), Path("workloads")),
        ("smoke", Path("../elsewhere"), None),
    ],
)
def test_only_a_suite_below_the_root_may_differ_between_the_sides(name, workloads, folder):
    assert commit_suite.folder_below(ROOT, name, workloads) == folder


def test_a_link_of_the_head_leads_to_no_other_folder_of_the_base(tmp_path):
    (tmp_path / "loose").mkdir()
    (tmp_path / "workloads").symlink_to("loose")

    assert commit_suite.path_below(tmp_path, Path("workloads")) == Path("workloads")


def test_a_folder_that_is_spelled_through_a_link_lies_below_the_root_all_the_same(tmp_path):
    (tmp_path / "real/workloads").mkdir(parents=True)
    (tmp_path / "other").symlink_to("real")

    found = commit_suite.path_below(tmp_path / "real", tmp_path / "other/workloads")

    assert found == Path("workloads")


def test_baselines_are_those_of_the_commit_and_not_of_the_checkout(tmp_path):
    git = repositories.init(tmp_path / "project")
    file = git.root / "inner/baselines/cpu/smoke/w.json"
    file.parent.mkdir(parents=True)
    file.write_text("then")
    commit = git.commit()
    file.write_text("now")
    root = git.root / "inner"
    none = RepositoryFolders(root=root, baselines=Path("none"))

    tree = commit_suite.tree_of(root, commit)
    with commit_suite.baselines_of_tree(tree, RepositoryFolders(root=root), "smoke") as folder:
        assert (folder / "cpu/smoke/w.json").read_text() == "then"
    with commit_suite.baselines_of_tree(tree, none, "smoke") as folder:
        assert not folder.exists()
