import pytest

from ci_perf.worktree import merge_base, sources


def test_files_that_say_what_is_installed_are_named_where_they_differ(forked):
    assert sources.list_dependencies(merge_base.find(forked.root, "main")) == ()

    forked.commit(requirements_txt="x", notes_txt="x")
    others = ("gpu.Dockerfile", ".gitlab-ci.yml", "Containerfile", "reqs/base.txt", "sub/uv.lock")
    for name in others:
        (forked.root / name).parent.mkdir(exist_ok=True)
        (forked.root / name).write_text("x")
    (forked.root / "tools").mkdir()
    (forked.root / "tools/Dockerfile").write_text("FROM x")
    inner = forked.root / "inner"
    inner.mkdir()

    start = merge_base.find(inner, "main")

    assert sources.list_dependencies(start) == tuple(
        sorted((*others, "requirements.txt", "tools/Dockerfile"))
    )


@pytest.mark.parametrize(
    ("after", "is_named"),
    [
        ("[project]\nversion = '2'\ndependencies = ['a']\n[tool.ruff]\nfix = true\n", False),
        ("[project]\nversion = '1'\ndependencies = ['b']\n", True),
        ("[project]\nversion = '1'\ndependencies = ['a']\n[tool.uv]\nx = 1\n", True),
        ("[project\n", True),
        ("project = 1\n", True),
        (None, True),
    ],
)
def test_a_pyproject_counts_where_it_asks_for_other_packages(forked, after, is_named):
    forked.ask("checkout", "--quiet", "main")
    forked.commit(pyproject_toml="[project]\nversion = '1'\ndependencies = ['a']\n")
    forked.ask("checkout", "--quiet", "-b", "more")
    if after is None:
        forked.ask("rm", "--quiet", "pyproject.toml")
    else:
        (forked.root / "pyproject.toml").write_text(after)

    dependencies = sources.list_dependencies(merge_base.find(forked.root, "main"))

    assert dependencies == (("pyproject.toml",) if is_named else ())
