from ci_perf import worktree
from ci_perf.system import git
from ci_perf.worktree import merge_base, sources
from tests import repositories


def commit(repository, *names, text=""):
    for name in names:
        (repository.root / name).parent.mkdir(parents=True, exist_ok=True)
        (repository.root / name).write_text(text)
    repository.ask("add", ".")
    repository.ask("commit", "--quiet", "-m", "more")


def test_folders_with_committed_modules_are_found_wherever_the_root_lies(forked):
    commit(
        forked,
        "services/train/src/model/__init__.py",
        "services/train/src/model/layers/net.py",
        "tools/a name/run.py",
        "third_party/other/other.py",
        "docs/guide.md",
    )
    (forked.root / "services/new.py").touch()
    (forked.root / "build").mkdir()
    (forked.root / "build/copy.py").touch()

    assert sources.folders(forked.root) == (
        ".",
        "services",
        "services/train",
        "services/train/src",
        "services/train/src/model",
        "services/train/src/model/layers",
        "third_party",
        "third_party/other",
        "tools",
        "tools/a name",
    )
    inside = sources.folders(forked.root / "tools")
    assert {"..", ".", "a name", "../services/train/src"} < {*inside}
    assert git.find_top(forked.root / "tools") == forked.root


def test_outside_a_repository_no_folder_is_known(tmp_path):
    assert sources.folders(tmp_path) == ()
    assert sources.folders(tmp_path / "none") == ()
    assert git.find_top(tmp_path) == tmp_path


def test_the_first_source_of_compiled_code_that_differs_is_named(forked):
    start = merge_base.find(forked.root, "main")
    commit(forked, "net.py", "readme.md", "requirements.in")
    assert sources.native(start) == ""

    for name in ("net.CPP", "csrc/fast.cu", "a/b/CMakeLists.txt", "Cargo.toml"):
        commit(forked, name)
        assert sources.native(start) == name  # each comes before those of the last turns
    inner = forked.root / "inner"
    inner.mkdir()
    assert sources.native(merge_base.find(inner, "main")) == "Cargo.toml"


def test_a_compiled_source_that_is_changed_and_not_committed_counts(forked):
    commit(forked, "fast.c")
    start = merge_base.exactly(forked.root, "HEAD")
    assert sources.native(start) == ""

    (forked.root / "fast.c").write_text("int x;")

    assert sources.native(start) == "fast.c"


def test_a_submodule_counts_where_another_commit_is_checked_out(tmp_path, forked):
    library = repositories.init(tmp_path / "library")
    library.commit(fast_c="old")
    forked.ask("submodule", "--quiet", "add", library.root, "lib")
    forked.commit()
    start = merge_base.exactly(forked.root, "HEAD")
    inner = repositories.Repository(forked.root / "lib")

    (inner.root / "built.o").touch()
    (inner.root / "fast.c").write_text("of somebody who tries something")
    assert sources.native(start) == ""

    inner.commit(fast_c="new")
    assert sources.native(start) == "lib"


def test_flags_of_a_compiler_in_pyproject_count_as_a_source_of_compiled_code(forked):
    forked.commit(pyproject_toml="[tool.scikit-build]\ncmake.args = ['-O0']\n")

    with worktree.base_of(forked.root, "main") as base:
        assert base.native_source == "pyproject.toml"
