"""A patch is right when git applies it, and it then says what accepting would have written."""

import pytest

from ci_perf.baselines import accept, layout
from ci_perf.errors import UsageError
from ci_perf.gate.accept import write_patch
from tests import repositories
from tests.accepting import accepted, against
from tests.runs import CPU, STEADY, a_measured, a_run

OLD = a_run(a_measured("a", *STEADY), a_measured("b", *STEADY), id="old")
NEW = a_run(a_measured("a", *STEADY, breaks=3), a_measured("c", *STEADY), id="new")


@pytest.fixture
def project(request, tmp_path):
    """A repository with a baseline, and where its baselines are."""
    made = repositories.init(tmp_path / "repository")
    folder = made.root / getattr(request, "param", "baselines")
    accepted(folder, OLD)
    made.commit()
    return made, folder


def prepared(folder, run=NEW):
    return accept.prepare(folder, run, against(folder, run), reason="because")


@pytest.mark.parametrize("project", ["baselines", "my models/base lines", "Größen"], indirect=True)
def test_git_applies_what_accepting_would_have_written(project, tmp_path):
    made, folder = project
    found = prepared(folder)
    assert write_patch(tmp_path / "x.patch", found, root=made.root)
    made.ask("apply", "--check", tmp_path / "x.patch")
    made.ask("apply", "--index", tmp_path / "x.patch")

    changed = made.ask("-c", "core.quotePath=false", "diff", "--cached", "--name-only").splitlines()
    assert [name.strip('"').rpartition("/")[2] for name in changed] == ["a.json", "c.json"]
    for one in found:
        assert one.path.read_text() == layout.render(one.baseline)
        assert layout.read(one.path) == one.baseline


def test_a_patch_from_a_folder_below_the_top_applies_at_the_top(project, tmp_path):
    made, folder = project
    write_patch(tmp_path / "x.patch", prepared(folder), root=folder)
    made.ask("apply", tmp_path / "x.patch")

    assert layout.path(folder, CPU, "smoke", "c").exists()


def test_where_nothing_changes_there_is_no_patch(project, tmp_path):
    made, folder = project

    assert not write_patch(tmp_path / "x.patch", prepared(folder, OLD), root=made.root)
    assert not (tmp_path / "x.patch").exists()


def test_a_file_whose_last_line_has_no_end_is_patched(project, tmp_path):
    made, folder = project
    path = layout.path(folder, CPU, "smoke", "a")
    path.write_text(path.read_text().rstrip("\n"))
    found = prepared(folder)
    write_patch(tmp_path / "x.patch", found, root=made.root)
    made.ask("apply", tmp_path / "x.patch")

    assert path.read_text() == layout.render(next(o.baseline for o in found if o.path == path))


def test_a_patch_of_what_is_outside_of_the_repository_is_refused(project, tmp_path):
    made, _ = project
    elsewhere = tmp_path / "elsewhere"
    accepted(elsewhere, OLD)

    with pytest.raises(UsageError, match="outside of it"):
        write_patch(tmp_path / "x.patch", prepared(elsewhere), root=made.root)


def test_outside_of_a_repository_a_patch_is_of_the_folder_itself(tmp_path):
    accepted(tmp_path / "baselines", OLD)
    write_patch(tmp_path / "x.patch", prepared(tmp_path / "baselines"), root=tmp_path)

    assert "\n+++ b/baselines/" in (tmp_path / "x.patch").read_text()
