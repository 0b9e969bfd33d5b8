import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

from ci_perf import worktree
from ci_perf.errors import CannotWriteError, CiPerfError, UsageError
from ci_perf.model.run import Source
from ci_perf.worktree import worktree_dir
from tests import repositories

LONG = "project-with-a-name-that-leaves-room"
POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 3\n"


@pytest.fixture(autouse=True)
def temporary(tmp_path, use_tempdir):
    """A temporary folder that no other test sweeps."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    use_tempdir(folder)
    return folder


@pytest.fixture
def forked(tmp_path):
    return repositories.forked(tmp_path / f"{LONG}-in-temporary-files")


def test_the_bases_code_is_there_as_it_was_committed(forked):
    (forked.root / "code.py").write_text("not committed")

    with worktree.base_of(forked.root, "main") as base:
        assert (base.root / "code.py").read_text() == "base"
        assert not (base.root / "other.py").exists()
        assert base.source == Source(
            commit=forked.ask("rev-parse", "main~1"), branch="main", dirty=False
        )
        assert (base.top, base.head_top) == (base.root, forked.root)


def test_nothing_is_left_afterwards(forked, temporary):
    status = forked.ask("status", "--porcelain=v2", "--branch")

    with worktree.base_of(forked.root, "main") as base:
        (base.root / "built.so").write_text("")
        closed = base.root / "build"
        closed.mkdir()
        (closed / "object.o").write_text("")
        closed.chmod(0o000)

    assert not base.root.exists()
    assert not list(temporary.iterdir())
    assert forked.worktrees() == [str(forked.root)]
    assert not list((forked.root / ".git").glob("worktrees/*"))
    assert forked.ask("status", "--porcelain=v2", "--branch") == status


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, SystemExit])
def test_nothing_is_left_after_an_exception(forked, temporary, error):
    with pytest.raises(error), worktree.base_of(forked.root, "main"):
        raise error

    assert not list(temporary.iterdir())
    assert forked.worktrees() == [str(forked.root)]


def test_code_that_replaces_its_own_folder_costs_nobody_anything(forked, tmp_path):
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "file").write_text("")

    with worktree.base_of(forked.root, "main") as base:
        base.root.rename(tmp_path / "elsewhere")
        base.root.symlink_to(precious)

    assert (precious / "file").exists()
    assert not base.root.is_symlink()


def test_the_repository_may_itself_be_a_worktree(forked, tmp_path):
    other = tmp_path / "other"
    forked.ask("worktree", "add", "--quiet", other, "main")

    with worktree.base_of(other, "change") as base:
        assert (base.root / "code.py").read_text() == "base"

    assert forked.worktrees() == [str(forked.root), str(other)]


# --- where it lies


def test_its_path_is_as_long_as_the_heads(forked):
    with worktree.base_of(forked.root, "main") as base:
        assert len(str(base.root)) == len(str(forked.root))
        assert base.root.parent == forked.root.parent
        assert base.notes == ()


def test_it_lies_on_the_disk_of_the_head_wherever_temporary_files_are(forked, use_tempdir):
    with tempfile.TemporaryDirectory(dir="/dev/shm") as other:
        use_tempdir(Path(other))
        with worktree.base_of(forked.root, "main") as base:
            assert base.root.stat().st_dev == forked.root.stat().st_dev != Path(other).stat().st_dev


def test_it_lies_in_the_repository_where_all_else_is_on_another_disk(tmp_path, mounted):
    git = repositories.Repository(mounted)
    repositories.forked(tmp_path / "other").ask(
        "worktree", "add", "--quiet", tmp_path / "w", "main"
    )
    shutil.copytree(tmp_path / "other", mounted, dirs_exist_ok=True)
    git.ask("worktree", "prune")

    with worktree.base_of(mounted, "main") as base:
        assert base.root.parent == mounted / ".git/ci-perf"
        assert (base.root / "code.py").read_text() == "base"
        assert git.ask("status", "--porcelain") == ""

    assert not (mounted / ".git/ci-perf").exists()


def test_it_lies_anywhere_if_no_place_is_on_the_disk_of_the_head(tmp_path, mounted):
    git = repositories.forked(tmp_path / "other")
    git.ask("worktree", "add", "--quiet", "--force", mounted, "change")

    with worktree.base_of(mounted, "main") as base:
        assert base.root.parent == tmp_path
        assert (base.root / "code.py").read_text() == "base"


def test_beside_a_short_name_it_is_a_sibling(tmp_path):
    short = repositories.forked(tmp_path / "app")

    with worktree.base_of(short.root, "main") as base:
        assert base.root.parent == tmp_path
        assert len(str(base.root)) == len(str(short.root))
        assert base.notes == ()

    assert {one.name for one in tmp_path.iterdir()} == {"app", "temporary"}


def test_its_path_takes_as_many_bytes_in_any_alphabet(tmp_path):
    abroad = repositories.forked(tmp_path / "прое́кт")

    with worktree.base_of(abroad.root, "main") as base:
        assert len(os.fsencode(base.root)) == len(os.fsencode(abroad.root))
        assert base.notes == ()


@pytest.fixture
def cramped(tmp_path):
    """A repository beside which no name of its length is free."""
    for letter in worktree_dir._LETTERS:
        (tmp_path / letter).touch()
    return repositories.forked(tmp_path / "_")


def test_where_no_name_is_free_the_other_length_is_noted(cramped):
    with worktree.base_of(cramped.root, "main") as base:
        assert base.notes[0].startswith("path lengths differ: ")
        assert (base.root / "code.py").exists()


def test_a_folder_of_the_repository_is_the_same_folder_of_the_base(forked):
    inner = forked.root / "inner"
    inner.mkdir()
    forked.ask("checkout", "--quiet", "main")
    (inner / "code").write_text("base")
    forked.commit()
    forked.ask("checkout", "--quiet", "-b", "again")
    (inner / "code").write_text("head")
    forked.commit()

    with worktree.base_of(inner, "main") as base:
        assert (base.root / "code").read_text() == "base"
        assert base.root == base.top / "inner"
        assert len(str(base.root)) == len(str(inner))


def test_a_folder_that_the_base_does_not_have_is_named(forked, temporary):
    new = forked.root / "new"
    new.mkdir()

    with pytest.raises(UsageError, match="new: expected this folder in the base"):
        worktree.base_of(new, "main").__enter__()

    assert not list(temporary.iterdir())


def test_without_a_place_for_files_the_message_names_another(mounted, temporary):
    git = repositories.forked(mounted / "app")
    temporary.rmdir()
    subprocess.run(["mount", "-o", "remount,ro", mounted], check=True)

    with pytest.raises(CannotWriteError, match="TMPDIR"):
        worktree.base_of(git.root, "main").__enter__()


# --- what does not happen


def test_hooks_of_the_user_do_not_run(forked, tmp_path):
    for name in ("post-checkout", "reference-transaction", "post-index-change"):
        hook = forked.root / ".git/hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!/bin/sh\ntouch '{tmp_path}/ran'\n")
        hook.chmod(0o755)

    with worktree.base_of(forked.root, "main"):
        pass

    assert not (tmp_path / "ran").exists()


def test_what_a_partial_clone_lacks_is_not_fetched(forked, tmp_path):
    forked.ask("config", "uploadpack.allowFilter", "true")
    clone = forked.clone(tmp_path / f"clone-{LONG}", "--filter=blob:none", "--branch=change")
    clone.ask("remote", "set-url", "origin", "ssh://nobody.invalid/project")

    with pytest.raises(CiPerfError, match=r"partial clone .* `--filter`") as raised:
        worktree.base_of(clone.root, "origin/main").__enter__()

    assert "transport 'ssh' not allowed" in raised.value.output
    assert clone.worktrees() == [str(clone.root)]


def test_a_full_disk_is_named(forked, temporary, tmp_path, monkeypatch):
    """A git that finds the disk full as soon as it writes files."""
    stand_in = tmp_path / "bin" / "git"
    stand_in.parent.mkdir()
    stand_in.write_text(
        "#!/bin/sh\n"
        'case "$*" in *"worktree add"*) echo "No space left on device" >&2; exit 128;; esac\n'
        f'PATH="{os.environ["PATH"]}" exec git "$@"\n'
    )
    stand_in.chmod(0o755)
    monkeypatch.setenv("PATH", str(stand_in.parent), prepend=os.pathsep)

    with pytest.raises(CiPerfError, match=r"the disk is full; .* TMPDIR"):
        worktree.base_of(forked.root, "main").__enter__()

    assert not list(temporary.iterdir())


def test_a_repository_that_git_cannot_write_to_is_named(forked, temporary):
    (forked.root / ".git/worktrees").write_text("a file where git wants a folder")

    with pytest.raises(CiPerfError, match="git could not check it out") as raised:
        worktree.base_of(forked.root, "main").__enter__()

    assert "worktrees" in raised.value.output
    assert not list(temporary.iterdir())


# --- what a worktree comes without


@pytest.fixture
def library(tmp_path):
    made = repositories.init(tmp_path / "library")
    made.commit(lib_py="old")
    return made


def with_library(tmp_path, library, *, update=True):
    """A project whose base has an old library as a submodule, and whose head has a new one."""
    made = repositories.init(tmp_path / f"{LONG}-in-temporary-files")
    made.ask("submodule", "--quiet", "add", "--name", "the library", library.root, "lib")
    made.commit()
    made.ask("checkout", "--quiet", "-b", "change")
    library.commit(lib_py="new")
    if update:
        repositories.Repository(made.root / "lib").ask("pull", "--quiet")
    made.commit(code_py="head")
    return made


def test_submodules_are_as_the_base_has_them_and_no_configuration_changes(tmp_path, library):
    project = with_library(tmp_path, library)
    config = (project.root / ".git/config").read_text()
    library.root.rename(tmp_path / "gone")

    with worktree.base_of(project.root, "main") as base:
        assert (base.root / "lib/lib.py").read_text() == "old"
        assert base.notes == ()
        assert (base.native_source, base.dependencies) == ("lib", ())
        assert base.source_folders == (".", "lib")

    assert (project.root / "lib/lib.py").read_text() == "new"
    assert (project.root / ".git/config").read_text() == config
    assert not list((project.root / ".git").glob("worktrees/*"))


def test_submodules_of_submodules_are_there_too(tmp_path, library):
    outer = repositories.init(tmp_path / "outer")
    outer.ask("submodule", "--quiet", "add", library.root, "inner")
    outer.commit()
    project = with_library(tmp_path, outer, update=False)
    project.ask("submodule", "--quiet", "update", "--init", "--recursive")

    with worktree.base_of(project.root, "main") as base:
        assert (base.root / "lib/inner/lib.py").read_text() == "old"


def test_a_submodule_that_the_head_has_moved_is_found_by_its_name(tmp_path, library):
    project = with_library(tmp_path, library)
    project.ask("mv", "lib", "moved")
    project.commit()

    with worktree.base_of(project.root, "main") as base:
        assert (base.root / "lib/lib.py").read_text() == "old"


def test_a_submodule_that_the_head_has_not_checked_out_stays_empty_with_a_note(tmp_path, library):
    project = with_library(tmp_path, library)
    project.ask("submodule", "--quiet", "deinit", "--force", "lib")

    with worktree.base_of(project.root, "main") as base:
        assert not list((base.root / "lib").iterdir())
        assert base.notes == (
            "the base's submodule lib is empty: the head has not checked it out either",
        )


def test_a_submodule_that_is_not_here_is_an_error_unless_setup_may_bring_it(tmp_path, library):
    """As actions/checkout leaves it: a clone of the submodule that holds the head's commit only."""
    project = with_library(tmp_path, library)
    clone = project.clone(tmp_path / f"clone-{LONG}", "--branch=change")
    library.ask("config", "uploadpack.allowAnySHA1InWant", "true")
    clone.ask("config", "submodule.the library.url", f"file://{library.root}")
    clone.ask("submodule", "--quiet", "update", "--init", "--depth=1")
    library.root.rename(tmp_path / "gone")

    with pytest.raises(CiPerfError, match=r"lib: expected this submodule .* `setup`"):
        worktree.base_of(clone.root, "origin/main").__enter__()
    with worktree.base_of(clone.root, "origin/main", has_setup=True) as base:
        assert base.notes == ("the base's submodule lib is empty: git could not check it out",)


def test_files_of_git_lfs_that_are_not_here_are_noted(tmp_path):
    project = repositories.init(tmp_path / f"{LONG}-in-temporary-files")
    (project.root / ".gitattributes").write_text("*.bin -text filter=lfs\n")
    (project.root / "weights.bin").write_text(POINTER)
    project.commit()
    project.ask("switch", "--quiet", "--create", "branch")
    project.commit()

    with worktree.base_of(project.root, "main") as base:
        assert "only by name: weights.bin (1 in all)" in " ".join(base.notes)


# --- what a killed process left


def test_folders_and_worktrees_of_others_are_never_touched(forked, tmp_path, temporary):
    mine = temporary / "ci-perf-base-mine"
    forked.ask("worktree", "add", "--quiet", "--detach", mine, "main")
    locked = tmp_path / "locked"
    forked.ask("worktree", "add", "--lock", "--detach", locked, "main")
    unplugged = tmp_path / "unplugged"
    forked.ask("worktree", "add", "--quiet", "--detach", unplugged, "main")
    unplugged.rename(tmp_path / "on another disk")

    with worktree.base_of(forked.root, "main"):
        pass

    assert (mine / "code.py").exists()
    assert (locked / "code.py").exists()
    assert set(forked.worktrees()) == {*map(str, (forked.root, mine, locked, unplugged))}


def test_a_base_that_is_in_use_is_not_swept(forked):
    with worktree.base_of(forked.root, "main") as one, worktree.base_of(forked.root, "main") as two:
        assert one.root != two.root
        assert (one.root / "code.py").exists()


def test_a_worktree_whose_folder_is_gone_is_forgotten_after_a_day(forked, tmp_path):
    gone = tmp_path / "gone"
    lock = ("--lock", "--reason", worktree_dir.REASON)
    forked.ask("worktree", "add", *lock, "--detach", gone, "main")
    gone.rename(tmp_path / "elsewhere")
    note = forked.root / ".git/worktrees/gone/gitdir"

    worktree_dir.sweep(forked.root)
    assert str(gone) in forked.worktrees()

    two_days_ago = time.time() - 2 * 24 * 3600
    os.utime(note, (two_days_ago, two_days_ago))
    worktree_dir.sweep(forked.root)

    assert forked.worktrees() == [str(forked.root)]


def test_what_is_left_of_a_repository_that_is_gone_is_swept(forked, temporary):
    left = temporary / "ci-perf-base-0123abcd____"
    (left / "code").mkdir(parents=True)

    worktree_dir.sweep(forked.root)

    assert not left.exists()


def test_another_link_to_the_temporary_folder_changes_nothing(forked, temporary, use_tempdir):
    link = Path(f"{temporary}-by-another-name")
    link.symlink_to(temporary)
    use_tempdir(link)

    with worktree.base_of(forked.root, "main") as base:
        assert str(base.root) in forked.worktrees()

    assert not list(temporary.iterdir())
